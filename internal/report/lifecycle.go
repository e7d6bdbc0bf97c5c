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
func (v *View) lifeCycles() []Chart {
	var out []Chart
	for i := range v.Result.Cases {
		c := &v.Result.Cases[i]
		if c.Target.Kind == "directory" && v.HasImages() || len(out) == maxLives {
			continue
		}
		if made, ok := v.lifeCycle(c); ok {
			made.ID = "life-case-" + strconv.Itoa(i+1)
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

func (v *View) lifeCycle(c *result.Case) (Chart, bool) {
	steps := lifeSteps(c)
	if len(steps) < 2 {
		return Chart{}, false
	}
	out := Chart{Section: "life", Height: 300, Heading: "Life of the container: " + v.CaseName(c.ID), Y: Axis{Name: "bytes", Unit: "B", Low: pointer(0)},
		Count: float64(c.Target.BandSizeUsed)}
	out.Table = Table{Caption: out.Heading, Columns: Columns("<step")}
	for _, s := range steps {
		out.X.Categories = append(out.X.Categories, s.label)
		out.Table.Rows = append(out.Table.Rows, []Cell{{Text: s.label, Class: "head"}})
	}
	banded := false
	for _, k := range lifeKinds(c) {
		values := make([]float64, len(steps))
		for i, s := range steps {
			values[i] = medianAt(c, s.index, k.of)
		}
		if !slices.ContainsFunc(values, IsFinite) {
			continue
		}
		banded = banded || k.role == "bands"
		out.addLife(k, values)
	}
	sized := slices.IndexFunc(out.Table.Columns, func(col Column) bool { return col.Title == "size on disk" })
	if sized < 0 {
		return Chart{}, false
	}
	taken := len(slices.DeleteFunc(slices.Clone(out.Table.Rows), func(row []Cell) bool { return row[sized].Text == "" }))
	if taken < 2 {
		return Chart{}, false
	}
	out.Sub = "Median of " + Count(v.Result.Rounds, "round") + " at " + Count(len(steps), "step") + " at which sizes were taken or files came or went."
	out.Notes = []string{"Marks: where sizes were taken; dotted in between: not known. Live files are known at every step. Intervals are in the tables of figures." +
		TextIf(banded, " Bands are drawn as what they can hold, "+Human(out.Count, "B")+" each; their number stands beside."), v.Provenance}
	return out, true
}

// addLife adds one line and one column.
func (c *Chart) addLife(k lifeKind, values []float64) {
	s := Series{Role: k.role, Name: k.name}
	c.Table.Columns = append(c.Table.Columns, Column{Title: k.name})
	for i, value := range values {
		text, drawn := "", value*k.each
		if IsFinite(value) {
			text = Human(value, k.unit)
			c.Y.Values = append(c.Y.Values, drawn)
		}
		s.Points = append(s.Points, orNull(drawn))
		s.Tips = append(s.Tips, c.X.Categories[i]+"\n"+text)
		c.Table.Rows[i] = append(c.Table.Rows[i], Cell{Text: text})
	}
	if gaps(s.Points) { // a line through steps at which nothing was taken would say too much
		c.Series = append(c.Series, Series{Role: "gap", Name: s.Name, Points: s.Points})
	}
	c.Series = append(c.Series, s)
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
		if s := &c.Steps[i]; IsShown(c, s) && first[s.Index] == nil {
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
			out = append(out, lifeStep{s.Index, FirstOf(PhaseName(TextIf(s.Phase != "", s.Phase), s.Cycle), Plain(s.Do, 30)+" "+strconv.Itoa(s.Index+1))})
		} else if changed && !measuredNext(order[i+1:], live) {
			out = append(out, lifeStep{s.Index, strings.TrimSpace(Plain(s.Do, 30) + " " + PhaseName(TextIf(s.Cycle == 0 && s.Phase != s.Do, s.Phase), s.Cycle))})
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
		if s := &c.Steps[i]; s.Index == index && IsShown(c, s) {
			if x := of(s); IsFinite(x) {
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
