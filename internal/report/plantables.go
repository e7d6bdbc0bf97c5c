package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// PrintsTables reports whether the source has printed any figure of the tables
// of the plan, so that they are its own.
func (v *View) PrintsTables() bool {
	for _, t := range v.Result.Tables {
		for _, row := range t.Cells {
			if slices.ContainsFunc(row, func(c result.TableCell) bool { return c.Published != nil }) {
				return true
			}
		}
	}
	return false
}

// planTable prints a table that the plan declares as its article prints it, each
// figure with its interval and the published value below it. The scale and the
// digits of a cell are those of its column, or of its row if the row has a
// quantity of its own.
//
// A line of the plan may be of a quantity, an outcome or a coefficient of a
// fit.
func (v *View) planTable(from *result.Table) Table {
	t := Table{Caption: Plain(from.Title, 200), Columns: Columns("<"),
		File: fileName(from.Name)}
	scales := make([]lineScale, len(from.Columns))
	for i, c := range from.Columns {
		var cells []result.TableCell
		for _, row := range from.Cells {
			cells = append(cells, row[min(i, len(row)):min(i+1, len(row))]...)
		}
		scales[i] = newLineScale(c, cells)
		figure := Column{Group: Plain(c.Group, 80), Title: Plain(c.Title, 80), Text: c.Op == result.OpOutcome}
		if c.Op != "" {
			figure.Unit = scales[i].Suffix
		}
		t.Columns = append(t.Columns, figure, Column{Group: figure.Group, Title: "interval", Below: true},
			Column{Group: figure.Group, Title: "published", Below: true})
	}
	shared := planTableNotes(from)
	var notes footnotes
	for i, l := range from.Rows {
		if i >= len(from.Cells) || len(from.Cells[i]) != len(from.Columns) {
			continue // the result was not made by this program
		}
		own := newLineScale(l, from.Cells[i])
		name := Column{Title: strings.Join(NonEmpty([]string{Plain(l.Group, 80), Plain(l.Title, 120)}), " · ")}
		if l.Op != "" {
			name.Unit = own.Suffix
		}
		row := []Cell{{Text: name.Heading(), Class: "head"}}
		for k := range from.Cells[i] {
			s, printed := scales[k], from.Columns[k].Printed
			if l.Op != "" {
				s, printed = own, l.Printed
			}
			row = append(row, s.cells(&from.Cells[i][k], printed, &shared, &notes)...)
		}
		t.Rows = append(t.Rows, row)
	}
	notes.add(Plain(from.Caption, 600))
	notes.add(shared.method(true)...)
	notes.add(shared.publication()...)
	notes.add(shared.weakness())
	notes.add(TextIf(len(shared.sizes)+len(shared.intervalKinds) > 0, "Measured on "+v.Provenance+"."))
	t.Notes = notes.list()
	t.dropEmptyColumns(true)
	return t
}

// planTableNotes is what the figures of a table of the plan share.
func planTableNotes(t *result.Table) sharedNotes {
	var n sharedNotes
	for i, row := range t.Cells {
		for k, c := range row {
			size := TextIf(c.Rounds > 0, Count(c.Rounds, "round"))
			if c.Estimate == nil {
				n.sizes = appendText(n.sizes, size)
				if c.Published != nil {
					n.machines = AppendNew(n.machines, Plain(c.Published.On, 200))
				}
				continue
			}
			statistic, _, _ := strings.Cut(c.Estimate.Name, "@") // the title of the line has the files that it is of
			var published []result.PublishedValue
			if c.Published != nil {
				published = append(published, *c.Published)
			}
			n.add(c.Estimate, TextIf(isFileRate(t, i, k), StatisticName(statistic)), size, c.Warnings, published...)
		}
	}
	n.ratios = false // the table has none
	return n
}

// isFileRate reports whether a cell is a rate of files, which is the quantity
// with statistics to choose from.
func isFileRate(t *result.Table, row, column int) bool {
	op := ""
	if row < len(t.Rows) {
		op = t.Rows[row].Op
	}
	if column < len(t.Columns) {
		op += t.Columns[column].Op
	}
	return op == "write" || op == "read"
}

// lineScale prints the figures of one row or column, with the digits that the
// plan asks for.
type lineScale struct {
	Scale
	digits *int
}

// newLineScale is the unit that the plan asks for, if it is one of the
// quantity, or else the one that suits the figures.
func newLineScale(l result.TableLine, cells []result.TableCell) lineScale {
	base := plan.Quantity(l.Op).Unit()
	var values []float64
	for _, c := range cells {
		unit := ""
		if c.Published != nil {
			values, unit = append(values, c.Published.Low), c.Published.Unit
		}
		if c.Estimate != nil {
			values, unit = append(values, c.Estimate.Value), c.Estimate.Unit
		}
		if l.Op == result.OpCoefficient {
			base = cmp.Or(base, unit)
		}
	}
	if own, factor, ok := plan.DisplayUnit(l.Unit); ok && own == base {
		return lineScale{Scale{Factor: factor, Suffix: TextIf(l.Unit != "1", l.Unit)}, l.Digits}
	}
	return lineScale{ColumnScale(base, values...), l.Digits}
}

// number writes a value, in base units, with the digits of the line. A small
// value keeps three significant digits: with the digits of the line it would be
// 0.00.
func (s lineScale) number(v float64) string {
	if s.digits == nil || s.Mixed != "" || !IsFinite(v) {
		return s.Number(v)
	}
	text := strconv.FormatFloat(v/s.Factor, 'f', *s.digits, 64)
	if v != 0 && len(strings.TrimLeft(text, "-0.")) < 2 && *s.digits > 0 { // at most one digit is left of it
		return s.Number(v)
	}
	return text
}

// cells are a figure, its interval and the published value. With printed the
// figure is the published one: the plan does not measure it.
func (s lineScale) cells(from *result.TableCell, printed bool, shared *sharedNotes, notes *footnotes) []Cell {
	out := make([]Cell, 3)
	figure, interval, published := &out[0], &out[1], &out[2]
	switch e, p := from.Estimate, from.Published; {
	case printed && p == nil:
		*figure = Cell{Text: "—", Class: "muted", Marks: notes.mark("Not printed by the source.")}
	case printed:
		on := Plain(FirstOf(p.On, "by the source"), 200)
		*figure = Cell{Text: s.published(p), Marks: notes.mark("As printed: " + on + ".")}
	case from.Outcome != nil:
		*figure = Cell{Text: Plain(from.Outcome.Text, 120), Title: Plain(from.Case, 300)}
	case e != nil:
		*figure = Cell{Text: s.number(e.Value), Title: Plain(from.Case, 300)}
		if e.CI != nil {
			interval.Text = s.interval(e.CI, e.Unit)
		}
		if shared.doubt(from.Warnings) != "" {
			figure.Class, figure.Marks = "warn", notes.mark("Has warnings, see the full table.")
		}
	case from.Why != "":
		why := notes.mark("Not measured: " + Plain(from.Why, 300) + ".")
		*figure = Cell{Text: "—", Class: "muted", Marks: why}
	}
	if p := from.Published; p != nil && !printed {
		*published = Cell{Text: s.published(p), Class: TextIf(from.Estimate != nil && !p.Comparable, "uncomparable")}
	}
	return out
}

// interval is an interval with the digits of its figure.
func (s lineScale) interval(ci *result.CI, unit string) string {
	if s.digits == nil || s.Mixed != "" || ci.Low < 0 {
		return RangeText(s.Scale, ci, unit)
	}
	low, high := s.number(ci.Low), s.number(ci.High)
	if low == high {
		return "within the last digit"
	}
	return low + "–" + high
}

// published is a value as the source prints it, without the unit of its column.
func (s lineScale) published(p *result.PublishedValue) string {
	text := PublishedText(*p)
	if s.Suffix != "" && s.Mixed == "" {
		text = strings.ReplaceAll(text, " "+s.Suffix, "")
	}
	return text
}
