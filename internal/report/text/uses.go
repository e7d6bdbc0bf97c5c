package text

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"dmgbench/internal/report"
)

const (
	useBarColumns = 8  // width of the longest bar of a candidate
	useIndent     = 6  // of further lines of a heading, more than that of candidates
	useReason     = 32 // characters of the reason why there is no figure, about as many as an outcome has
	useSlack      = 16 // characters that two lines may lose to indents and where they are broken
	mostDetail    = 2  // of lines of candidates
)

// sourceYear matches a source with what lies between its author and its year.
var sourceYear = regexp.MustCompile(`^([^,]+),(?:.*\D)?(\d{4})$`)

// uses prints the matrix of uses: for each use the choice and a line for each
// candidate, as columns of them fit no terminal.
func (w *terminal) uses(m report.UseMatrix) {
	room := w.width - len(tableIndent)
	w.wrap("  ", w.paint(yellow, m.Scope))
	for _, r := range m.Rows {
		by := report.TextIf(r.Choice != "", ", by "+strings.Join(r.Headings, ", then "))
		choice := w.paint(styles[r.Class], strings.TrimSpace(r.Word+" "+r.Choice))
		fmt.Fprintln(w, Wrap("  ", w.paint(bold, r.Use)+" → "+choice+by, useIndent, w.width))
		w.candidates(r)
		w.wrap(tableIndent, w.short(report.TextIf(r.Needs != "", "would decide it: ")+r.Needs, room))
		for _, a := range r.Advice { // on one line with author and year
			says, source := strings.Trim(a.Text, "“”"), a.Note
			if !w.verbose {
				source = sourceYear.ReplaceAllString(source, "$1, $2")
			}
			says = w.short(says, max(room-report.Width("“” (): "+source+a.Label), 1))
			w.wrap(tableIndent, "“"+says+"” ("+source+"): "+w.paint(styles[a.Class], a.Label))
		}
	}
	for _, text := range []string{m.Legend, m.Basis} { // on two lines
		w.wrap("  ", w.short(text, 2*w.width-useSlack))
	}
}

// short cuts a text to a number of characters, unless the report is verbose.
func (w *terminal) short(text string, limit int) string {
	if w.verbose {
		return text
	}
	return report.Shorten(text, limit)
}

// candidates prints a line for each candidate, without intervals of figures or
// without bars too, where these do not fit.
func (w *terminal) candidates(r report.UseRow) {
	isLong := func(line string) bool { return report.Width(line) > w.width }
	detail := mostDetail
	for ; detail > 0; detail-- {
		wide := &terminal{width: 1 << 12} // more than any line needs
		if wide.table(w.useTable(r, detail)); !slices.ContainsFunc(strings.Split(wide.String(), "\n"), isLong) {
			break
		}
	}
	w.table(w.useTable(r, detail))
}

// useTable has a row for each candidate: the figures that decided, with bars
// from detail 1 on and intervals at 2, and what the last of them came to.
func (w *terminal) useTable(r report.UseRow, detail int) report.Table {
	t := report.Table{Columns: report.Columns(slices.Concat([]string{"<"},
		slices.Repeat([]string{"", "<"}, len(r.Headings)), []string{"<"})...)}
	for _, c := range report.Where(r.Cells, func(c report.UseCell) bool { return c.Title != "" }) {
		row := make([]report.Cell, len(t.Columns))
		row[0] = report.Cell{Text: align(c.Mark, 2, true) + c.Title, Class: c.Class}
		last := &row[len(row)-1]
		for i, f := range c.Figures {
			row[1+2*i].Text = f.Value + report.TextIf(detail == mostDetail && f.Span > 0, " ("+f.Interval+")")
			row[2+2*i].Text = report.TextIf(detail > 0, bar(f.Bar, useBarColumns))
			*last = report.Cell{Text: f.Rank, Class: f.Class}
		}
		if c.Missing != "" {
			*last = report.Cell{Text: w.short(c.Missing, useReason), Class: "muted"}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
