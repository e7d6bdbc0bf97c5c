package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

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
	if len(moments) < 2 {
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
			if !slices.ContainsFunc(values, finite) {
				continue
			}
			c.addRow("line", v.name(cs.ID), k.unit, values)
		}
		c.mergeLines()
		if k.id == "allocated" {
			v.addLive(&c, moments)
		}
		if len(c.series) > 0 {
			c.sub = "Median of " + count(v.result.Rounds, "round") + " at each point where sizes were taken."
			c.notes = []string{"Points are medians without an interval. Cases that differ by less than 0.5 % of the largest value share a line.", v.provenance}
			out = append(out, c)
		}
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

// driftChart sets the speed of every step against the median of its own kind, over the time of the run.
func (v *view) driftChart() []chart {
	type step struct {
		caseID, name string
		minutes      float64
		rate         float64
	}
	kinds := map[string][]float64{}
	var steps []step
	for i := range v.result.Cases {
		c := &v.result.Cases[i]
		for j := range c.Steps {
			s := &c.Steps[j]
			rate, ok := stepRate(s)
			if !ok || !counts(c, s) {
				continue
			}
			key := c.ID + "\x00" + stepName(*s)
			kinds[key] = append(kinds[key], rate)
			steps = append(steps, step{c.ID, stepName(*s), v.minutes(s), rate})
		}
	}
	out := chart{id: "drift", section: "drift", height: 280, heading: "Speed along the run",
		x: axis{name: "minutes since the start", unit: "1"}, y: axis{name: "speed ÷ median of its kind", unit: "1"}}
	out.table = table{Caption: out.heading, Columns: []column{{"", "case", true}, {"", "step", true}, {"", "slowest ÷ median", false}, {"", "fastest ÷ median", false}, {"", "times", false}}}
	drawn := 0
	for i := range v.result.Cases {
		id := v.result.Cases[i].ID
		pts := series{role: "points", name: v.name(id)}
		var done []string
		for _, s := range steps {
			all := kinds[s.caseID+"\x00"+s.name]
			median, err := stats.Median(all)
			if s.caseID != id || len(all) < 2 || err != nil {
				continue
			}
			pts.points, pts.tips = append(pts.points, xy(s.minutes, s.rate/median)), append(pts.tips, s.name+"\n"+human(s.rate, "B/s"))
			drawn++
			if !slices.Contains(done, s.name) {
				done = append(done, s.name)
				out.table.Rows = append(out.table.Rows, []cell{{Text: pts.name, Class: "head"}, {Text: s.name}, {Text: human3(slices.Min(all) / median)},
					{Text: human3(slices.Max(all) / median)}, {Text: strconv.Itoa(len(all))}})
			}
		}
		if len(pts.points) > 0 {
			out.series = append(out.series, pts)
		}
	}
	if drawn == 0 {
		return nil
	}
	out.y.low, out.y.high = driftRange(out.series)
	out.sub = count(drawn, "timed step") + " that were done more than once; 1 is the median of the same step of the same case."
	out.notes = []string{"A slope or a jump that all cases share is the machine, not the images.", v.provenance}
	return []chart{out}
}

// driftRange keeps 1 in the middle and shows at least a tenth either way, so that
// noise does not look like drift.
func driftRange(all []series) (low, high *float64) {
	far := 0.1
	for _, s := range all {
		for _, p := range s.points {
			if y, ok := p.([]any)[1].(float64); ok {
				far = max(far, math.Abs(y-1))
			}
		}
	}
	far = math.Ceil(far*20) / 20
	return pointer(max(digits(1-far), 0)), pointer(digits(1 + far))
}

func human3(v float64) string { return scale{1, ""}.number(v) }

// stepRate is bytes over time from gate to last done.
func stepRate(s *result.Step) (rate float64, ok bool) {
	switch {
	case s.Span != nil && s.Span.LastDoneNS > s.Span.GateNS && s.Span.Bytes > 0:
		return float64(s.Span.Bytes) / float64(s.Span.LastDoneNS-s.Span.GateNS) * 1e9, true
	case s.Stream != nil && s.DurationNS > 0 && s.Stream.In > 0:
		return float64(s.Stream.In) / float64(s.DurationNS) * 1e9, true
	}
	return 0, false
}

// minutes is when a step began, counted from the start of the first session.
func (v *view) minutes(s *result.Step) float64 {
	first, offset := int64(math.MaxInt64), time.Duration(0)
	for i := range v.result.Cases {
		for _, o := range v.result.Cases[i].Steps {
			if o.Session == s.Session {
				first = min(first, o.StartNS)
			}
		}
	}
	for _, session := range v.result.Sessions {
		if session.Index == s.Session {
			offset = session.Started.Sub(v.result.Sessions[0].Started)
		}
	}
	return (time.Duration(s.StartNS-first) + offset).Minutes()
}
