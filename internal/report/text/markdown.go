package text

import (
	"fmt"
	"io"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/report/chart"
	"dmgbench/internal/result"
)

// trendTableRows is how many rows of the table that follows a trend Markdown
// has; the page has all.
//
// More rows would hide what follows.
const trendTableRows = 20

// DocumentMarkdown prints a document for a repository or an issue.
func DocumentMarkdown(w io.Writer, d report.Document) error {
	d.Sections = withTrends(d.Sections, func(c report.Chart) []report.Section {
		t := c.Table
		t.Rows = t.Rows[:min(len(t.Rows), trendTableRows)]
		left := len(c.Table.Rows) - len(t.Rows)
		rest := report.TextIf(left > 0, report.Count(left, "older run")+" left out of this table.")
		return []report.Section{trendSection(c),
			{Table: &t, After: report.NonEmpty([]string{rest, strings.Join(c.Notes, " ")})}}
	})
	return deliver(w, markdown(d), d.Title)
}

// RunMarkdown prints the report of a run for a repository or an issue, without
// pictures.
func RunMarkdown(w io.Writer, p *plan.Plan, r *result.Result) error {
	return deliver(w, markdown(runDocument(chart.NewView(p, r), document, 0)), "report of run "+r.Run)
}

// markdown is a document with one line feed at its end.
func markdown(d report.Document) []byte {
	return []byte(strings.TrimRight(report.Render("document.md", d), "\n") + "\n")
}

// Tables hands every table of the plan to save as HTML, Markdown and TSV, in
// the order of the plan and under a file name of its own. The same result gives
// the same bytes.
func Tables(p *plan.Plan, r *result.Result, save func(name string, text []byte) error) error {
	taken := map[string]int{}
	for _, t := range report.NewView(p, r).PlanTables {
		name := t.File
		if taken[t.File]++; taken[t.File] > 1 {
			name += fmt.Sprintf("-again-%d", taken[t.File])
		}
		for _, form := range t.Forms() {
			if err := save(name+form.Suffix, []byte(form.Text)); err != nil {
				return fmt.Errorf("saving table %q: %w", name, err)
			}
		}
	}
	return nil
}
