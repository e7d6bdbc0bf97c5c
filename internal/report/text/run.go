package text

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/report/chart"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
)

// The most that a form has of each: one screen, a terminal in full, and
// Markdown.
const (
	screenRows       = 6
	screenNotDone    = 3
	screenWeaknesses = 2
	terminalWarnings = 8
	summaryColumns   = 400 // of a sentence in a summary; a page wraps it
	trendTableRows   = 20  // of the table that follows a trend in Markdown; more rows would hide what follows
)

// Run prints the report of a run for a terminal.
func Run(w io.Writer, p *plan.Plan, r *result.Result, o Options) error {
	t := newTerminal(o)
	if o.Verbose {
		t.document(fullReport(chart.NewView(p, r), false))
	} else {
		t.document(screenReport(report.NewView(p, r), t.width))
	}
	return deliver(w, t.Bytes(), "report of run "+r.Run)
}

// RunMarkdown prints the report of a run for a repository or an issue, without
// pictures.
func RunMarkdown(w io.Writer, p *plan.Plan, r *result.Result) error {
	return deliver(w, markdown(fullReport(chart.NewView(p, r), true)), "report of run "+r.Run)
}

// RunSummary prints the first screen of the report as Markdown, such as for the
// summary of a job on a CI server.
func RunSummary(w io.Writer, p *plan.Plan, r *result.Result) error {
	return deliver(w, markdown(screenReport(report.NewView(p, r), summaryColumns)), "summary of run "+r.Run)
}

// DocumentMarkdown prints a document for a repository or an issue.
func DocumentMarkdown(w io.Writer, d report.Document) error {
	d.Sections = withTrends(d.Sections, func(c report.Chart) []report.Section {
		t := c.Table
		t.Rows = t.Rows[:min(len(t.Rows), trendTableRows)]
		left := len(c.Table.Rows) - len(t.Rows)
		rest := report.TextIf(left > 0, report.Count(left, "older run")+" left out of this table.")
		return []report.Section{trendSection(c),
			{Table: &t, After: wording.NonEmpty([]string{rest, strings.Join(c.Notes, " ")})}}
	})
	return deliver(w, markdown(d), d.Title)
}

// markdown is a document with one line feed at its end.
func markdown(d report.Document) []byte {
	return []byte(strings.TrimRight(report.Render("document.md", d), "\n") + "\n")
}

// Tables hands every table of the plan to save as HTML, Markdown and TSV, in
// the order of the plan and under a file name of its own. The same result gives
// the same bytes.
func Tables(p *plan.Plan, r *result.Result, save func(name string, text []byte) error) error {
	unique := report.Namer("-again-")
	for _, t := range report.NewView(p, r).PlanTables {
		name := unique(t.File)
		for _, form := range t.Forms() {
			if err := save(name+form.Suffix, []byte(form.Text)); err != nil {
				return fmt.Errorf("saving table %q: %w", name, err)
			}
		}
	}
	return nil
}

// screenReport is the report on one screen: what ran on what, one table, the
// count of verdicts with those that do not hold or are undecided, and what
// weakens the answer most. width is that of the screen.
func screenReport(v *report.View, width int) report.Document {
	sections := append(headSections(v), screenNumbers(v.First)...)
	if v.First.Uses != nil {
		sections = usesSections(v.First)
	}
	judged := report.Section{Heading: strings.Join(v.First.Judged[:min(len(v.First.Judged), 1)], "")}
	isOpen := func(c report.ClaimView) bool {
		return c.Verdict == result.DoesNotHold || c.Verdict == result.CannotTell
	}
	all := report.FlatMap(v.Claims, func(g report.ClaimGroup) []report.ClaimView { return g.Claims })
	left, open := len(report.Where(all, isOpen)), report.Where(v.First.Claims, isOpen)
	judged.Items = report.Map(open, func(c report.ClaimView) report.Item {
		return report.Item{Label: c.Word, Class: c.Verdict, Text: c.Says}
	})
	if judged.Heading != "" {
		judged.ID, judged.Lead = "judged", v.First.Judged[1:]
		judged.After = more(report.Grouped, left-len(judged.Items))
	}
	missing := notDone(v)
	cases := func(n int) string { return report.Count(n, "case") }
	missing.After = more(cases, len(missing.Items)-screenNotDone)
	missing.Items = missing.Items[:min(len(missing.Items), screenNotDone)]
	counts := report.Where(v.First.Counts, func(text string) bool { // another section lists what is missing
		return text != v.First.Missing
	})
	if v.First.Uses != nil { // cells of the matrix have the reasons
		missing.Items, missing.After = nil, nil
	}
	weak := report.Map(v.First.Weak[:min(len(v.First.Weak), screenWeaknesses)],
		func(text string) string { return report.Shorten(text, width-len(tableIndent)) })
	return filled(v, append(sections, judged, missing, report.Section{Heading: weaknesses, Items: report.Items(weak...),
		After: inAll(counts)}))
}

// screenNumbers is the table of the first screen: the first of its rows, with
// the codes of formats and the notes that explain the intervals.
func screenNumbers(f report.FirstScreen) []report.Section {
	if f.Outcome != nil || f.Numbers == nil {
		return tableSections(mainTable(f)...)
	}
	t := *f.Numbers
	t.Rows = slices.Clone(t.Rows[:min(len(t.Rows), screenRows)])
	isLong := slices.ContainsFunc(t.Rows, func(row []report.Cell) bool {
		return report.Width(row[0].Text) > nameColumns
	})
	for i, row := range t.Rows {
		t.Rows[i] = report.Map(row, func(c report.Cell) report.Cell {
			if c.Marks = nil; c.Class == "warn" {
				c.Class = "" // a colour alone would not show why
			}
			return c
		})
		if isLong {
			t.Rows[i][0].Text = plan.FormatCodes(row[0].Text)
		}
	}
	t.Notes = report.Where(t.Notes, func(n report.Note) bool {
		return strings.HasPrefix(n.Text, "Interval") || strings.HasPrefix(n.Text, "Published values")
	})
	s := tableSections(t)
	s[0].After = more(func(n int) string { return report.Count(n, "case") }, len(f.Numbers.Rows)-screenRows)
	return s
}

// usesSections are the matrix of uses, which names machine, system and engine
// itself.
func usesSections(f report.FirstScreen) []report.Section {
	return []report.Section{{Heading: f.Uses.Caption, Uses: f.Uses}}
}

// fullReport has everything, with the tables of charts instead of their
// pictures, for a terminal or to publish as Markdown.
//
// What people publish has the summary of the plan, the evidence of the verdicts,
// all warnings, and what repeats the run. These would fill many screens of a
// terminal.
func fullReport(v *report.View, toPublish bool) report.Document {
	sections := headSections(v)
	if toPublish {
		sections[0].Lead = append(sections[0].Lead, wording.NonEmpty([]string{v.Summary})...)
	}
	above := v.First.Above()
	if v.First.Uses != nil {
		sections = append(sections, usesSections(v.First)...)
	}
	sections = append(sections, report.Section{Heading: "What was judged", Lead: v.First.Judged},
		report.Section{Heading: weaknesses, After: inAll(v.First.Counts),
			Lead: wording.NonEmpty([]string{report.TextIf(above != "", report.Capitalize(above)+".")})})
	sections = append(sections, tableSections(mainTable(v.First)...)...)
	sections = append(sections, report.Section{Heading: "Verdicts: " + report.CountVerdicts(v.Claims),
		Items: report.ClaimItems(v.Claims, toPublish)})
	sections = append(sections, report.Section{Heading: v.DeviationsHeading, Items: report.Map(v.Deviations,
		func(d report.Deviation) report.Item { return report.Item{Text: d.Text, Note: d.Cases} })})
	figures := report.FlatMap(v.Sections, func(s report.FigureSection) []report.Table { return s.Tables })
	tables := slices.Concat(v.OtherTables(), figures, v.Fits, v.Relations, chartTables(v.Charts, toPublish))
	sections = append(append(sections, tableSections(tables...)...), notDone(v))
	warnings := report.Section{Heading: "Warnings: " + report.Grouped(len(v.Warnings)), Items: report.Map(v.Warnings,
		func(w report.Warning) report.Item { return report.Item{Text: w.Text, Note: w.Where} })}
	if toPublish { // the legend of formats, the settings, and what repeats the run
		sections = append(sections, warnings, report.Section{Heading: "Formats", Items: report.Map(v.Legend, pairItem)},
			report.Section{Heading: "Settings", Pairs: v.Settings})
		for _, host := range v.Hosts {
			sections = append(sections, report.Section{Pairs: host})
		}
		return filled(v, append(sections, report.Section{Heading: "How to repeat", Language: "sh", Code: v.Repeat},
			report.Section{Heading: "The plan as executed", Language: "toml", Code: v.Canonical}))
	}
	warnings.After = more(report.Grouped, len(warnings.Items)-terminalWarnings)
	warnings.Items = warnings.Items[:min(len(warnings.Items), terminalWarnings)]
	return filled(v, append(sections, warnings))
}

// headSections are the source of the plan and the facts of the run, and which
// tools were not measured: that changes the meaning of every number after it.
func headSections(v *report.View) []report.Section {
	source := report.TextIf(v.Source != "", "First published by "+v.Source+".")
	return []report.Section{{Lead: wording.NonEmpty([]string{source}), Pairs: v.Facts},
		{Alert: v.First.Notice != "", Lead: wording.NonEmpty([]string{v.First.Notice})}}
}

// chartTables are the tables of the charts that show figures of their own.
// Others draw what a table of figures has, or have so many rows that they
// belong into an export.
//
// Cost, drift, heat maps and lives are in no table of figures; a terminal has the
// costs, as the others would fill many screens.
func chartTables(charts []report.Chart, toPublish bool) []report.Table {
	var out []report.Table
	for _, c := range charts {
		own := c.Section == "cost" || toPublish && (c.Section == "drift" || strings.HasPrefix(c.ID, "heat-") ||
			strings.HasPrefix(c.ID, "life-case-"))
		if !own || len(c.Table.Rows) == 0 {
			continue
		}
		t := c.Table
		texts := append([]string{c.Sub}, c.Notes[:len(c.Notes)-1]...) // the last note is where the numbers come from
		notes := report.Map(texts, func(text string) report.Note { return report.Note{Text: text} })
		t.Notes = append(notes, t.Notes...)
		out = append(out, t)
	}
	return out
}

// weaknesses is the heading of what weakens the answer most, and of the rest in
// numbers.
const weaknesses = "What weakens the answer"

func inAll(counts []string) []string {
	return wording.NonEmpty([]string{report.TextIf(len(counts) > 0, "In all: "+strings.Join(counts, ", ")+".")})
}

// mainTable is the table of the first screen, if there is one.
func mainTable(f report.FirstScreen) []report.Table {
	if t := cmp.Or(f.Outcome, f.Numbers); t != nil {
		return []report.Table{*t}
	}
	return nil
}

// notDone are the cases, rounds and steps without figures, with the reason of
// each.
func notDone(v *report.View) report.Section {
	return report.Section{Heading: "Not measured, or not in full", Items: report.Map(v.NotDone, pairItem)}
}

func pairItem(p report.Pair) report.Item { return report.Item{Label: p.Name, Text: p.Value} }

// tableSections are tables with their captions as headings.
func tableSections(tables ...report.Table) []report.Section {
	return report.Map(tables, func(t report.Table) report.Section {
		return report.Section{Heading: t.Caption, Table: &t}
	})
}

// more counts what is left out of a form, if anything is.
func more(count func(int) string, left int) []string {
	if left <= 0 {
		return nil
	}
	return []string{"… and " + count(left) + " more in the report."}
}

// filled is a document of the sections that have contents, or an id.
func filled(v *report.View, sections []report.Section) report.Document {
	return report.Document{Title: v.Title, Sections: slices.DeleteFunc(sections, func(s report.Section) bool {
		return s.ID == "" && s.Table == nil && s.Uses == nil &&
			len(s.Lead)+len(s.Pairs)+len(s.Items)+len(s.After)+len(s.Code) == 0
	})}
}
