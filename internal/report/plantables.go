package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/units"
)

// planTable builds a table of the plan, laid out as the source prints it, each
// figure with its interval and the published value below it. The scale and the
// digits of a cell are those of its column, or of its row if the row has a
// quantity of its own. A row or column may be of a quantity, an outcome or a
// coefficient of a fit.
func (v *View) planTable(from result.Table) Table {
	t := Table{Caption: Plain(from.Title, 200), Columns: Columns("<"),
		File: cmp.Or(strings.TrimLeft(keepLetters(from.Name, 64, "._+-"), ".-"), "table")}
	rows, cells := from.Rows, from.Cells
	from.Rows, from.Cells = nil, nil
	for i, row := range cells[:min(len(cells), len(rows))] {
		if len(row) == len(from.Columns) { // else the file is damaged
			from.Rows, from.Cells = append(from.Rows, rows[i]), append(from.Cells, slices.Clone(row))
			for k := range row {
				from.Cells[len(from.Cells)-1][k].Warnings = v.own(row[k].Warnings)
			}
		}
	}
	scales := make([]lineScale, len(from.Columns))
	for k, c := range from.Columns {
		scales[k] = newLineScale(c, Map(from.Cells, func(row []result.TableCell) result.TableCell { return row[k] }))
		figure := Column{Group: Plain(c.Group, 80), Title: Plain(c.Title, 80), Text: c.Op == result.OpOutcome}
		figure.Unit = TextIf(c.Op != "", scales[k].Suffix)
		t.Columns = append(t.Columns, figure, Column{Group: figure.Group, Title: "interval", Below: true},
			Column{Group: figure.Group, Title: "published", Below: true})
	}
	shared := planTableNotes(from)
	var notes footnotes
	for i, l := range from.Rows {
		own := newLineScale(l, from.Cells[i])
		title := glue(" · ", Plain(l.Group, 80), Plain(l.Title, 120))
		row := TextRow(Column{Title: title, Unit: TextIf(l.Op != "", own.Suffix)}.Heading())
		for k, cell := range from.Cells[i] {
			scale := scales[k]
			if l.Op != "" {
				scale = own
			}
			row = append(row, scale.cells(cell, shared, &notes)...)
		}
		t.Rows = append(t.Rows, row)
	}
	notes.add(Plain(from.Caption, 600))
	notes.addShared(shared, true)
	notes.add(TextIf(len(shared.sizes)+len(shared.intervalKinds) > 0, "Measured on "+v.Provenance+"."))
	t.Notes = notes.list()
	t.DropColumns(func(i int) bool { return t.Columns[i].Below && t.IsEmpty(i) })
	return t
}

// planTableNotes returns the notes that the figures of a table of the plan share.
// Only rates of files can have several statistics, so only they name theirs.
func planTableNotes(t result.Table) sharedNotes {
	var n sharedNotes
	for i, row := range t.Cells {
		for k, c := range row {
			var published []result.PublishedValue
			if c.Published != nil {
				published = append(published, *c.Published)
				n.machines = AppendNew(n.machines, Plain(c.Published.On, 200))
			}
			size := TextIf(c.Rounds > 0, Count(c.Rounds, "round"))
			if c.Estimate == nil {
				n.sizes = appendText(n.sizes, size)
				continue
			}
			statistic := ""
			// Only one of row and column has a quantity.
			if op := t.Rows[i].Op + t.Columns[k].Op; op == "write" || op == "read" {
				name, _, _ := strings.Cut(c.Estimate.Name, "@") // the title of the row or column names the files
				statistic = StatisticName(name)
			}
			n.add(c.Estimate, statistic, size, c.Warnings, published...)
		}
	}
	n.ratios = false // these tables have none
	return n
}

// lineScale prints the figures of one line, a row or a column, with the digits that
// the plan asks for.
type lineScale struct {
	Scale
	publishedOnly bool // the figures are the published ones: the plan does not measure them
}

// newLineScale returns the scale of a line: the unit that the plan asks for, if it
// is one of the quantity, or else the one that suits the figures. A coefficient has
// the unit of its cells.
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
	s := ColumnScale(base, values...)
	if own, factor, ok := plan.DisplayUnit(l.Unit); ok && own == base {
		s = Scale{Factor: factor, Suffix: TextIf(l.Unit != "1", l.Unit)}
	}
	s.digits = l.Digits
	return lineScale{s, l.Printed}
}

// cells returns the cells of a figure, its interval and the published value.
func (s lineScale) cells(from result.TableCell, shared sharedNotes, notes *footnotes) []Cell {
	var figure, interval, published Cell
	publishedText := ""
	if from.Published != nil { // as the source prints it, without the unit of the column
		publishedText = PublishedText(*from.Published)
		if s.Suffix != "" && s.Mixed == "" {
			publishedText = strings.ReplaceAll(publishedText, " "+s.Suffix, "")
		}
	}
	switch e, p := from.Estimate, from.Published; {
	case s.publishedOnly && p == nil:
		figure = Cell{Text: "—", Class: "muted", Marks: notes.mark("Not printed by the source.")}
	case s.publishedOnly:
		on := Plain(FirstOf(p.On, "by the source"), 200)
		figure = Cell{Text: publishedText, Marks: notes.mark("As printed: " + on + ".")}
	case from.Outcome != nil:
		figure = Cell{Text: Plain(from.Outcome.Text, 120), Title: Plain(from.Case, 300)}
	case e != nil:
		figure = Cell{Text: s.Number(e.Value), Title: Plain(from.Case, 300)}
		if e.CI != nil {
			interval.Text = RangeText(s.Scale, e.CI, e.Unit)
		}
		if shared.doubt(from.Warnings) != "" {
			figure.Class, figure.Marks = "warn", notes.mark("Has warnings, see the full table.")
		}
	case from.Why != "":
		why := notes.mark("Not measured: " + Plain(from.Why, 300) + ".")
		figure = Cell{Text: "—", Class: "muted", Marks: why}
	}
	if from.Published != nil && !s.publishedOnly {
		published.Text = publishedText
		published.Class = TextIf(from.Estimate != nil && !from.Published.Comparable, "uncomparable")
	}
	return []Cell{figure, interval, published}
}

// fitTables builds a table for each fitted model, in the order of the result.
func (v *View) fitTables() []Table {
	var out []Table
	for _, f := range v.Result.Fits {
		unit, along := plan.Quantity(f.Op).Unit(), Plain(strings.ReplaceAll(f.Along, "_", " "), 40)
		t := Table{Caption: "Fit “" + Plain(f.Name, 120) + "”: " + QuantityName(f.Op) + " along " + along,
			Columns: Columns("<coefficient", "measured", "interval", "published")}
		for _, c := range f.Coefficients {
			row := TextRow(Plain(c.Name, 60), "", "", "")
			if f.Reason == "" {
				row[1].Text = coefficientText(f, c.Name, c.Value)
			}
			if c.CI != nil {
				text := coefficientText(f, c.Name, c.CI.Low) + " to " + coefficientText(f, c.Name, c.CI.High)
				row[2] = Cell{Text: text, Title: DescribeInterval(c.CI)}
			}
			if c.Published != nil {
				row[3].Text = coefficientText(f, c.Name, *c.Published)
			}
			t.Rows = append(t.Rows, row)
		}
		for _, p := range f.Predictions {
			t.Rows = append(t.Rows, TextRow("prediction at "+Human(p[0], AxisUnit(f.Along)), Human(p[1], unit), "", ""))
		}
		if f.Reason != "" {
			t.Notes = append(t.Notes, Note{Text: "No fit: " + Plain(f.Reason, 300) + "."})
		}
		t.Notes = append(t.Notes, Note{Text: "Model: " + ModelName(f.Model) + ", x: " + along + "."})
		out = append(out, t)
	}
	return out
}

// AxisUnit is the base unit of the values of a key.
func AxisUnit(key string) string {
	if key == "file_size" || key == "band_size" || key == "size" || key == "block" {
		return "B"
	}
	return "1"
}

// coefficientText writes one coefficient with its unit; those of power models, and
// r2, have none. A slope of time on size has the rate that it is the inverse of
// next to it, since rates are easier to compare.
func coefficientText(f result.Fit, name string, value float64) string {
	unit, isOfSize := plan.Quantity(f.Op).Unit(), AxisUnit(f.Along) == "B"
	switch {
	case !IsFinite(value):
		return "—"
	case f.Model == "power" || name == "r2":
	case strings.HasPrefix(name, "intercept"):
		return Human(value, unit)
	case name == "break":
		return Human(value, AxisUnit(f.Along))
	case strings.HasPrefix(name, "slope") && isOfSize:
		rate := TextIf(unit == "s" && value > 0, " ("+Human(1/value, "B/s")+")")
		return Human(value*1e6, unit) + " a MB" + rate
	case strings.HasPrefix(name, "slope"):
		return Human(value, unit) + " per x"
	}
	return strconv.FormatFloat(value, 'g', 4, 64)
}

// ModelName is the name of a model with its formula.
func ModelName(model string) string { return named("model", model, 60) }

// relationTable lists the cases of a relation with both ranks.
func relationTable(r result.Relation) Table {
	var xs, ys []float64
	for _, p := range r.Points {
		xs, ys = append(xs, p.X), append(ys, p.Y)
	}
	sx, sy := ColumnScale(plan.Quantity(r.XOp).Unit(), xs...), ColumnScale(plan.Quantity(r.YOp).Unit(), ys...)
	x, y := QuantityName(r.XOp), QuantityName(r.YOp)
	t := Table{Caption: Plain(r.Name, 120) + ": " + y + " against " + x,
		Columns: Columns("<case", WithUnit(x, sx), "rank", WithUnit(y, sy), "rank", "<")}
	for _, p := range r.Points {
		row := TextRow(Plain(p.Label, 80), sx.Number(p.X), strconv.Itoa(p.RankX), sy.Number(p.Y),
			strconv.Itoa(p.RankY), "")
		if p.Outlier {
			row[5] = Cell{Text: "outlier", Class: "warn"}
		}
		t.Rows = append(t.Rows, row)
	}
	note := "Spearman’s rank correlation: " + units.Significant(r.Spearman, 3) + "."
	if r.Reason != "" {
		note = Plain(r.Reason, 300) + "."
	}
	t.Notes = []Note{{Text: note}}
	return t
}
