package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// Methods writes the Methods paragraphs of what was really run, for an article:
// machine, engine, cases that were measured and those that were not, files, every
// step in a sentence, statistics, and all that departs from what was published.
func Methods(w io.Writer, p *plan.Plan, r *result.Result) error {
	return deliver(w, newView(p, r).methods(), "methods", r.Run)
}

func (v *view) methods() []byte {
	w := &textWriter{width: 80}
	w.wrapped("", "Methods")
	paragraph := func(sentences ...string) {
		if text := strings.Join(nonEmpty(sentences), " "); text != "" {
			fmt.Fprintln(w)
			w.wrapped("", text)
		}
	}
	paragraph(v.methodsWhere()...)
	paragraph(v.methodsCases()...)
	w.protocol(v.plan)
	paragraph(v.methodsFigures()...)
	if len(v.departures) > 0 {
		paragraph("What was run differs from " + zero(v.source != "", "what was published") + zero(v.source == "", "the plan as written") + " as follows.")
		for _, d := range v.departures {
			w.wrapped("  - ", d.Text+zero(d.Cases != "", " ("+d.Cases+")")+".")
		}
	}
	return bytes.TrimLeft(w.Bytes(), "\n")
}

// methodsWhere says who ran what on which machine and when.
func (v *view) methodsWhere() []string {
	r := v.result
	return []string{
		"The plan “" + plain(firstOf(r.Plan.Name, v.plan.Name), 80) + "”" + zero(v.source != "", ", after "+v.source+",") + " was run by " +
			plain(strings.TrimSpace(r.Tool.Name+" "+r.Tool.Version), 80) + goVersion(r.Tool) + zero(v.when() != "", " on "+v.when()) + ".",
		"Machine: " + strings.Join(v.distinct(machine), "; ") + ". System: " + strings.Join(v.distinct(system), "; ") + "." +
			zero(len(v.distinct(disks)) > 0, " Disk: "+strings.Join(v.distinct(disks), "; ")+".") + " Engine: " + strings.Join(v.engines(), "; ") + ".",
		v.engineNotice(),
		zero(r.Plan.Digest != "", "SHA-256 of the plan as executed: "+plain(r.Plan.Digest, 80)+"; seed "+fmt.Sprint(r.Seed)+"."),
	}
}

// methodsCases says what was measured, and what was not and why.
func (v *view) methodsCases() []string {
	var done, rest []string
	for i := range v.result.Cases {
		c := &v.result.Cases[i]
		if c.Status == result.Done {
			done = append(done, v.name(c.ID))
			continue
		}
		rest = append(rest, v.name(c.ID)+" ("+plain(c.Status, 20)+zero(c.Reason != "", ": "+plain(c.Reason, 300))+")")
	}
	var out []string
	if len(done) > 0 {
		out = append(out, count(len(done), "case")+" measured in "+count(v.result.Rounds, "round")+", each with a fresh container and in an order shuffled anew for each round: "+
			strings.Join(done, "; ")+".")
	}
	if len(rest) > 0 {
		out = append(out, "Not measured in full: "+strings.Join(rest, "; ")+".")
	}
	for i := range v.plan.Files {
		f := &v.plan.Files[i]
		out = append(out, "Files “"+plain(f.Name, 40)+"”: "+clean(f.Prose())+".")
	}
	for _, kind := range []string{"cache", "sync"} {
		if text := v.achieved(kind); text != "" {
			out = append(out, title(kind)+", asked → achieved: "+text+".")
		}
	}
	return out
}

// protocol prints the steps of the plan as numbered sentences, with the cases that go through them.
func (w *textWriter) protocol(p *plan.Plan) {
	n := 0
	for i := range p.Protocol {
		b := &p.Protocol[i]
		fmt.Fprintln(w)
		w.wrapped("", "Each case "+zero(len(b.When) > 0, "where "+clean(b.When.Prose())+" ")+"went through these steps"+zero(n > 0, " as well")+".")
		for j := range b.Steps {
			for _, s := range stepSentences(&b.Steps[j], "") {
				n++
				w.wrapped(fmt.Sprintf("%3d. ", n), s)
			}
		}
	}
}

// stepSentences is a step, and the steps that it repeats or runs at once.
func stepSentences(s *plan.Step, within string) []string {
	text := strings.TrimSuffix(clean(s.Prose()), ":") + zero(s.Phase != "", " (“"+plain(s.Phase, 40)+"”)")
	out := []string{title(within+text) + "."}
	for i := range s.Steps {
		out = append(out, stepSentences(&s.Steps[i], "within it: ")...)
	}
	return out
}

// methodsFigures says what the figures are and what their intervals mean.
func (v *view) methodsFigures() []string {
	files := 0
	for i := range v.result.Cases {
		for j := range v.result.Cases[i].Steps {
			if s := &v.result.Cases[i].Steps[j]; counts(&v.result.Cases[i], s) {
				files += len(s.Samples)
			}
		}
	}
	out := []string{zero(files > 0, count(files, "file")+" timed in rounds that count; no outlier was removed.")}
	if len(v.sections) > 0 {
		for _, general := range v.sharedText(v.sections[0].figures).general {
			if !strings.HasPrefix(general, "Published") && !strings.HasPrefix(general, "Ratio") {
				out = append(out, general)
			}
		}
	}
	run := 0
	for _, w := range v.warnings {
		if w.Run {
			run++
			out = append(out, title(w.Text)+".")
		}
	}
	if n := len(v.warnings) - run; n > 0 {
		out = append(out, count(n, "further warning")+" on single cases and figures: see the report.")
	}
	return out
}
