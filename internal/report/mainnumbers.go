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
func (v *view) mainNumbers() (*table, string) {
	f, key := v.mainFigures()
	part, left := f.rows(key)
	ops := part.ops
	if len(ops) == 0 {
		return nil, ""
	}
	t := table{ID: "main", Caption: "Main numbers" + zero(key.phase != "" || key.cycle > 0, ", phase “"+cycled(key.phase, key.cycle)+"”"), Columns: []column{{"", "case", true}}}
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
	for _, k := range part.keys {
		row := []cell{{Text: v.name(k.caseID), Class: "head", Title: plain(k.caseID, 300)}}
		for i, op := range ops {
			row = append(row, groups[i].cells(f.by[k][op], all, &book)...)
		}
		t.Rows = append(t.Rows, row)
	}
	phases := f.phases(ops)
	if n := len(phases) - 1; n > 0 {
		book.general("Further below: " + count(n, "other phase") + zero(left > 0, " and "+count(left, "other case")) + ".")
	} else if left > 0 {
		book.general("Further below: " + count(left, "other case") + ".")
	}
	t.Notes = book.list
	return &t, "Measured" + zero(beside, map[bool]string{false: " beside published", true: " here, and published elsewhere"}[all.uncomparable]) + zero(key.phase != "" || key.cycle > 0, ", phase “"+cycled(key.phase, key.cycle)+"”")
}

// rows are those of a phase that the first screen has room for, and how many it has not.
func (f figures) rows(key figureKey) (part figures, left int) {
	part.by = f.by
	for _, k := range f.keys {
		if k.phase == key.phase && k.cycle == key.cycle && slices.ContainsFunc(f.ops, func(op string) bool { return f.by[k][op] != nil }) {
			part.keys = append(part.keys, k)
		}
	}
	part.ops = slices.DeleteFunc(slices.Clone(f.ops), func(op string) bool { // measured in other phases only
		return !slices.ContainsFunc(part.keys, func(k figureKey) bool { return f.by[k][op] != nil })
	})
	left = max(len(part.keys)-rowsFirst, 0)
	part.keys = part.keys[:len(part.keys)-left]
	return part, left
}

// firstChart draws the main numbers. Where one of the charts of speeds shows the same, it is that chart, which the
// others then lack.
func (v *view) firstChart(others []chart) (first, rest []chart) {
	f, key := v.mainFigures()
	part, left := f.rows(key)
	if len(part.keys) == 0 || v.first.Outcome != nil {
		return nil, others
	}
	var groups []group
	for _, op := range part.ops {
		groups = append(groups, group{name: words(op), phase: key.phase, cycle: key.cycle, op: op})
	}
	if phase := plain(key.phase, 40); len(groups) == 1 && phase != "" {
		groups[0].name = phase
	}
	first = v.barChart(part, "first", barTitle(part.ops, part.unit(part.ops[0]))+phaseText(cycled(key.phase, key.cycle)), groups)[:1]
	same := func(c chart) bool { return reflect.DeepEqual(c.table.Rows, first[0].table.Rows) }
	if at := slices.IndexFunc(others, same); at >= 0 {
		first, rest = []chart{others[at]}, slices.Delete(slices.Clone(others), at, at+1)
	} else {
		rest = others
		first[0].sub += zero(left > 0, " Further below: "+count(left, "other case")+".")
	}
	first[0].section = "first"
	return first, rest
}

// mainFigures picks the section, up to two quantities and the phase of the first screen.
func (v *view) mainFigures() (figures, figureKey) {
	most, at := -1, -1
	for i, s := range v.sections {
		n := 0
		for _, op := range s.figures.ops {
			n += s.figures.publishedCount(op)
		}
		if len(s.figures.keys) > 0 && n > most && (i == 0 || n > 2*most) { // speeds, unless the source is about something else
			most, at = n, i
		}
	}
	if at < 0 {
		return figures{}, figureKey{}
	}
	f := v.sections[at].figures
	ops := slices.Clone(f.ops)
	slices.SortStableFunc(ops, func(a, b string) int { return min(f.publishedCount(b), 1) - min(f.publishedCount(a), 1) })
	ops = ops[:min(len(ops), 2)]
	f = figures{by: f.by, ops: ops, keys: f.keys}
	for _, k := range f.keys { // the first phase with a published figure
		for _, op := range ops {
			if s := f.by[k][op]; s != nil && len(s.Published) > 0 {
				return f, k
			}
		}
	}
	for _, k := range f.keys {
		if f.by[k][ops[0]] != nil {
			return f, k
		}
	}
	return f, f.keys[0]
}

func (f figures) publishedCount(op string) int {
	n := 0
	for _, k := range f.keys {
		if s := f.by[k][op]; s != nil {
			n += len(s.Published)
		}
	}
	return n
}

// phases are the different rows of a case.
func (f figures) phases(ops []string) []figureKey {
	var out []figureKey
	for _, k := range f.keys {
		k := figureKey{phase: k.phase, cycle: k.cycle}
		full := func(op string) bool {
			return slices.ContainsFunc(f.keys, func(o figureKey) bool { return o.phase == k.phase && o.cycle == k.cycle && f.by[o][op] != nil })
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
	scale     scale
	top       float64 // the full length of a bar
	published bool
}

func mainColumnsOf(f figures, op string) mainColumns {
	m := mainColumns{op: op, published: f.publishedCount(op) > 0}
	var values []float64
	unit := ""
	for _, k := range f.keys {
		s := f.by[k][op]
		if s == nil {
			continue
		}
		h := headline(s)
		m.top, unit, values = max(m.top, h.Value), h.Unit, append(values, h.Value)
		for _, p := range s.Published {
			if p.Unit == h.Unit && p.Low > 0 && finite(p.Low) { // 649 MB/s looks like more than 10.11 GB/s
				values = append(values, p.Low)
			}
		}
	}
	m.scale = columnScale(unit, values...)
	return m
}

func (m mainColumns) columns(all sameForAll) []column {
	out := []column{{words(m.op), "measured" + zero(all.uncomparable && m.published, " here"), false}}
	if m.published {
		out = append(out, column{words(m.op), "published" + zero(all.uncomparable, " elsewhere, not comparable"), false})
	}
	return out
}

func (m mainColumns) cells(s *result.Summary, all sameForAll, book *notes) []cell {
	out := make([]cell, len(m.columns(all)))
	if s == nil {
		return out
	}
	h := headline(s)
	c := cell{Text: m.scale.text(h.Value), Sub: zero(!all.noInterval, "no interval")} // a unit in each cell: nobody reads headings first
	if h.CI != nil {
		c.Sub, c.Title = m.span(h.CI, h.Unit), ciText(h.CI)
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
	text := span(m.scale, ci, unit)
	return text + zero(m.scale.suffix != "" && m.scale.legible(ci.Low) && m.scale.legible(ci.High), " "+m.scale.suffix)
}

// publishedCell is the figure of the source with the ratio to it, greyed where the two must not be compared.
func (m mainColumns) publishedCell(s *result.Summary, all sameForAll, book *notes) cell {
	for _, p := range s.Published {
		e := comparedWith(s, p)
		if e != nil && e.Name != headline(s).Name && len(s.Published) > 1 {
			continue // of a part of the files, or another statistic
		}
		c := cell{Text: publishedText(p)}
		switch {
		case !p.Comparable:
			c.Class, c.Sub = "muted", zero(!all.uncomparable, "not comparable")
		case p.Ratio > 0:
			c.Sub = "measured is " + ratio(p.Ratio)
			if e != nil && e.Name != headline(s).Name {
				c.Marks = append(c.Marks, book.mark("Compared with another statistic: see the full table."))
			}
		}
		return c
	}
	return cell{}
}
