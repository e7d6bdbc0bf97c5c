package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"dmgbench/internal/result"
	"dmgbench/internal/stats"
)

// moment is one place in the protocol where sizes were taken.
type moment struct {
	phase        string
	cycle, index int
}

// lifeCharts draw what a container occupies over the steps of the protocol.
func (v *view) lifeCharts() []chart {
	kinds := []struct {
		id, heading, name, unit string
		of                      func(*result.DiskUse) float64
	}{
		{"allocated", "Size on disk over the steps", "size on disk", "B", func(d *result.DiskUse) float64 { return float64(d.Allocated) }},
		{"bands", "Band files over the steps", "band files", "1", func(d *result.DiskUse) float64 { return positive(d.Bands) }},
		{"free", "Free space of the volume over the steps", "free on the volume", "B", func(d *result.DiskUse) float64 { return known(d.VolumeFree) }},
	}
	moments := v.moments()
	if len(moments) < 2 || len(v.result.Cases) == 1 { // one case has it all in one picture
		return nil
	}
	var out []chart
	for _, k := range kinds {
		c := chart{id: "life-" + k.id, section: "life", height: 280, heading: k.heading, y: axis{name: k.name, unit: k.unit, low: pointer(0)}}
		c.table = table{Caption: c.heading, Columns: []column{{"", "case", true}}}
		for _, m := range moments {
			label := firstOf(cycled(m.phase, m.cycle), "step "+strconv.Itoa(m.index+1))
			c.x.categories = append(c.x.categories, label)
			c.table.Columns = append(c.table.Columns, column{"", label, false})
		}
		for i := range v.result.Cases {
			cs := &v.result.Cases[i]
			values := medians(cs, moments, func(s *result.Step) float64 { return k.of(s.Disk) })
			if !slices.ContainsFunc(values, finite) || k.id == "free" && cs.Target.Kind == "directory" && v.hasImages() {
				continue // what the host has free would press the volumes flat
			}
			c.addRow("line", v.name(cs.ID), k.unit, values)
		}
		c.mergeLines()
		if k.id == "allocated" {
			v.addLive(&c, moments)
		}
		if len(moments) > 12 {
			c.table = c.table.transposed()
		}
		if len(c.series) > 0 {
			c.sub = "Median of " + count(v.result.Rounds, "round") + " at each point where sizes were taken."
			c.notes = []string{"Points are medians without an interval. Cases that differ by less than 0.5 % of the largest value share a line.", v.provenance}
			out = append(out, c)
		}
	}
	return out
}

// hasImages reports whether anything but directories was measured.
func (v *view) hasImages() bool {
	return slices.ContainsFunc(v.result.Cases, func(c result.Case) bool { return c.Target.Kind == "image" })
}

// transposed has a row for each column, for tables that would grow to the side.
func (t table) transposed() table {
	out := table{ID: t.ID, Caption: t.Caption, Notes: t.Notes, Columns: []column{{"", "step", true}}}
	for _, row := range t.Rows {
		out.Columns = append(out.Columns, column{"", row[0].Text, false})
	}
	for i, c := range t.Columns[1:] {
		row := []cell{{Text: c.Title, Class: "head"}}
		for _, old := range t.Rows {
			row = append(row, old[i+1])
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

// mergeLines lets cases that cannot be told apart in the picture share a line, so
// that none is hidden under another. The table keeps them apart.
func (c *chart) mergeLines() {
	top := 0.0
	for _, y := range c.y.values {
		top = max(top, math.Abs(y))
	}
	close := func(a, b any) bool {
		x, okX := a.(float64)
		y, okY := b.(float64)
		return okX == okY && math.Abs(x-y) <= top*0.005
	}
	var kept []series
	for _, s := range c.series {
		at := slices.IndexFunc(kept, func(k series) bool { return slices.EqualFunc(k.points, s.points, close) })
		if at < 0 {
			kept = append(kept, s)
			continue
		}
		kept[at].name += ", " + s.name
	}
	c.series = kept
}

func positive(n int) float64 {
	if n <= 0 {
		return math.NaN()
	}
	return float64(n)
}

func known(n int64) float64 {
	if n < 0 {
		return math.NaN()
	}
	return float64(n)
}

// addRow adds one case as a line and as a row of the table.
func (c *chart) addRow(role, name, unit string, values []float64) {
	s := series{role: role, name: name}
	row := []cell{{Text: name, Class: "head"}}
	for _, value := range values {
		s.points = append(s.points, orNull(value))
		text := ""
		if finite(value) {
			text = human(value, unit)
			c.y.values = append(c.y.values, value)
		}
		row = append(row, cell{Text: text})
	}
	c.series = append(c.series, s)
	c.table.Rows = append(c.table.Rows, row)
}

// addLive draws the bytes of the files on the volume, if all cases held the same.
func (v *view) addLive(c *chart, moments []moment) {
	var live []float64
	for i := range v.result.Cases {
		values := medians(&v.result.Cases[i], moments, func(s *result.Step) float64 { return float64(s.Live) })
		if !slices.ContainsFunc(values, finite) {
			continue
		}
		if live != nil && !slices.EqualFunc(live, values, func(a, b float64) bool { return a == b || !finite(a) || !finite(b) }) {
			return
		}
		if live == nil {
			live = values
		}
	}
	if slices.ContainsFunc(live, func(x float64) bool { return finite(x) && x > 0 }) {
		c.addRow("live", "live files", "B", live)
	}
}

// moments lists the steps with sizes over all cases, in protocol order.
func (v *view) moments() []moment {
	var out []moment
	for i := range v.result.Cases {
		for _, s := range v.result.Cases[i].Steps {
			m := moment{s.Phase, s.Cycle, s.Index}
			same := func(o moment) bool {
				return o.phase == m.phase && o.cycle == m.cycle && (m.phase != "" || o.index == m.index)
			}
			if s.Disk != nil && !slices.ContainsFunc(out, same) {
				out = append(out, m)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b moment) int { return cmp.Compare(a.index, b.index) })
	return out
}

// medians is one value a moment over the rounds of a case that count.
func medians(c *result.Case, moments []moment, of func(*result.Step) float64) []float64 {
	out := make([]float64, len(moments))
	for i, m := range moments {
		var values []float64
		for j := range c.Steps {
			s := &c.Steps[j]
			if s.Disk == nil || s.Phase != m.phase || s.Cycle != m.cycle || m.phase == "" && s.Index != m.index || !counts(c, s) {
				continue
			}
			if x := of(s); finite(x) {
				values = append(values, x)
			}
		}
		if median, err := stats.Median(values); err == nil {
			out[i] = median
		} else {
			out[i] = math.NaN()
		}
	}
	return out
}
