package text

import (
	"strings"

	"dmgbench/internal/report"
)

const (
	useBarColumns = 8  // width of the longest bar of a candidate
	useReason     = 70 // characters of the reason why a candidate has no figure
)

// uses prints the matrix of uses: for each use a line with the choice and a
// table of its candidates, which are rows here, as more columns than a few fit
// no terminal.
func (w *terminal) uses(m report.UseMatrix) {
	if m.Scope != "" {
		w.wrap("  ", w.paint(yellow, m.Scope))
	}
	for _, r := range m.Rows {
		by := ""
		if len(r.Headings) == 1 && r.Choice != "" { // it needs no line of its own
			by, r.Headings = ", by "+r.Headings[0], []string{""}
		}
		w.wrap("  ", w.paint(bold, r.Use)+" → "+w.paint(styles[r.Class], strings.TrimSpace(r.Word+" "+r.Choice))+by)
		w.table(useTable(r))
		if r.Needs != "" {
			w.wrap(tableIndent, "to decide: "+r.Needs)
		}
		for _, a := range r.Advice {
			w.wrap(tableIndent, "advice: "+a.Text+" ("+a.Note+"): "+w.paint(styles[a.Class], a.Label))
		}
	}
	w.paragraphs(report.NonEmpty([]string{m.Legend, m.Basis}))
}

// useTable has a row for each candidate: the figures that decided with their
// bars, and what the last of them came to.
func useTable(r report.UseRow) report.Table {
	t := report.Table{Columns: report.Columns("<")}
	for _, title := range r.Headings {
		t.Columns = append(t.Columns, report.Column{Title: title}, report.Column{Text: true})
	}
	t.Columns = append(t.Columns, report.Column{Text: true})
	for _, c := range r.Cells {
		if c.Title == "" {
			continue
		}
		row := make([]report.Cell, len(t.Columns))
		row[0] = report.Cell{Text: align(c.Mark, 2, true) + c.Title, Class: c.Class}
		last := &row[len(row)-1]
		for i, f := range c.Figures {
			row[1+2*i].Text = f.Value
			row[2+2*i] = report.Cell{Text: bar(f.Bar, useBarColumns), Bar: f.Bar}
			*last = report.Cell{Text: f.Rank, Class: f.Class}
		}
		if c.Missing != "" {
			*last = report.Cell{Text: "not measured: " + report.Plain(c.Missing, useReason), Class: "muted"}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
