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
func (v *View) lifeCharts() []Chart {
	kinds := []struct {
		id, heading, name, unit string
		of                      func(*result.DiskUse) float64
	}{
		{"allocated", "Size on disk over the steps", "size on disk", "B", func(d *result.DiskUse) float64 { return float64(d.Allocated) }},
		{"bands", "Band files over the steps", "band files", "1", func(d *result.DiskUse) float64 { return positive(d.Bands) }},
		{"free", "Free space of the volume over the steps", "free on the volume", "B", func(d *result.DiskUse) float64 { return known(d.VolumeFree) }},
	}
	moments := v.moments()
	if len(moments) < 2 || len(v.Result.Cases) == 1 { // one case has it all in one picture
		return nil
	}
	var out []Chart
	for _, k := range kinds {
		c := Chart{ID: "life-" + k.id, Section: "life", Height: 280, Heading: k.heading, Y: Axis{Name: k.name, Unit: k.unit, Low: pointer(0)}}
		c.Table = Table{Caption: c.Heading, Columns: Columns("<case")}
		for _, m := range moments {
			label := FirstOf(PhaseName(m.phase, m.cycle), "step "+strconv.Itoa(m.index+1))
			c.X.Categories = append(c.X.Categories, label)
			c.Table.Columns = append(c.Table.Columns, Column{Title: label})
		}
		for i := range v.Result.Cases {
			cs := &v.Result.Cases[i]
			values := medians(cs, moments, func(s *result.Step) float64 { return k.of(s.Disk) })
			if !slices.ContainsFunc(values, IsFinite) || k.id == "free" && cs.Target.Kind == "directory" && v.HasImages() {
				continue // what the host has free would press the volumes flat
			}
			c.addRow("line", v.CaseName(cs.ID), k.unit, values)
		}
		c.mergeLines()
		if k.id == "allocated" {
			v.addLive(&c, moments)
		}
		if len(moments) > 12 {
			c.Table = c.Table.transposed()
		}
		if len(c.Series) > 0 {
			c.Sub = "Median of " + Count(v.Result.Rounds, "round") + " at each point where sizes were taken."
			c.Notes = []string{"Points are medians without an interval. Cases that differ by less than 0.5 % of the largest value share a line.", v.Provenance}
			out = append(out, c)
		}
	}
	return out
}

// HasImages reports whether anything but directories was measured.
func (v *View) HasImages() bool {
	return slices.ContainsFunc(v.Result.Cases, func(c result.Case) bool { return c.Target.Kind == "image" })
}

// transposed has a row for each column, for tables that would grow to the side.
func (t Table) transposed() Table {
	out := Table{ID: t.ID, Caption: t.Caption, Notes: t.Notes, Columns: Columns("<step")}
	for _, row := range t.Rows {
		out.Columns = append(out.Columns, Column{Title: row[0].Text})
	}
	for i, c := range t.Columns[1:] {
		row := []Cell{{Text: c.Title, Class: "head"}}
		for _, old := range t.Rows {
			row = append(row, old[i+1])
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

// mergeLines lets cases that cannot be told apart in the picture share a line, so
// that none is hidden under another. The table keeps them apart.
func (c *Chart) mergeLines() {
	top := 0.0
	for _, y := range c.Y.Values {
		top = max(top, math.Abs(y))
	}
	close := func(a, b any) bool {
		x, okX := a.(float64)
		y, okY := b.(float64)
		return okX == okY && math.Abs(x-y) <= top*0.005
	}
	var kept []Series
	for _, s := range c.Series {
		at := slices.IndexFunc(kept, func(k Series) bool { return slices.EqualFunc(k.Points, s.Points, close) })
		if at < 0 {
			kept = append(kept, s)
			continue
		}
		kept[at].Name += ", " + s.Name
	}
	c.Series = kept
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
func (c *Chart) addRow(role, name, unit string, values []float64) {
	s := Series{Role: role, Name: name}
	row := []Cell{{Text: name, Class: "head"}}
	for _, value := range values {
		s.Points = append(s.Points, orNull(value))
		text := ""
		if IsFinite(value) {
			text = Human(value, unit)
			c.Y.Values = append(c.Y.Values, value)
		}
		row = append(row, Cell{Text: text})
	}
	c.Series = append(c.Series, s)
	c.Table.Rows = append(c.Table.Rows, row)
}

// addLive draws the bytes of the files on the volume, if all cases held the same.
func (v *View) addLive(c *Chart, moments []moment) {
	var live []float64
	for i := range v.Result.Cases {
		values := medians(&v.Result.Cases[i], moments, func(s *result.Step) float64 { return float64(s.Live) })
		if !slices.ContainsFunc(values, IsFinite) {
			continue
		}
		if live != nil && !slices.EqualFunc(live, values, func(a, b float64) bool { return a == b || !IsFinite(a) || !IsFinite(b) }) {
			return
		}
		if live == nil {
			live = values
		}
	}
	if slices.ContainsFunc(live, func(x float64) bool { return IsFinite(x) && x > 0 }) {
		c.addRow("live", "live files", "B", live)
	}
}

// moments lists the steps with sizes over all cases, in protocol order.
func (v *View) moments() []moment {
	var out []moment
	for i := range v.Result.Cases {
		for _, s := range v.Result.Cases[i].Steps {
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
			if s.Disk == nil || s.Phase != m.phase || s.Cycle != m.cycle || m.phase == "" && s.Index != m.index || !IsShown(c, s) {
				continue
			}
			if x := of(s); IsFinite(x) {
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
