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
	return deliver(w, NewView(p, r).methods(), "methods", r.Run)
}

func (v *View) methods() []byte {
	w := &textWriter{width: 80}
	w.wrapped("", "Methods")
	paragraph := func(sentences ...string) {
		if text := strings.Join(NonEmpty(sentences), " "); text != "" {
			fmt.Fprintln(w)
			w.wrapped("", text)
		}
	}
	paragraph(v.methodsWhere()...)
	paragraph(v.methodsCases()...)
	w.protocol(v.Plan)
	paragraph(v.methodsFigures()...)
	if len(v.Deviations) > 0 {
		paragraph("What was run differs from " + TextIf(v.Source != "", "what was published") + TextIf(v.Source == "", "the plan as written") + " as follows.")
		for _, d := range v.Deviations {
			w.wrapped("  - ", d.Text+TextIf(d.Cases != "", " ("+d.Cases+")")+".")
		}
	}
	return bytes.TrimLeft(w.Bytes(), "\n")
}

// methodsWhere says who ran what on which machine and when.
func (v *View) methodsWhere() []string {
	r := v.Result
	return []string{
		"The plan “" + Plain(FirstOf(r.Plan.Name, v.Plan.Name), 80) + "”" + TextIf(v.Source != "", ", after "+v.Source+",") + " was run by " +
			Plain(strings.TrimSpace(r.Tool.Name+" "+r.Tool.Version), 80) + goVersion(r.Tool) + TextIf(v.when() != "", " on "+v.when()) + ".",
		"Machine: " + strings.Join(v.distinct(machine), "; ") + ". System: " + strings.Join(v.distinct(system), "; ") + "." +
			TextIf(len(v.distinct(disks)) > 0, " Disk: "+strings.Join(v.distinct(disks), "; ")+".") + " Engine: " + strings.Join(v.engines(), "; ") + ".",
		v.engineNotice(),
		TextIf(r.Plan.Digest != "", "SHA-256 of the plan as executed: "+Plain(r.Plan.Digest, 80)+"; seed "+fmt.Sprint(r.Seed)+"."),
	}
}

// methodsCases says what was measured, and what was not and why.
func (v *View) methodsCases() []string {
	var done, rest []string
	for i := range v.Result.Cases {
		c := &v.Result.Cases[i]
		if c.Status == result.Done {
			done = append(done, v.CaseName(c.ID))
			continue
		}
		rest = append(rest, v.CaseName(c.ID)+" ("+Plain(c.Status, 20)+TextIf(c.Reason != "", ": "+Plain(c.Reason, 300))+")")
	}
	var out []string
	if len(done) > 0 {
		out = append(out, Count(len(done), "case")+" measured in "+Count(v.Result.Rounds, "round")+", each with a fresh container and in an order shuffled anew for each round: "+
			strings.Join(done, "; ")+".")
	}
	if len(rest) > 0 {
		out = append(out, "Not measured in full: "+strings.Join(rest, "; ")+".")
	}
	for i := range v.Plan.Files {
		f := &v.Plan.Files[i]
		out = append(out, "Files “"+Plain(f.Name, 40)+"”: "+Clean(f.Prose())+".")
	}
	for _, kind := range []string{"cache", "sync"} {
		if text := v.achieved(kind); text != "" {
			out = append(out, Capitalize(kind)+", asked → achieved: "+text+".")
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
		w.wrapped("", "Each case "+TextIf(len(b.When) > 0, "where "+Clean(b.When.Prose())+" ")+"went through these steps"+TextIf(n > 0, " as well")+".")
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
	text := strings.TrimSuffix(Clean(s.Prose()), ":") + TextIf(s.Phase != "", " (“"+Plain(s.Phase, 40)+"”)")
	out := []string{Capitalize(within+text) + "."}
	for i := range s.Steps {
		out = append(out, stepSentences(&s.Steps[i], "within it: ")...)
	}
	return out
}

// methodsFigures says what the figures are and what their intervals mean.
func (v *View) methodsFigures() []string {
	files := 0
	for i := range v.Result.Cases {
		for j := range v.Result.Cases[i].Steps {
			if s := &v.Result.Cases[i].Steps[j]; IsShown(&v.Result.Cases[i], s) {
				files += len(s.Samples)
			}
		}
	}
	out := []string{TextIf(files > 0, Count(files, "file")+" timed in rounds that count; no outlier was removed.")}
	if len(v.Sections) > 0 {
		for _, general := range v.sharedText(v.Sections[0].Figures).general {
			if !strings.HasPrefix(general, "Published") && !strings.HasPrefix(general, "Ratio") {
				out = append(out, general)
			}
		}
	}
	run := 0
	for _, w := range v.Warnings {
		if w.Run {
			run++
			out = append(out, Capitalize(w.Text)+".")
		}
	}
	if n := len(v.Warnings) - run; n > 0 {
		out = append(out, Count(n, "further warning")+" on single cases and figures: see the report.")
	}
	return out
}
