package result

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Tables that csv can be asked for.
var Tables = []string{"samples", "summaries", "steps", "tables"}

// Column is one column of a csv table.
type Column struct {
	Name string
	Doc  string // meaning, with the unit where the name does not say it

	value func(x *csvRow) any // of a row: text, number, truth value, or nil for an empty cell
}

// csvRow is what a row is about. Which of it is set depends on the table.
type csvRow struct {
	run      *Result
	of       *Case
	step     *Step
	sample   *Sample
	summary  *Summary
	estimate *Estimate

	table        *Table
	head, across *TableLine // of the row, of the column
	cell         *TableCell
}

// formatCell makes a cell of a value. Text is made harmless for spreadsheets, numbers are written as they are.
func formatCell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return PlainCell(v)
	case float64:
		return number(v)
	case bool:
		return strconv.FormatBool(v)
	}
	return fmt.Sprint(v) // integers
}

// PlainCell makes text a cell that a spreadsheet does not take for a formula: what
// starts with = + - @ (ASCII or full width), tab or line break gets a leading '.
func PlainCell(s string) string {
	if first, _ := utf8.DecodeRuneInString(s); s != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", first) {
		return "'" + s
	}
	return s
}

// CSV writes one table: "samples" (one row per timed file), "steps" (one per
// executed step), "summaries" (one per estimate) or "tables" (one per cell of the
// tables of the plan). The first row names the
// columns, [Columns] explains them; the keys of the plan's cases are in columns
// key_…, whichever the plan has. A quantity's unit is in its name: _ns, bytes,
// _bytes_per_second. It is RFC 4180 in UTF-8, without a byte order mark.
func CSV(w io.Writer, r *Result, table string) error {
	if table == "" {
		table = "samples"
	}
	cols := Columns(r, table)
	if cols == nil {
		return fmt.Errorf("table %q is none of %s", table, strings.Join(Tables, ", "))
	}
	cw := csv.NewWriter(w)
	cw.UseCRLF = true // RFC 4180
	cells := make([]string, len(cols))
	for i, c := range cols {
		cells[i] = PlainCell(c.Name)
	}
	err := cw.Write(cells)
	eachRow(r, table, func(x *csvRow) {
		for i, c := range cols {
			cells[i] = formatCell(c.value(x))
		}
		if err == nil {
			err = cw.Write(cells)
		}
	})
	if cw.Flush(); err != nil {
		return err
	}
	return cw.Error()
}

// eachRow calls do with what each row of a table is about.
func eachRow(r *Result, table string, do func(x *csvRow)) {
	switch table {
	case "tables":
		eachTableCell(r, do)
		return
	case "summaries":
		for si := range r.Summaries {
			s := &r.Summaries[si]
			c := &Case{ID: s.Case}
			if i := slices.IndexFunc(r.Cases, func(c Case) bool { return c.ID == s.Case }); i >= 0 {
				c = &r.Cases[i]
			}
			for ei := range s.Estimates {
				do(&csvRow{run: r, of: c, summary: s, estimate: &s.Estimates[ei]})
			}
		}
		return
	}
	for ci := range r.Cases {
		c := &r.Cases[ci]
		for si := range c.Steps {
			s := &c.Steps[si]
			if table == "steps" {
				do(&csvRow{run: r, of: c, step: s})
				continue
			}
			for fi := range s.Samples {
				do(&csvRow{run: r, of: c, step: s, sample: &s.Samples[fi]})
			}
		}
	}
}

// eachTableCell calls do with the cells of the plan's tables. One without an estimate has an empty
// one, with the reason.
func eachTableCell(r *Result, do func(x *csvRow)) {
	for ti := range r.Tables {
		t := &r.Tables[ti]
		for i, cells := range t.Cells {
			for k := range cells {
				if i >= len(t.Rows) || k >= len(t.Columns) {
					continue // a result that somebody else made
				}
				c := &cells[k]
				e := c.Estimate
				if e == nil {
					e = &Estimate{Why: c.Why}
					if c.Published != nil {
						e.Unit = c.Published.Unit
					}
				}
				do(&csvRow{run: r, table: t, head: &t.Rows[i], across: &t.Columns[k], cell: c, estimate: e})
			}
		}
	}
}

// Columns are the columns of a csv table for this result, nil for an unknown table.
func Columns(r *Result, table string) []Column {
	own, ok := ownColumns[table]
	if !ok || table == "tables" { // its rows are cells of several cases
		return own
	}
	cols := slices.Clone(runColumns)
	for _, k := range r.keyNames() {
		doc := "value of the case's key " + k + ", as the plan writes it"
		cols = append(cols, Column{"key_" + k, doc, func(x *csvRow) any { return x.of.key(k) }})
	}
	return slices.Concat(cols, caseColumns, own)
}

// part gets a value from p, nil where p is nil.
func part[T any](p *T, get func(*T) any) any {
	if p == nil {
		return nil
	}
	return get(p)
}

func spanCell(get func(p *Span) any) func(*csvRow) any {
	return func(x *csvRow) any { return part(x.step.Span, get) }
}

func diskCell(get func(d *DiskUse) any) func(*csvRow) any {
	return func(x *csvRow) any { return part(x.step.Disk, get) }
}

func intervalCell(get func(ci *CI) any) func(*csvRow) any {
	return func(x *csvRow) any { return part(x.estimate.CI, get) }
}

func publishedCell(get func(p *PublishedValue) any) func(*csvRow) any {
	return func(x *csvRow) any { return part(x.cell.Published, get) }
}

func outcomeCell(get func(o *TableOutcome) any) func(*csvRow) any {
	return func(x *csvRow) any { return part(x.cell.Outcome, get) }
}

// positive is v, nil where it is below 0, which is not known.
func positive(v int64) any {
	if v < 0 {
		return nil
	}
	return v
}

// rateCell is bytes per second, nil where no time was measured.
func rateCell(bytes, ns int64) any {
	if v, ok := rate(bytes, ns); ok {
		return v
	}
	return nil
}

func asked(a *Achieved) any { return part(a, func(a *Achieved) any { return a.Asked }) }
func found(a *Achieved) any { return part(a, func(a *Achieved) any { return a.Achieved }) }

func joinWarnings(list []Warning) string {
	texts := make([]string, len(list))
	for i, w := range list {
		texts[i] = w.Kind + ": " + w.Text
	}
	return strings.Join(texts, "; ")
}

// joinPublished are figures as printed, with the statistic.
func joinPublished(list []PublishedValue) string {
	texts := make([]string, len(list))
	for i, p := range list {
		if texts[i] = p.Text; p.Statistic != "" {
			texts[i] += " (" + p.Statistic + ")"
		}
	}
	return strings.Join(texts, "; ")
}
