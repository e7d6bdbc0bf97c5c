package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
)

// The bounds of a table of figures. What is left out is counted in a note, and
// is in the exports.
//
// Four quantities with intervals and published values are as wide as a page;
// speeds are the exception, as they belong next to each other.
const (
	maxRows            = 240
	quantitiesPerTable = 4 // of tables other than that of speeds, which has all of its quantities
)

// FigureSection is one kind of figures with its tables.
type FigureSection struct {
	ID, Caption string
	Figures     Figures
	Tables      []Table // several where one would be too wide
}

// figureSections arranges the figures by kind, without tables.
func (v *View) figureSections() []FigureSection {
	unitOf := map[string]string{}
	for i := range v.Result.Summaries {
		op := v.Result.Summaries[i].Op
		if h := Headline(&v.Result.Summaries[i]); h != nil {
			unitOf[op] = h.Unit
		}
		if latencyOp.MatchString(op) {
			unitOf[op] = "" // they have a table of their own
		}
		if info, _ := plan.Quantity(op).Info(); info.Do == "recover" && info.Unit == "1" {
			unitOf[op] = "files"
		}
	}
	var out []FigureSection
	for _, k := range []struct{ id, caption, unit string }{{"speeds", "Speed", "B/s"},
		{"rates", "Operations", "1/s"}, {"sizes", "Sizes", "B"},
		{"counts", "Bands and ratios", "1"}, {"files", "Files after damage", "files"},
		{"times", "Times of steps", "s"}} {
		f := v.FiguresOf(func(op string) bool { return unitOf[op] == k.unit })
		if len(f.Keys) > 0 {
			out = append(out, FigureSection{ID: k.id, Caption: k.caption, Figures: f})
		}
	}
	return out
}

// addTables fills in the sections of figures, each with tables that fit a page
// and have the rows that have a value in them, and the tables of relations.
func (v *View) addTables() {
	v.Sections = v.figureSections()
	for i := range v.Sections {
		s := &v.Sections[i]
		size := quantitiesPerTable
		if s.ID == "speeds" {
			size = len(s.Figures.Ops)
		}
		parts := slices.Collect(slices.Chunk(s.Figures.Ops, size))
		for n, ops := range parts {
			part := Figures{By: s.Figures.By, Ops: ops}
			part.Keys = Where(s.Figures.Keys, func(k FigureKey) bool { return part.hasAny(k, ops) })
			number := TextIf(len(parts) > 1, fmt.Sprintf(" (%d of %d)", n+1, len(parts)))
			s.Tables = append(s.Tables, v.figureTable(s.Caption+number, part, false))
		}
	}
	own := map[string]Table{"latencies": v.latencyTable(), "sessions": v.sessionTable(), "verbs": v.verbTable()}
	for _, id := range []string{"latencies", "verbs", "sessions"} {
		if t := own[id]; len(t.Rows) > 0 {
			v.Sections = append(v.Sections, FigureSection{ID: id, Caption: t.Caption, Tables: []Table{t}})
		}
	}
	v.Relations = Map(v.Result.Relations, relationTable)
}

// figureTable prints rows of case × phase, with a group of columns for each
// quantity. With main it is the table of the first screen: figures of one
// phase, with their unit, a bar and the published value closest to the
// headline.
func (v *View) figureTable(caption string, f Figures, main bool) Table {
	t := Table{Caption: caption, Columns: Columns("<case", "<phase"), PerQuantity: main}
	shared := f.sharedNotes()
	shared.ratios = shared.ratios && (!main || shared.comparable > 0)
	var notes footnotes
	groups := Map(f.Ops, func(op string) quantityColumns { return newQuantityColumns(f, op, main) })
	t.Columns = append(t.Columns, FlatMap(groups, func(q quantityColumns) []Column { return q.columns })...)
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
	notes.addShared(shared, false)
	if len(f.Keys) > maxRows {
		notes.add(wording.Text("rows-left-out", maxRows, Grouped(len(f.Keys))))
	}
	t.Notes = notes.list()
	t.DropColumns(t.IsEmpty)
	if !main {
		t.nameSingleColumns()
	}
	return t
}

// nameSingleColumns gives a quantity that needs one column the heading "bands"
// instead of a group of its own.
func (t *Table) nameSingleColumns() {
	columns := map[string]int{} // by group
	for _, c := range t.Columns {
		columns[c.Group]++
	}
	for i, c := range t.Columns {
		switch {
		case c.Group == "":
		case columns[c.Group] == 1:
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
	columns  []Column // in the order of cells; those that stay empty are removed from the table
	scale    Scale
	interval bool
	machines []string
	main     bool
	top      float64 // figure whose bar has the full length
}

// newQuantityColumns chooses the columns that the figures of a quantity need,
// and their scale. That of the first screen suits the published values too,
// which keep the unit of their source: 649 MB/s next to 10.11 GB/s would look
// like the larger one.
func newQuantityColumns(f Figures, op string, main bool) quantityColumns {
	q := quantityColumns{main: main, machines: f.PublishedOn(op)}
	if main {
		q.machines = q.machines[:min(len(q.machines), 1)]
	}
	unit, values := "", []float64{}
	for _, s := range f.All(op) {
		h := Headline(s)
		q.top, q.interval = max(q.top, h.Value), q.interval || h.CI != nil
		unit, values = h.Unit, append(values, h.Value)
	}
	for _, p := range f.published(op) {
		if main && p.Unit == unit && p.Low > 0 && IsFinite(p.Low) {
			values = append(values, p.Low)
		}
	}
	q.scale = ColumnScale(unit, values...)
	group := QuantityName(op)
	q.columns = []Column{{Group: group, Title: "measured", Unit: TextIf(!q.main, q.scale.Suffix)},
		{Group: group, Title: "interval", Below: q.main}}
	for _, on := range q.machines {
		title := "published" + TextIf(len(q.machines) > 1 && on != "", ": "+Plain(on, 60))
		q.columns = append(q.columns, Column{Group: group, Title: title},
			Column{Group: group, Title: "ratio", Below: q.main})
	}
	return q
}

// cells are the entries of one row for this quantity, empty ones if it was not
// measured. A reason or a method that all figures share is in the notes of the
// table; an exception gets a mark here.
func (q quantityColumns) cells(s *result.Summary, shared *sharedNotes, notes *footnotes) []Cell {
	if s == nil {
		return make([]Cell, len(q.columns))
	}
	h := Headline(s)
	measured := Cell{Text: q.scale.Number(h.Value)}
	if q.main {
		measured.Text = q.scale.Text(h.Value)
		if q.top > 0 && h.Value > 0 {
			measured.Bar = max(float64(int(h.Value/q.top*1000))/10, 0.5)
		}
	}
	other := len(shared.statistics) > 1 && s.Headline != "" && h.Unit == "B/s"
	measured.Marks = notes.mark(TextIf(other, "Statistic: "+Statistic(s)+"."))
	if doubt := shared.doubt(s.Warnings); doubt != "" {
		measured.Class, measured.Marks = "warn", append(measured.Marks, notes.mark(doubt)...)
	}
	var interval Cell
	switch why := TextIf(h.Why != "" && len(shared.reasons) > 1, "No interval: "+Plain(h.Why, 200)+"."); {
	case h.CI != nil:
		interval = Cell{Title: DescribeInterval(h.CI), Text: RangeText(q.scale, h.CI, h.Unit)}
		if q.main {
			interval.Text = AddUnit(interval.Text, q.scale.Suffix)
		}
		interval.Marks = notes.mark(TextIf(len(shared.intervalKinds) > 1, "Interval: "+interval.Title+"."))
	case q.interval:
		interval = Cell{Text: "none", Class: "muted", Marks: notes.mark(why)}
	default:
		measured.Marks = append(measured.Marks, notes.mark(why)...)
	}
	out := []Cell{measured, interval}
	for _, on := range q.machines {
		out = append(out, q.published(s, on, notes)...)
	}
	return out
}

// published are the cells of the values that were published for a machine, and
// of the ratios to them. The first screen has one value, which is of the
// headline where there are more.
func (q quantityColumns) published(s *result.Summary, on string, notes *footnotes) []Cell {
	var texts, ratios, titles []string
	var value, ratio Cell
	for _, p := range s.Published {
		e := otherEstimate(s, p)
		if !q.main && p.On != on || q.main && (len(texts) > 0 || len(s.Published) > 1 && e != nil) {
			continue
		}
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
		if e != nil {
			ratio.Marks = append(ratio.Marks, notes.mark("Ratio of another statistic than the one shown: "+
				StatisticName(e.Name)+", measured "+Human(e.Value, e.Unit)+".")...)
		}
		if !p.Comparable {
			ratio.Class = "uncomparable"
			why := cmp.Or(Plain(p.On, 200), "other conditions") + TextIf(len(s.Departures) > 0, ", see the deviations")
			ratio.Marks = append(ratio.Marks, notes.mark("Not comparable: published for "+why+".")...)
		}
	}
	value.Text, value.Title = strings.Join(texts, "; "), strings.Join(titles, "; ")
	ratio.Text = strings.Join(ratios, "; ")
	return []Cell{value, ratio}
}

// sessionTable shows the rates of each run of a pooled result, and the ratio of
// the largest to the smallest. It has no rows where the result is of one run.
func (v *View) sessionTable() Table {
	t := Table{Caption: "Run by run", Columns: Columns("<case", "<figure"),
		Notes: []Note{{Text: "Each run alone, as in its own report."}}}
	for i, run := range v.Result.Runs {
		t.Columns = append(t.Columns, Column{Title: fmt.Sprintf("run %d: %s", i+1, Plain(run.Run, 40))})
	}
	t.Columns = append(t.Columns, Column{Title: "largest ÷ smallest"})
	for i := range v.Result.Summaries {
		s := &v.Result.Summaries[i]
		h := Headline(s)
		if len(v.Result.Runs) == 0 || h == nil || h.Unit != "B/s" || len(s.BySession) == 0 {
			continue
		}
		row := TextRow(v.CaseName(s.Case), wording.JoinFacts(QuantityName(s.Op), PhaseName(s.Phase, s.Cycle)))
		var values []float64
		for _, run := range v.Result.Runs {
			at := slices.IndexFunc(s.BySession, func(x result.SessionValue) bool { return x.Run == run.Run })
			if at < 0 || !IsFinite(s.BySession[at].Value) {
				row = append(row, Cell{Text: "none", Class: "muted"})
				continue
			}
			values = append(values, s.BySession[at].Value)
			row = append(row, Cell{Text: Human(s.BySession[at].Value, h.Unit)})
		}
		var spread Cell
		if len(values) > 1 && slices.Min(values) > 0 {
			spread.Text = Ratio(slices.Max(values) / slices.Min(values))
		}
		t.Rows = append(t.Rows, append(row, spread))
	}
	return t
}
