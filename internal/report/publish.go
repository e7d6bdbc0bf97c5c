package report

import (
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// This file arranges the tables that a plan declares as its article prints them:
// the measured figure, below it its interval, below that the published one.

// Under is a line below a figure.
type Under struct{ Name, Text, Class string }

// The lines below a figure, in their order.
const (
	underInterval  = "interval"
	underPublished = "published"
)

// publishedTables are the tables of the plan, filled in.
func (v *View) publishedTables() []Table {
	var out []Table
	for i := range v.Result.Tables {
		t := v.publishedTable(&v.Result.Tables[i])
		t.Forms = t.forms()
		out = append(out, t)
	}
	return out
}

// PrintsTables reports whether the source has printed any figure of the tables,
// so that they are its own.
func (v *View) PrintsTables() bool {
	return slices.ContainsFunc(v.Result.Tables, func(t result.Table) bool {
		return slices.ContainsFunc(t.Cells, func(row []result.TableCell) bool {
			return slices.ContainsFunc(row, func(c result.TableCell) bool { return c.Published != nil })
		})
	})
}

func (v *View) publishedTable(from *result.Table) Table {
	t := Table{ID: "published-" + slug(from.Name), Caption: Plain(from.Title, 200), Columns: Columns("<"), File: fileName(from.Name)}
	scales := make([]lineScale, len(from.Columns))
	for i, c := range from.Columns {
		scales[i] = scaleOfLine(c, columnCells(from, i))
		t.Columns = append(t.Columns, Column{Group: Plain(c.Group, 80), Title: scales[i].head(Plain(c.Title, 80), c.Op), Text: c.Op == result.OpOutcome})
	}
	same := alikeCells(from)
	var book notes
	for i, l := range from.Rows {
		if i >= len(from.Cells) || len(from.Cells[i]) != len(from.Columns) {
			continue // a result that somebody else made
		}
		own := scaleOfLine(l, from.Cells[i])
		name := strings.Join(NonEmpty([]string{Plain(l.Group, 80), Plain(l.Title, 120)}), " · ")
		row := []Cell{{Text: own.head(name, l.Op), Class: "head"}}
		for k := range from.Cells[i] {
			s, names := scales[k], from.Columns[k]
			if l.Op != "" {
				s, names = own, l
			}
			if c := &from.Cells[i][k]; names.Printed {
				row = append(row, s.printedCell(c, &book))
			} else {
				row = append(row, s.cell(c, same, &book))
			}
		}
		t.Rows = append(t.Rows, row)
	}
	t.Notes = append(v.tableNotes(from, same), book.list...)
	return t
}

// lineScale prints the figures of one row or column.
type lineScale struct {
	Scale
	digits *int
}

func scaleOfLine(l result.TableLine, cells []result.TableCell) lineScale {
	base := plan.Quantity(l.Op).Unit()
	var values []float64
	for _, c := range cells {
		if l.Op == result.OpCoefficient && base == "" {
			base = cellUnit(c)
		}
		values = append(values, cellValues(c)...)
	}
	if own, factor, ok := plan.DisplayUnit(l.Unit); ok && own == base {
		suffix := l.Unit
		if suffix == "1" {
			suffix = ""
		}
		return lineScale{Scale{Factor: factor, Suffix: suffix}, l.Digits}
	}
	return lineScale{ColumnScale(base, values...), l.Digits}
}

// head is a title with the unit of the figures under it, unless it says that itself.
func (s lineScale) head(title, op string) string {
	if op == "" || s.Suffix == "" || title == s.Suffix || strings.HasSuffix(title, " "+s.Suffix) {
		return title
	}
	return title + ", " + s.Suffix
}

func (s lineScale) number(v float64) string {
	if s.digits == nil || s.Mixed != "" || !IsFinite(v) {
		return s.Scale.Number(v)
	}
	text := strconv.FormatFloat(v/s.Factor, 'f', *s.digits, 64)
	if v != 0 && len(strings.TrimLeft(text, "-0.")) < 2 && *s.digits > 0 { // nothing left of it, or next to nothing
		return s.Scale.Number(v)
	}
	return text
}

func (s lineScale) cell(from *result.TableCell, same sameForAll, book *notes) Cell {
	var c Cell
	switch e := from.Estimate; {
	case from.Outcome != nil:
		c = Cell{Text: Plain(from.Outcome.Text, 120), Title: Plain(from.Case, 300)}
	case e != nil:
		c = Cell{Text: s.number(e.Value), Title: Plain(from.Case, 300)}
		if e.CI != nil {
			c.Under = append(c.Under, Under{Name: underInterval, Text: s.span(e.CI, e.Unit)})
		}
		if same.weakenedBeyond(from.Warnings) {
			c.Class, c.Marks = "warn", []int{book.mark("Has warnings, see the full table.")}
		}
	case from.Why != "":
		c = Cell{Text: "—", Class: "muted", Marks: []int{book.mark("Not measured: " + Plain(from.Why, 300) + ".")}}
	}
	if p := from.Published; p != nil {
		u := Under{Name: underPublished, Text: s.printed(p)}
		if from.Estimate != nil && !p.Comparable {
			u.Class = "greyed"
		}
		c.Under = append(c.Under, u)
	}
	return c
}

// printedCell is a figure for which nothing is measured.
func (s lineScale) printedCell(from *result.TableCell, book *notes) Cell {
	if from.Published == nil {
		return Cell{Text: "—", Class: "muted", Marks: []int{book.mark("Not printed by the source.")}}
	}
	return Cell{Text: s.printed(from.Published), Marks: []int{book.mark("As printed: " + Plain(FirstOf(from.Published.On, "by the source"), 200) + ".")}}
}

// span is an interval with the digits of its figure.
func (s lineScale) span(ci *result.CI, unit string) string {
	if s.digits == nil || s.Mixed != "" || ci.Low < 0 {
		return RangeText(s.Scale, ci, unit)
	}
	low, high := s.number(ci.Low), s.number(ci.High)
	if low == high {
		return "within the last digit"
	}
	return low + "–" + high
}

// printed is a figure of the source as it stands there, without the unit of its column.
func (s lineScale) printed(p *result.PublishedValue) string {
	text := PublishedText(*p)
	if s.Suffix != "" && s.Mixed == "" {
		text = strings.ReplaceAll(text, " "+s.Suffix, "")
	}
	return text
}

func columnCells(t *result.Table, at int) []result.TableCell {
	var out []result.TableCell
	for _, row := range t.Cells {
		if at < len(row) {
			out = append(out, row[at])
		}
	}
	return out
}

// cellUnit is the base unit of what a cell prints, "" for nothing.
func cellUnit(c result.TableCell) string {
	switch {
	case c.Estimate != nil:
		return c.Estimate.Unit
	case c.Published != nil:
		return c.Published.Unit
	}
	return ""
}

// cellValues are what a cell prints.
func cellValues(c result.TableCell) []float64 {
	var out []float64
	if c.Estimate != nil {
		out = append(out, c.Estimate.Value)
	}
	if c.Published != nil {
		out = append(out, c.Published.Low)
	}
	return out
}

// alikeCells is what holds for every figure of the table.
func alikeCells(t *result.Table) sameForAll {
	var out comparing
	for _, row := range t.Cells {
		for _, c := range row {
			if c.Estimate == nil {
				continue
			}
			out.add(c.Warnings, c.Estimate.CI != nil)
			if c.Published != nil {
				out.published(c.Published.Comparable)
			}
		}
	}
	return out.same()
}

// ratesOfFiles reports whether a cell is a rate of files, for which there are
// statistics to choose from.
func ratesOfFiles(t *result.Table, row, column int) bool {
	op := ""
	if row < len(t.Rows) {
		op = t.Rows[row].Op
	}
	if column < len(t.Columns) {
		op += t.Columns[column].Op
	}
	return op == "write" || op == "read"
}

// tableNotes say under a table what its figures are, so that it stays honest
// where it is pasted.
func (v *View) tableNotes(t *result.Table, same sameForAll) []Note {
	var stats, ns, cis, whys, on []string
	greyed := false
	for i, row := range t.Cells {
		for k, c := range row {
			if p := c.Published; p != nil {
				on, greyed = AppendNew(on, Plain(p.On, 200)), greyed || c.Estimate != nil && !p.Comparable
			}
			if c.Rounds > 0 {
				ns = AppendNew(ns, Count(c.Rounds, "round"))
			}
			if c.Estimate == nil {
				continue
			}
			if ratesOfFiles(t, i, k) {
				name, _, _ := strings.Cut(c.Estimate.Name, "@") // which files, the line says
				stats = AppendNew(stats, StatisticName(name))
			}
			if c.Estimate.CI != nil {
				cis = AppendNew(cis, DescribeInterval(c.Estimate.CI))
			} else if c.Estimate.Why != "" {
				whys = AppendNew(whys, Plain(c.Estimate.Why, 200))
			}
		}
	}
	var out []Note
	add := func(text string) {
		if text != "" {
			out = append(out, Note{Text: text})
		}
	}
	said := func(head string, list []string) { add(TextIf(len(list) > 0, head+strings.Join(list, "; ")+".")) }
	add(Plain(t.Caption, 600))
	said("Rates: ", stats)
	said("n: ", ns)
	said("Intervals: ", cis)
	said("Where there is no interval: ", whys)
	if len(on) == 1 {
		said("Published: ", NonEmpty(on))
	}
	switch {
	case same.uncomparable:
		add("What was published elsewhere is not comparable; see the deviations.")
	case greyed:
		add("Published figures in grey are not comparable; see the deviations.")
	}
	add(same.weakened())
	add(TextIf(len(ns)+len(cis) > 0, "Measured on "+v.Provenance+"."))
	return out
}
