package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
)

// The bounds of a table of figures. What is left out is counted in a note, and
// is in the exports.
const (
	maxRows            = 240
	quantitiesPerTable = 4 // of tables other than that of speeds, which has all of its quantities
	mainRows           = 7 // of the main numbers on the first screen
)

// FigureSection is one kind of figures with its tables.
type FigureSection struct {
	ID, Caption string
	Figures     Figures
	Tables      []Table // several where one would be too wide
}

// figureKinds are the tables of figures, by the units of their quantities.
var figureKinds = []struct {
	id, caption string
	units       []string
}{
	{"speeds", "Speed", []string{"B/s"}},
	{"sizes", "Sizes", []string{"B"}},
	{"counts", "Bands and ratios", []string{"1"}},
	{"times", "Times of steps", []string{"s"}},
}

// figureSections arranges the figures by kind, without tables.
func (v *View) figureSections() []FigureSection {
	unitOf := map[string]string{}
	for i := range v.Result.Summaries {
		if h := Headline(&v.Result.Summaries[i]); h != nil {
			unitOf[v.Result.Summaries[i].Op] = h.Unit
		}
	}
	var out []FigureSection
	for _, k := range figureKinds {
		f := v.FiguresOf(func(op string) bool { return slices.Contains(k.units, unitOf[op]) })
		if len(f.Keys) > 0 {
			out = append(out, FigureSection{ID: k.id, Caption: k.caption, Figures: f})
		}
	}
	return out
}

// addTables fills in the sections of figures and the tables of relations.
func (v *View) addTables() {
	v.Sections = v.figureSections()
	for i := range v.Sections {
		v.Sections[i].Tables = v.figureTables(&v.Sections[i])
	}
	if t := v.sessionTable(); len(t.Rows) > 0 {
		v.Sections = append(v.Sections, FigureSection{ID: "sessions", Caption: t.Caption, Tables: []Table{t}})
	}
	for _, r := range v.Result.Relations {
		v.Relations = append(v.Relations, relationTable(r))
	}
}

// figureTables prints figures in tables that fit a page, each with the rows
// that have a value in it.
//
// Four quantities with intervals and published values are as wide as a page;
// speeds are the exception, as they belong next to each other.
func (v *View) figureTables(s *FigureSection) []Table {
	if s.ID == "speeds" {
		t := v.figureTable(s.Caption, s.Figures, false)
		if note := v.flushNote(); note != "" {
			t.Notes = slices.Insert(t.Notes, 0, Note{Text: note})
		}
		return []Table{t}
	}
	var out []Table
	parts := slices.Collect(slices.Chunk(s.Figures.Ops, quantitiesPerTable))
	for i, ops := range parts {
		part := Figures{By: s.Figures.By, Ops: ops}
		for _, k := range s.Figures.Keys {
			if slices.ContainsFunc(ops, func(op string) bool { return part.By[k][op] != nil }) {
				part.Keys = append(part.Keys, k)
			}
		}
		number := TextIf(len(parts) > 1, fmt.Sprintf(" (%d of %d)", i+1, len(parts)))
		out = append(out, v.figureTable(s.Caption+number, part, false))
	}
	return out
}

// figureTable prints rows of case × phase, with a group of columns for each
// quantity. With main it is the table of the first screen: figures of one
// phase, with their unit, a bar and the published value closest to the
// headline.
func (v *View) figureTable(caption string, f Figures, main bool) Table {
	t := Table{Caption: caption, Columns: Columns("<case", "<phase")}
	shared := f.sharedNotes()
	shared.ratios = shared.ratios && (!main || shared.comparable > 0)
	var notes footnotes
	groups := make([]quantityColumns, len(f.Ops))
	for i, op := range f.Ops {
		groups[i] = newQuantityColumns(f, op, main)
		t.Columns = append(t.Columns, groups[i].columns()...)
	}
	t.Columns = append(t.Columns, Column{Title: "n", Text: true})
	for _, k := range f.Keys[:min(len(f.Keys), maxRows)] {
		row := []Cell{{Text: v.CaseName(k.CaseID), Class: "head", Title: Plain(k.CaseID, 300)},
			{Text: TextIf(!main, PhaseName(k.Phase, k.Cycle))}}
		var sizes []string
		for i, op := range f.Ops {
			s := f.By[k][op]
			row = append(row, groups[i].cells(s, &shared, &notes)...)
			if s != nil && len(shared.sizes) > 1 {
				sizes = AppendNew(sizes, SampleSize(s))
			}
		}
		t.Rows = append(t.Rows, append(row, Cell{Text: strings.Join(sizes, "; "), Class: "muted"}))
	}
	notes.add(shared.method(false)...)
	notes.add(shared.publication()...)
	notes.add(shared.weakness())
	if len(f.Keys) > maxRows {
		notes.add(wording.Text("rows-left-out", maxRows, Grouped(len(f.Keys))))
	}
	t.Notes = notes.list()
	t.dropEmptyColumns(false)
	if t.PerQuantity = main; !main {
		t.nameSingleColumns()
	}
	return t
}

// nameSingleColumns gives a quantity that needs one column the heading "bands"
// instead of a group of its own.
func (t *Table) nameSingleColumns() {
	for i, c := range t.Columns {
		alone := func(k int) bool { return k < 0 || k == len(t.Columns) || t.Columns[k].Group != c.Group }
		switch {
		case c.Group == "":
		case alone(i-1) && alone(i+1):
			t.Columns[i].Title, t.Columns[i].Group = c.Group, ""
		default:
			t.PerQuantity = true
		}
	}
}

// quantityColumns are the columns of one quantity: measured, interval, and for
// each machine published and ratio.
//
// On the first screen figures have their unit with them: people read them
// before the headings.
type quantityColumns struct {
	op       string
	scale    Scale
	interval bool
	machines []string
	main     bool
	top      float64 // figure whose bar has the full length
}

// newQuantityColumns chooses the columns that the figures of a quantity need.
func newQuantityColumns(f Figures, op string, main bool) quantityColumns {
	q := quantityColumns{op: op, main: main, scale: f.scaleFor(op, main), machines: f.PublishedOn(op)}
	if main {
		q.machines = q.machines[:min(len(q.machines), 1)]
	}
	for s := range f.all(op) {
		q.top, q.interval = max(q.top, Headline(s).Value), q.interval || Headline(s).CI != nil
	}
	return q
}

// columns are the columns in the order of [quantityColumns.cells]. Those that
// stay empty are removed from the table.
func (q quantityColumns) columns() []Column {
	group := QuantityName(q.op)
	out := []Column{{Group: group, Title: "measured", Unit: TextIf(!q.main, q.scale.Suffix)},
		{Group: group, Title: "interval", Below: q.main}}
	for _, on := range q.machines {
		title := "published" + TextIf(len(q.machines) > 1 && on != "", ": "+Plain(on, 60))
		out = append(out, Column{Group: group, Title: title}, Column{Group: group, Title: "ratio", Below: q.main})
	}
	return out
}

// cells are the entries of one row for this quantity, empty ones if it was not
// measured. A reason or a method that all figures share is in the notes of the
// table; an exception gets a mark here.
func (q quantityColumns) cells(s *result.Summary, shared *sharedNotes, notes *footnotes) []Cell {
	if s == nil {
		return make([]Cell, len(q.columns()))
	}
	h := Headline(s)
	measured := Cell{Text: q.scale.Number(h.Value)}
	if q.main {
		measured.Text = q.scale.Text(h.Value) // people read the figures of the first screen before its headings
		if q.top > 0 && h.Value > 0 {
			measured.Bar = max(float64(int(h.Value/q.top*1000))/10, 0.5)
		}
	}
	other := len(shared.statistics) > 1 && s.Headline != "" && h.Unit == "B/s"
	measured.Marks = notes.mark(TextIf(other, "Statistic: "+StatisticName(s.Headline)+"."))
	if doubt := shared.doubt(s.Warnings); doubt != "" {
		measured.Class, measured.Marks = "warn", append(measured.Marks, notes.mark(doubt)...)
	}
	var interval Cell
	switch why := TextIf(h.Why != "" && len(shared.reasons) > 1, "No interval: "+Plain(h.Why, 200)+"."); {
	case h.CI != nil:
		interval = Cell{Text: RangeText(q.scale, h.CI, h.Unit), Title: DescribeInterval(h.CI)}
		if q.main {
			interval.Text = rangeWithUnit(q.scale, h.CI, h.Unit)
		}
		interval.Marks = notes.mark(TextIf(len(shared.intervalKinds) > 1, "Interval: "+interval.Title+"."))
	case q.interval:
		interval = Cell{Text: "none", Class: "muted", Marks: notes.mark(why)}
	default:
		measured.Marks = append(measured.Marks, notes.mark(why)...)
	}
	out := []Cell{measured, interval}
	for _, on := range q.machines {
		out = append(out, q.published(s, q.chosen(s, on), notes)...)
	}
	return out
}

// chosen are the published values of a column. The first screen has one, which
// is of the headline where there are more.
func (q quantityColumns) chosen(s *result.Summary, on string) []result.PublishedValue {
	if !q.main {
		return slices.DeleteFunc(slices.Clone(s.Published), func(p result.PublishedValue) bool { return p.On != on })
	}
	for i, p := range s.Published {
		if len(s.Published) == 1 || !comparesOther(s, p) {
			return s.Published[i : i+1]
		}
	}
	return nil
}

// published are the cells of published values and of the ratios to them.
func (q quantityColumns) published(s *result.Summary, values []result.PublishedValue, notes *footnotes) []Cell {
	var texts, ratios, titles []string
	var value, ratio Cell
	for _, p := range values {
		texts = append(texts, PublishedText(p))
		if p.Statistic != "" {
			titles = append(titles, "published as "+StatisticName(p.Statistic))
		}
		if !p.Comparable {
			value.Class = "uncomparable"
		}
		if p.Ratio <= 0 || q.main && !p.Comparable {
			continue
		}
		ratios = append(ratios, Ratio(p.Ratio))
		if e := ComparedEstimate(s, p); comparesOther(s, p) {
			ratio.Marks = append(ratio.Marks, notes.mark("Ratio of another statistic than the one shown: "+
				StatisticName(e.Name)+", measured "+Human(e.Value, e.Unit)+".")...)
		}
		if !p.Comparable {
			ratio.Class = "uncomparable"
			why := "Not comparable: " + uncomparableReason(s.Departures, p.On) + "."
			ratio.Marks = append(ratio.Marks, notes.mark(why)...)
		}
	}
	value.Text, value.Title = strings.Join(texts, "; "), strings.Join(titles, "; ")
	ratio.Text = strings.Join(ratios, "; ")
	return []Cell{value, ratio}
}

// uncomparableReason is why a ratio to what was published for on is not
// comparable; a long list of deviations is on the first screen.
func uncomparableReason(deviations []string, on string) string {
	text := "published for " + cmp.Or(Plain(on, 200), "other conditions")
	switch {
	case len(deviations) > 4:
		return text + ", see the deviations"
	case len(deviations) == 0:
		return text
	}
	return text + "; " + Plain(strings.Join(deviations, "; "), 400)
}
