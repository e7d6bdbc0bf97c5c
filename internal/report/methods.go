package report

import (
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/wording"
)

// MethodsDocument has the Methods paragraphs of a run for an article: machine,
// engine, cases that were measured and those that were not, files, every step
// in a sentence, statistics, and all deviations from what was published. Each
// paragraph is a lead of its own; steps and deviations are lists.
func MethodsDocument(p *plan.Plan, r *result.Result) Document {
	v := NewView(p, r)
	d := Document{Title: "Methods"}
	paragraph := func(sentences []string) {
		if text := strings.Join(NonEmpty(sentences), " "); text != "" {
			d.Sections = append(d.Sections, Section{Lead: []string{text}})
		}
	}
	paragraph(v.methodsOfRun())
	paragraph(v.methodsOfCases())
	d.Sections = append(d.Sections, protocolSections(p)...)
	paragraph(v.methodsOfFigures())
	if len(v.Deviations) > 0 {
		from := "what was published"
		if v.Source == "" {
			from = "the plan as written"
		}
		s := Section{Lead: []string{wording.Text("methods-deviations", from)}}
		for _, dev := range v.Deviations {
			s.Items = append(s.Items, Item{Text: dev.Text + TextIf(dev.Cases != "", " ("+dev.Cases+")") + "."})
		}
		d.Sections = append(d.Sections, s)
	}
	return d
}

// methodsOfRun states which program ran the plan, when, and on which machine.
func (v *View) methodsOfRun() []string {
	r := v.Result
	list := func(name string, of func(result.Host) string) string {
		texts := v.distinct(of)
		return TextIf(len(texts) > 0, name+": "+strings.Join(texts, "; ")+".")
	}
	return []string{
		wording.Text("methods-run", Plain(FirstOf(r.Plan.Name, v.Plan.Name), 80),
			TextIf(v.Source != "", ", after "+v.Source+","), toolName(r.Tool)+goVersion(r.Tool), TextIf(v.when() != "", " on "+v.when())),
		list("Machine", machine), list("System", system), list("Disk", disks),
		TextIf(len(v.engines()) > 0, "Engine: "+strings.Join(v.engines(), "; ")+"."),
		v.engineNotice(),
		TextIf(r.Plan.Digest != "", wording.Text("methods-plan", Plain(r.Plan.Digest, 80), r.Seed)),
	}
}

// methodsOfCases states what was measured, and what was not and why.
func (v *View) methodsOfCases() []string {
	var done, rest, out []string
	for i := range v.Result.Cases {
		c := &v.Result.Cases[i]
		if c.Status == result.Done {
			done = append(done, v.CaseName(c.ID))
		} else {
			why := Plain(c.Status, 20) + TextIf(c.Reason != "", ": "+Plain(c.Reason, 300))
			rest = append(rest, v.CaseName(c.ID)+" ("+why+")")
		}
	}
	if len(done) > 0 {
		out = append(out, wording.Text("methods-cases", Count(len(done), "case"), Count(v.Result.Rounds, "round"),
			strings.Join(done, "; ")))
	}
	if len(rest) > 0 {
		out = append(out, wording.Text("methods-not-measured", strings.Join(rest, "; ")))
	}
	for i := range v.Plan.Files {
		f := &v.Plan.Files[i]
		out = append(out, wording.Text("methods-files", Plain(f.Name, 40), Clean(f.Prose())))
	}
	for _, kind := range []string{"cache", "sync"} {
		if text := v.achieved(kind); text != "" {
			out = append(out, wording.Text("methods-achieved", Capitalize(kind), text))
		}
	}
	return out
}

// protocolSections are the steps of the plan as numbered sentences, with the
// cases that they are for.
func protocolSections(p *plan.Plan) []Section {
	var out []Section
	n := 0
	for i := range p.Protocol {
		b := &p.Protocol[i]
		where := TextIf(len(b.When) > 0, "where "+Clean(b.When.Prose())+" ")
		s := Section{Lead: []string{wording.Text("methods-steps", where, TextIf(n > 0, " as well"))}}
		for j := range b.Steps {
			for _, text := range stepSentences(&b.Steps[j], "") {
				n++
				s.Items = append(s.Items, Item{Label: fmt.Sprintf("%d.", n), Text: text})
			}
		}
		out = append(out, s)
	}
	return out
}

// stepSentences are a step, and the steps that it repeats or runs at once.
func stepSentences(s *plan.Step, within string) []string {
	text := strings.TrimSuffix(Clean(s.Prose()), ":") + TextIf(s.Phase != "", " (“"+Plain(s.Phase, 40)+"”)")
	out := []string{Capitalize(within+text) + "."}
	for i := range s.Steps {
		out = append(out, stepSentences(&s.Steps[i], "within it: ")...)
	}
	return out
}

// methodsOfFigures states what the figures are, what their intervals mean, and
// the warnings about the run.
func (v *View) methodsOfFigures() []string {
	files := 0
	for i := range v.Result.Cases {
		c := &v.Result.Cases[i]
		for j := range c.Steps {
			if IsShown(c, &c.Steps[j]) {
				files += len(c.Steps[j].Samples)
			}
		}
	}
	out := []string{TextIf(files > 0, wording.Text("methods-timed", Count(files, "file")))}
	if len(v.Sections) > 0 {
		out = append(out, v.Sections[0].Figures.sharedNotes().method(false)...)
	}
	single := slices.DeleteFunc(slices.Clone(v.Warnings), func(w Warning) bool { return w.Run })
	for _, w := range v.Warnings {
		if w.Run {
			out = append(out, Capitalize(w.Text)+".")
		}
	}
	if n := len(single); n > 0 {
		out = append(out, wording.Text("methods-warnings", Count(n, "further warning")))
	}
	return out
}
