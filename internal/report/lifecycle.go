package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/result"
	"dmgbench/internal/stats"
)

// maxLives is how many cases have a picture of their own; all are in the pictures that compare them.
const maxLives = 12

// lifeStep is one step of a case at which sizes were taken, or files came or went.
type lifeStep struct {
	index int
	label string
}

// lifeCycles draw, one picture a container, all that it occupies over its protocol:
// size on disk, live files, bands and what is free in the volume.
func (v *view) lifeCycles() []chart {
	var out []chart
	for i := range v.result.Cases {
		c := &v.result.Cases[i]
		if c.Target.Kind == "directory" && v.hasImages() || len(out) == maxLives {
			continue
		}
		if made, ok := v.lifeCycle(c); ok {
			made.id = "life-case-" + strconv.Itoa(i+1)
			out = append(out, made)
		}
	}
	return out
}

// lifeKinds are the columns of a life cycle; NaN where a step does not know.
func lifeKinds(c *result.Case) []lifeKind {
	disk := func(of func(*result.DiskUse) float64) func(*result.Step) float64 {
		return func(s *result.Step) float64 {
			if s.Disk == nil {
				return math.NaN()
			}
			return of(s.Disk)
		}
	}
	bands := disk(func(d *result.DiskUse) float64 { return positive(d.Bands) })
	size := float64(c.Target.BandSizeUsed)
	kinds := []lifeKind{
		{"size on disk", "line", "B", 1, disk(func(d *result.DiskUse) float64 { return float64(d.Allocated) })},
		{"live files", "live", "B", 1, func(s *result.Step) float64 { return float64(s.Live) }},
		{"free on the volume", "line", "B", 1, disk(func(d *result.DiskUse) float64 {
			if !d.Attached {
				return math.NaN()
			}
			return known(d.VolumeFree)
		})},
	}
	if size > 0 {
		kinds = append(kinds, lifeKind{"bands", "bands", "1", size, bands})
	}
	return kinds
}

// lifeKind is one line of a life cycle; each is what one unit is drawn as, in bytes.
type lifeKind struct {
	name, role, unit string
	each             float64
	of               func(*result.Step) float64
}

func (v *view) lifeCycle(c *result.Case) (chart, bool) {
	steps := lifeSteps(c)
	if len(steps) < 2 {
		return chart{}, false
	}
	out := chart{section: "life", height: 300, heading: "Life of the container: " + v.name(c.ID), y: axis{name: "bytes", unit: "B", low: pointer(0)},
		count: float64(c.Target.BandSizeUsed)}
	out.table = table{Caption: out.heading, Columns: []column{{"", "step", true}}}
	for _, s := range steps {
		out.x.categories = append(out.x.categories, s.label)
		out.table.Rows = append(out.table.Rows, []cell{{Text: s.label, Class: "head"}})
	}
	banded := false
	for _, k := range lifeKinds(c) {
		values := make([]float64, len(steps))
		for i, s := range steps {
			values[i] = medianAt(c, s.index, k.of)
		}
		if !slices.ContainsFunc(values, finite) {
			continue
		}
		banded = banded || k.role == "bands"
		out.addLife(k, values)
	}
	sized := slices.IndexFunc(out.table.Columns, func(col column) bool { return col.Title == "size on disk" })
	if sized < 0 {
		return chart{}, false
	}
	taken := len(slices.DeleteFunc(slices.Clone(out.table.Rows), func(row []cell) bool { return row[sized].Text == "" }))
	if taken < 2 {
		return chart{}, false
	}
	out.sub = "Median of " + count(v.result.Rounds, "round") + " at " + count(len(steps), "step") + " at which sizes were taken or files came or went."
	out.notes = []string{"Marks: where sizes were taken; dotted in between: not known. Live files are known at every step. Intervals are in the tables of figures." +
		zero(banded, " Bands are drawn as what they can hold, "+human(out.count, "B")+" each; their number stands beside."), v.provenance}
	return out, true
}

// addLife adds one line and one column.
func (c *chart) addLife(k lifeKind, values []float64) {
	s := series{role: k.role, name: k.name}
	c.table.Columns = append(c.table.Columns, column{"", k.name, false})
	for i, value := range values {
		text, drawn := "", value*k.each
		if finite(value) {
			text = human(value, k.unit)
			c.y.values = append(c.y.values, drawn)
		}
		s.points = append(s.points, orNull(drawn))
		s.tips = append(s.tips, c.x.categories[i]+"\n"+text)
		c.table.Rows[i] = append(c.table.Rows[i], cell{Text: text})
	}
	if gaps(s.points) { // a line through steps at which nothing was taken would say too much
		c.series = append(c.series, series{role: "gap", name: s.name, points: s.points})
	}
	c.series = append(c.series, s)
}

// gaps reports whether something is missing between two points.
func gaps(points []any) bool {
	first := slices.IndexFunc(points, func(p any) bool { return p != nil })
	last := len(points) - 1
	for last > first && points[last] == nil {
		last--
	}
	return first >= 0 && slices.Contains(points[first:last+1], nil)
}

// lifeSteps are the steps with sizes, and those at which files came or went that no
// sizes were taken after, in the order of the protocol.
func lifeSteps(c *result.Case) []lifeStep {
	first := map[int]*result.Step{}
	var order []*result.Step
	for i := range c.Steps {
		if s := &c.Steps[i]; counts(c, s) && first[s.Index] == nil {
			first[s.Index] = s
			order = append(order, s)
		}
	}
	slices.SortStableFunc(order, func(a, b *result.Step) int { return cmp.Compare(a.Index, b.Index) })
	var out []lifeStep
	live := int64(0)
	for i, s := range order {
		changed := s.Live != live
		live = s.Live
		if s.Disk != nil {
			out = append(out, lifeStep{s.Index, firstOf(cycled(zero(s.Phase != "", s.Phase), s.Cycle), plain(s.Do, 30)+" "+strconv.Itoa(s.Index+1))})
		} else if changed && !measuredNext(order[i+1:], live) {
			out = append(out, lifeStep{s.Index, strings.TrimSpace(plain(s.Do, 30) + " " + cycled(zero(s.Cycle == 0 && s.Phase != s.Do, s.Phase), s.Cycle))})
		}
	}
	return out
}

// measuredNext reports whether sizes are taken before files come or go again.
func measuredNext(rest []*result.Step, live int64) bool {
	for _, s := range rest {
		if s.Live != live {
			return false
		}
		if s.Disk != nil {
			return true
		}
	}
	return false
}

// medianAt is the median over the rounds that count of one step.
func medianAt(c *result.Case, index int, of func(*result.Step) float64) float64 {
	var values []float64
	for i := range c.Steps {
		if s := &c.Steps[i]; s.Index == index && counts(c, s) {
			if x := of(s); finite(x) {
				values = append(values, x)
			}
		}
	}
	m, err := stats.Median(values)
	if err != nil {
		return math.NaN()
	}
	return m
}
