package text

import (
	"io"
	"slices"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/report/chart"
	"dmgbench/internal/result"
)

// form is a set of forms of the report of a run.
//
// A bit for each, since a section may belong to several.
type form int

const (
	screen   form = 1 << iota // one screen of a terminal
	verbose                   // a terminal, in full
	document                  // Markdown
)

// The most that the report on one screen has of each.
const (
	screenRows       = 6
	screenNotDone    = 3
	screenWeaknesses = 2
)

// terminalWarnings is the most warnings that a terminal shows.
const terminalWarnings = 8

// run is what the sections of a run's report are made from.
type run struct {
	*report.View
	form  form
	width int // of the terminal, in columns
}

// sections is the registry of the sections of a run's report, in order, with
// the forms that have them. A section that has neither contents nor an id is
// not printed.
var sections = []struct {
	forms form
	build func(run) []report.Section
}{
	{screen | verbose | document, head},
	{screen | verbose | document, notice},
	{verbose | document, judged},
	{verbose | document, weaknesses},
	{screen | verbose | document, mainNumbers},
	{screen, screenVerdicts},
	{verbose | document, verdicts},
	{verbose | document, deviations},
	{verbose | document, tables},
	{verbose, blockPictures},
	{document, chartTables},
	{screen | verbose | document, notDone},
	{screen, weaknesses},
	{verbose | document, warnings},
	{document, appendix},
}

// Run prints the report of a run for a terminal.
func Run(w io.Writer, p *plan.Plan, r *result.Result, o Options) error {
	t := newTerminal(o)
	form := screen
	if o.Verbose {
		form = verbose
	}
	v := report.NewView(p, r)
	if o.Verbose { // one screen has no charts
		v = chart.NewView(p, r)
	}
	t.document(runDocument(v, form, t.width))
	return deliver(w, t.Bytes(), "report of run "+r.Run)
}

// runDocument has the sections of a form.
func runDocument(v *report.View, form form, width int) report.Document {
	d := report.Document{Title: v.Title}
	for _, s := range sections {
		if s.forms&form != 0 {
			d.Sections = append(d.Sections, s.build(run{v, form, width})...)
		}
	}
	d.Sections = slices.DeleteFunc(d.Sections, func(s report.Section) bool {
		return s.ID == "" && len(s.Lead)+len(s.Pairs)+len(s.Items)+len(s.After)+len(s.Code) == 0 && s.Table == nil
	})
	return d
}

func one(s report.Section) []report.Section { return []report.Section{s} }

// more counts what is left out of a form.
func more(left string) []string { return []string{"… and " + left + " more in the report."} }

func items[T any](list []T, item func(T) report.Item) []report.Item {
	var out []report.Item
	for _, x := range list {
		out = append(out, item(x))
	}
	return out
}

func pairItem(p report.Pair) report.Item { return report.Item{Label: p.Name, Text: p.Value} }

// tableSections are tables with their captions as headings.
func tableSections(tables ...report.Table) []report.Section {
	out := make([]report.Section, len(tables))
	for i := range tables {
		out[i] = report.Section{Heading: tables[i].Caption, Table: &tables[i]}
	}
	return out
}

// head is the source of the plan and the facts of the run; Markdown, which
// people publish, has the summary as well.
func head(r run) []report.Section {
	lead := []string{report.TextIf(r.Source != "", "First published by "+r.Source+".")}
	if r.form == document {
		lead = append(lead, r.Summary)
	}
	return one(report.Section{Lead: report.NonEmpty(lead), Pairs: r.Facts})
}

// notice states which tools were not measured: it changes the meaning of every
// number after it.
func notice(r run) []report.Section {
	return one(report.Section{Alert: r.First.Notice != "", Lead: report.NonEmpty([]string{r.First.Notice})})
}

// judged counts the verdicts.
func judged(r run) []report.Section {
	return one(report.Section{Heading: "What was judged", Lead: r.First.Judged})
}

// weaknesses are what weakens the answer most, and the rest in numbers.
func weaknesses(r run) []report.Section {
	s := report.Section{Heading: "What weakens the answer"}
	counts := r.First.Counts
	if r.form == screen {
		s.Items = report.Items(r.First.Weak[:min(len(r.First.Weak), screenWeaknesses)]...)
		listed := func(text string) bool { return text == r.First.Missing } // by another section
		counts = slices.DeleteFunc(slices.Clone(counts), listed)
	} else if above := r.First.Above(); above != "" {
		s.Lead = []string{report.Capitalize(above) + "."}
	}
	if len(counts) > 0 {
		s.After = []string{"In all: " + strings.Join(counts, ", ") + "."}
	}
	return one(s)
}

// mainNumbers is the table of the first screen. One screen has the first of its
// rows, with the codes of formats and the notes that explain the intervals.
func mainNumbers(r run) []report.Section {
	if r.First.Outcome != nil {
		return tableSections(*r.First.Outcome)
	}
	if r.First.Numbers == nil {
		return nil
	}
	t := *r.First.Numbers
	if r.form != screen {
		return tableSections(t)
	}
	left := len(t.Rows) - screenRows
	t.Rows = slices.Clone(t.Rows[:min(len(t.Rows), screenRows)])
	var names []string
	for _, row := range t.Rows {
		names = append(names, row[0].Text)
	}
	for i, name := range shortNames(names, nameColumns) {
		t.Rows[i] = slices.Clone(t.Rows[i])
		t.Rows[i][0].Text = name
		for k := range t.Rows[i] {
			t.Rows[i][k].Marks = nil
		}
	}
	t.Notes = slices.DeleteFunc(slices.Clone(t.Notes), func(n report.Note) bool {
		return !strings.HasPrefix(n.Text, "Interval") && !strings.HasPrefix(n.Text, "Published values")
	})
	s := tableSections(t)
	if left > 0 {
		s[0].After = more(report.Count(left, "case"))
	}
	return s
}

// screenVerdicts counts the verdicts, and names the claims that do not hold or
// are undecided.
func screenVerdicts(r run) []report.Section {
	if len(r.First.Judged) == 0 {
		return nil
	}
	s := report.Section{ID: "judged", Heading: r.First.Judged[0], Lead: r.First.Judged[1:]}
	for _, c := range r.First.Claims {
		if c.Verdict == result.DoesNotHold || c.Verdict == result.CannotTell {
			s.Items = append(s.Items, report.Item{Label: c.Word, Class: c.Verdict, Text: c.Says})
		}
	}
	left := -len(s.Items)
	for _, g := range r.Claims {
		if g.Verdict == result.DoesNotHold || g.Verdict == result.CannotTell {
			left += len(g.Claims)
		}
	}
	if left > 0 {
		s.After = more(report.Grouped(left))
	}
	return one(s)
}

// verdicts are all claims. A terminal shows them without their evidence, which
// would fill many screens.
func verdicts(r run) []report.Section {
	return one(report.Section{Heading: "Verdicts: " + report.CountVerdicts(r.Claims),
		Items: report.ClaimItems(r.Claims, r.form == document)})
}

// deviations are the differences between the plan as published, or as written,
// and the run.
func deviations(r run) []report.Section {
	return one(report.Section{Heading: r.DeviationsHeading, Items: items(r.Deviations,
		func(d report.Deviation) report.Item { return report.Item{Text: d.Text, Note: d.Cases} })})
}

// tables are the tables of the plan, of figures, fits and relations.
func tables(r run) []report.Section {
	all := slices.Clone(r.OtherTables())
	for _, s := range r.Sections {
		all = append(all, s.Tables...)
	}
	return tableSections(slices.Concat(all, r.Fits, r.Relations)...)
}

func blockPictures(r run) []report.Section { return pictures(r.Charts, r.width) }

// chartTables are the tables of the charts that show figures of their own.
// Others draw what a table of figures has, or have so many rows that they
// belong into an export.
//
// Cost, drift, heat maps and lives are in no table of figures.
func chartTables(r run) []report.Section {
	var out []report.Section
	for _, c := range r.Charts {
		own := c.Section == "cost" || c.Section == "drift" || strings.HasPrefix(c.ID, "heat-") ||
			strings.HasPrefix(c.ID, "life-case-")
		if !own || len(c.Table.Rows) == 0 {
			continue
		}
		t := c.Table
		notes := []report.Note{{Text: c.Sub}}
		for _, text := range c.Notes[:len(c.Notes)-1] { // the last note is where the numbers come from
			notes = append(notes, report.Note{Text: text})
		}
		t.Notes = append(notes, t.Notes...)
		out = append(out, tableSections(t)...)
	}
	return out
}

// notDone are the cases, rounds and steps without figures, with the reason of
// each.
func notDone(r run) []report.Section {
	s := report.Section{Heading: "Not measured, or not in full", Items: items(r.NotDone, pairItem)}
	if left := len(s.Items) - screenNotDone; r.form == screen && left > 0 {
		s.Items, s.After = s.Items[:screenNotDone], more(report.Count(left, "case"))
	}
	return one(s)
}

// warnings are all warnings with their places; a terminal has the first ones.
func warnings(r run) []report.Section {
	s := report.Section{Heading: "Warnings: " + report.Grouped(len(r.Warnings)), Items: items(r.Warnings,
		func(w report.Warning) report.Item { return report.Item{Text: w.Text, Note: w.Where} })}
	if left := len(s.Items) - terminalWarnings; r.form == verbose && left > 0 {
		s.Items, s.After = s.Items[:terminalWarnings], more(report.Grouped(left))
	}
	return one(s)
}

// appendix is the legend of formats, the settings, and what repeats the run.
func appendix(r run) []report.Section {
	out := []report.Section{{Heading: "Formats", Items: items(r.Legend, pairItem)},
		{Heading: "Settings", Pairs: r.Settings}}
	for _, host := range r.Hosts {
		out = append(out, report.Section{Pairs: host})
	}
	return append(out, report.Section{Heading: "How to repeat", Language: "sh", Code: r.Repeat},
		report.Section{Heading: "The plan as executed", Language: "toml", Code: r.Canonical})
}
