package report

import (
	"reflect"
	"slices"
	"strings"

	"dmgbench/internal/result"
)

// mainNumbers is the table of the first screen: a row a case, the one or two
// quantities that the source published most about (else the first two), in the
// first phase for which it did, each measured figure with its interval.
func (v *View) mainNumbers() (*Table, string) {
	f, key := v.MainFigures()
	part, left := f.Rows(key)
	ops := part.Ops
	if len(ops) == 0 {
		return nil, ""
	}
	t := Table{ID: "main", Caption: "Main numbers" + TextIf(key.Phase != "" || key.Cycle > 0, ", phase “"+PhaseName(key.Phase, key.Cycle)+"”"), Columns: Columns("<case")}
	var book notes
	all := alike(part, ops)
	groups := make([]mainColumns, len(ops))
	beside := false
	for i, op := range ops {
		groups[i] = mainColumnsOf(part, op)
		t.Columns = append(t.Columns, groups[i].columns(all)...)
		beside = beside || groups[i].published
	}
	for _, general := range v.sharedText(part).general {
		if !strings.HasPrefix(general, "Ratio") { // it has none
			book.general(general)
		}
	}
	for _, general := range all.notes() {
		book.general(general)
	}
	for _, k := range part.Keys {
		row := []Cell{{Text: v.CaseName(k.CaseID), Class: "head", Title: Plain(k.CaseID, 300)}}
		for i, op := range ops {
			row = append(row, groups[i].cells(f.By[k][op], all, &book)...)
		}
		t.Rows = append(t.Rows, row)
	}
	phases := f.Phases(ops)
	if n := len(phases) - 1; n > 0 {
		book.general("Further below: " + Count(n, "other phase") + TextIf(left > 0, " and "+Count(left, "other case")) + ".")
	} else if left > 0 {
		book.general("Further below: " + Count(left, "other case") + ".")
	}
	t.Notes = book.list
	return &t, "Measured" + TextIf(beside, map[bool]string{false: " beside published", true: " here, and published elsewhere"}[all.uncomparable]) + TextIf(key.Phase != "" || key.Cycle > 0, ", phase “"+PhaseName(key.Phase, key.Cycle)+"”")
}

// Rows are those of a phase that the first screen has room for, and how many it has not.
func (f Figures) Rows(key FigureKey) (part Figures, left int) {
	part.By = f.By
	for _, k := range f.Keys {
		if k.Phase == key.Phase && k.Cycle == key.Cycle && slices.ContainsFunc(f.Ops, func(op string) bool { return f.By[k][op] != nil }) {
			part.Keys = append(part.Keys, k)
		}
	}
	part.Ops = slices.DeleteFunc(slices.Clone(f.Ops), func(op string) bool { // measured in other phases only
		return !slices.ContainsFunc(part.Keys, func(k FigureKey) bool { return f.By[k][op] != nil })
	})
	left = max(len(part.Keys)-rowsFirst, 0)
	part.Keys = part.Keys[:len(part.Keys)-left]
	return part, left
}

// firstChart draws the main numbers. Where one of the charts of speeds shows the same, it is that chart, which the
// others then lack.
func (v *View) firstChart(others []Chart) (first, rest []Chart) {
	f, key := v.MainFigures()
	part, left := f.Rows(key)
	if len(part.Keys) == 0 || v.First.Outcome != nil {
		return nil, others
	}
	var groups []group
	for _, op := range part.Ops {
		groups = append(groups, group{name: QuantityName(op), phase: key.Phase, cycle: key.Cycle, op: op})
	}
	if phase := Plain(key.Phase, 40); len(groups) == 1 && phase != "" {
		groups[0].name = phase
	}
	first = v.barChart(part, "first", barTitle(part.Ops, part.unit(part.Ops[0]))+PhaseSuffix(PhaseName(key.Phase, key.Cycle)), groups)[:1]
	same := func(c Chart) bool { return reflect.DeepEqual(c.Table.Rows, first[0].Table.Rows) }
	if at := slices.IndexFunc(others, same); at >= 0 {
		first, rest = []Chart{others[at]}, slices.Delete(slices.Clone(others), at, at+1)
	} else {
		rest = others
		first[0].Sub += TextIf(left > 0, " Further below: "+Count(left, "other case")+".")
	}
	first[0].Section = "first"
	return first, rest
}

// MainFigures picks the section, up to two quantities and the phase of the first screen.
func (v *View) MainFigures() (Figures, FigureKey) {
	most, at := -1, -1
	for i, s := range v.Sections {
		n := 0
		for _, op := range s.Figures.Ops {
			n += s.Figures.publishedCount(op)
		}
		if len(s.Figures.Keys) > 0 && n > most && (i == 0 || n > 2*most) { // speeds, unless the source is about something else
			most, at = n, i
		}
	}
	if at < 0 {
		return Figures{}, FigureKey{}
	}
	f := v.Sections[at].Figures
	ops := slices.Clone(f.Ops)
	slices.SortStableFunc(ops, func(a, b string) int { return min(f.publishedCount(b), 1) - min(f.publishedCount(a), 1) })
	ops = ops[:min(len(ops), 2)]
	f = Figures{By: f.By, Ops: ops, Keys: f.Keys}
	for _, k := range f.Keys { // the first phase with a published figure
		for _, op := range ops {
			if s := f.By[k][op]; s != nil && len(s.Published) > 0 {
				return f, k
			}
		}
	}
	for _, k := range f.Keys {
		if f.By[k][ops[0]] != nil {
			return f, k
		}
	}
	return f, f.Keys[0]
}

func (f Figures) publishedCount(op string) int {
	n := 0
	for _, k := range f.Keys {
		if s := f.By[k][op]; s != nil {
			n += len(s.Published)
		}
	}
	return n
}

// Phases are the different rows of a case.
func (f Figures) Phases(ops []string) []FigureKey {
	var out []FigureKey
	for _, k := range f.Keys {
		k := FigureKey{Phase: k.Phase, Cycle: k.Cycle}
		full := func(op string) bool {
			return slices.ContainsFunc(f.Keys, func(o FigureKey) bool { return o.Phase == k.Phase && o.Cycle == k.Cycle && f.By[o][op] != nil })
		}
		if !slices.Contains(out, k) && slices.ContainsFunc(ops, full) {
			out = append(out, k)
		}
	}
	return out
}

// mainColumns are the columns of one quantity: measured, and published where there is any.
type mainColumns struct {
	op        string
	scale     Scale
	top       float64 // the full length of a bar
	published bool
}

func mainColumnsOf(f Figures, op string) mainColumns {
	m := mainColumns{op: op, published: f.publishedCount(op) > 0}
	var values []float64
	unit := ""
	for _, k := range f.Keys {
		s := f.By[k][op]
		if s == nil {
			continue
		}
		h := Headline(s)
		m.top, unit, values = max(m.top, h.Value), h.Unit, append(values, h.Value)
		for _, p := range s.Published {
			if p.Unit == h.Unit && p.Low > 0 && IsFinite(p.Low) { // 649 MB/s looks like more than 10.11 GB/s
				values = append(values, p.Low)
			}
		}
	}
	m.scale = ColumnScale(unit, values...)
	return m
}

func (m mainColumns) columns(all sameForAll) []Column {
	out := []Column{{Group: QuantityName(m.op), Title: "measured" + TextIf(all.uncomparable && m.published, " here")}}
	if m.published {
		out = append(out, Column{Group: QuantityName(m.op), Title: "published" + TextIf(all.uncomparable, " elsewhere, not comparable")})
	}
	return out
}

func (m mainColumns) cells(s *result.Summary, all sameForAll, book *notes) []Cell {
	out := make([]Cell, len(m.columns(all)))
	if s == nil {
		return out
	}
	h := Headline(s)
	c := Cell{Text: m.scale.Text(h.Value), Sub: TextIf(!all.noInterval, "no interval")} // a unit in each cell: nobody reads headings first
	if h.CI != nil {
		c.Sub, c.Title = m.span(h.CI, h.Unit), DescribeInterval(h.CI)
	}
	if m.top > 0 && h.Value > 0 {
		c.Bar = max(digits(float64(int(h.Value/m.top*1000))/10), 0.5)
	}
	if all.weakenedBeyond(s.Warnings) {
		c.Class = "warn"
		c.Marks = append(c.Marks, book.mark(all.beyond(s.Warnings)))
	}
	out[0] = c
	if m.published {
		out[1] = m.publishedCell(s, all, book)
	}
	return out
}

// span is an interval with its unit.
func (m mainColumns) span(ci *result.CI, unit string) string {
	text := RangeText(m.scale, ci, unit)
	return text + TextIf(m.scale.Suffix != "" && m.scale.legible(ci.Low) && m.scale.legible(ci.High), " "+m.scale.Suffix)
}

// publishedCell is the figure of the source with the ratio to it, greyed where the two must not be compared.
func (m mainColumns) publishedCell(s *result.Summary, all sameForAll, book *notes) Cell {
	for _, p := range s.Published {
		e := ComparedEstimate(s, p)
		if e != nil && e.Name != Headline(s).Name && len(s.Published) > 1 {
			continue // of a part of the files, or another statistic
		}
		c := Cell{Text: PublishedText(p)}
		switch {
		case !p.Comparable:
			c.Class, c.Sub = "muted", TextIf(!all.uncomparable, "not comparable")
		case p.Ratio > 0:
			c.Sub = "measured is " + Ratio(p.Ratio)
			if e != nil && e.Name != Headline(s).Name {
				c.Marks = append(c.Marks, book.mark("Compared with another statistic: see the full table."))
			}
		}
		return c
	}
	return Cell{}
}
