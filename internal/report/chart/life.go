package chart

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/report"
	"dmgbench/internal/result"
)

// maxLives is how many cases have a chart of space of their own; the charts that
// compare them have all. Directories have one only where no images were measured.
const maxLives = 12

// quantity is a line of the charts of space: a size or a count after a step,
// NaN where the step did not take it.
type quantity struct {
	id, heading string
	name, role  string
	unit        string
	each        float64 // bytes that one unit is drawn as
	of          func(*result.Step) float64
}

var (
	allocated = quantity{"allocated", "Size on disk over the steps", "size on disk", "line", "B", 1,
		diskQuantity(func(d *result.DiskUse) (int64, bool) { return d.Allocated, true })}
	bandFiles = quantity{"bands", "Band files over the steps", "band files", "line", "1", 1,
		diskQuantity(func(d *result.DiskUse) (int64, bool) { return int64(d.Bands), d.Bands > 0 })}
	volumeFree = quantity{"free", "Free space of the volume over the steps", "free on the volume", "line", "B", 1,
		diskQuantity(func(d *result.DiskUse) (int64, bool) { return d.VolumeFree, d.VolumeFree >= 0 && d.Attached })}
	liveFiles = quantity{"live", "", "live files", "live", "B", 1,
		func(s *result.Step) float64 { return float64(s.Live) }}
)

// diskQuantity reads a quantity of the sizes that were taken.
func diskQuantity(of func(*result.DiskUse) (value int64, known bool)) func(*result.Step) float64 {
	return func(s *result.Step) float64 {
		if s.Disk != nil {
			if value, known := of(s.Disk); known {
				return float64(value)
			}
		}
		return math.NaN()
	}
}

// lifeCharts draw what containers occupy over the steps of the protocol: each
// container alone, and one quantity of all.
func lifeCharts(r *run) []report.Chart {
	var out []report.Chart
	for i := range r.Result.Cases {
		c := &r.Result.Cases[i]
		if len(out) < maxLives && (c.Target.Kind != "directory" || !r.HasImages()) {
			out = append(out, r.lifeOf(c, i)...)
		}
	}
	moments := r.moments()
	if len(moments) < 2 || len(r.Result.Cases) == 1 { // a single case has it all in one picture
		return out
	}
	labels := report.Map(moments, func(m moment) string {
		return report.FirstOf(report.PhaseName(m.phase, m.cycle), "step "+strconv.Itoa(m.index+1))
	})
	for _, q := range []quantity{allocated, bandFiles, volumeFree} {
		all := lifeChart(q.id, q.heading, report.Axis{Name: q.name, Unit: q.unit}, labels)
		for i := range r.Result.Cases {
			c := &r.Result.Cases[i]
			if q.id == volumeFree.id && c.Target.Kind == "directory" && r.HasImages() {
				continue // free space of the host would press the volumes flat
			}
			addLine(&all, r.CaseName(c.ID), q, report.Map(moments, func(m moment) float64 {
				return medianStep(c, q.of, m.matches)
			}))
		}
		if caption(&all, "lives", data{"Rounds": r.Result.Rounds}); len(all.Series) > 0 {
			out = append(out, all)
		}
	}
	return out
}

// lifeOf draws all that one container occupies: size on disk, live files, bands
// and free space.
func (r *run) lifeOf(c *result.Case, number int) []report.Chart {
	indexes, labels := lifeSteps(c)
	out := lifeChart("case-"+strconv.Itoa(number+1), "Life of the container: "+r.CaseName(c.ID),
		report.Axis{Name: "bytes", Unit: "B"}, labels)
	out.Height, out.BandBytes = 300, float64(c.Target.BandSizeUsed)
	all := []quantity{allocated, liveFiles, volumeFree}
	if out.BandBytes > 0 {
		bands := bandFiles
		bands.name, bands.role, bands.each = "bands", "bands", out.BandBytes
		all = append(all, bands)
	}
	for _, q := range all {
		values := report.Map(indexes, func(index int) float64 {
			return medianStep(c, q.of, func(s *result.Step) bool { return s.Index == index })
		})
		if addLine(&out, q.name, q, values) < 2 && q.id == allocated.id {
			return nil
		}
	}
	caption(&out, "life", data{"Rounds": r.Result.Rounds, "Steps": len(indexes), "BandBytes": out.BandBytes})
	return []report.Chart{out}
}

// lifeChart has a category and a row of its table for each step.
func lifeChart(id, heading string, y report.Axis, steps []string) report.Chart {
	y.Low = new(0.0)
	c := report.Chart{ID: "life-" + id, Height: 280, Heading: heading, X: report.Axis{Categories: steps}, Y: y}
	c.Table.Columns = report.Columns("<step")
	c.Table.Rows = report.Map(steps, func(name string) []report.Cell { return report.TextRow(name) })
	return c
}

// addLine adds one line and one column, unless no value is known, and returns how
// many are. What is missing between two points is dotted, as a solid line would
// show sizes that were not taken.
//
// The dotted line is a series of its own below the solid one, with the same
// name, so that the legend hides both.
func addLine(c *report.Chart, name string, q quantity, values []float64) (known int) {
	known = len(report.Where(values, report.IsFinite))
	if known == 0 {
		return 0
	}
	s := report.Series{Role: q.role, Name: name}
	c.Table.Columns = append(c.Table.Columns, report.Column{Title: name})
	for i, value := range values {
		text := report.TextIf(report.IsFinite(value), report.Human(value, q.unit))
		s.Marks = append(s.Marks, report.Mark{X: float64(i), Y: value * q.each, Tip: c.X.Categories[i] + "\n" + text})
		c.Table.Rows[i] = append(c.Table.Rows[i], report.Cell{Text: text})
	}
	if known > 1 && known < len(values) {
		c.Add(report.Series{Role: "gap", Name: name, Marks: s.Marks})
	}
	c.Add(s)
	return known
}

// lifeSteps are the steps with sizes, and those at which files came or went
// that no sizes were taken after, in the order of the protocol, with their
// names.
//
// Steps of several rounds share an index; the first round that has a step names
// it.
func lifeSteps(c *result.Case) (indexes []int, labels []string) {
	var order []*result.Step
	for i := range c.Steps {
		s := &c.Steps[i]
		isSame := func(o *result.Step) bool { return o.Index == s.Index }
		if report.IsShown(c, s) && !slices.ContainsFunc(order, isSame) {
			order = append(order, s)
		}
	}
	slices.SortStableFunc(order, func(a, b *result.Step) int { return cmp.Compare(a.Index, b.Index) })
	live := int64(0)
	for i, s := range order {
		changed, do := s.Live != live, report.Plain(s.Do, 30)
		live = s.Live
		// Sizes may be taken before files come or go again.
		next := slices.IndexFunc(order[i+1:], func(o *result.Step) bool { return o.Live != live || o.Disk != nil })
		switch {
		case s.Disk != nil:
			labels = append(labels, report.FirstOf(report.PhaseName(s.Phase, s.Cycle), do+" "+strconv.Itoa(s.Index+1)))
		case changed && (next < 0 || order[i+1+next].Live != live):
			phase := report.TextIf(s.Cycle == 0 && s.Phase != s.Do, s.Phase)
			labels = append(labels, strings.TrimSpace(do+" "+report.PhaseName(phase, s.Cycle)))
		default:
			continue
		}
		indexes = append(indexes, s.Index)
	}
	return indexes, labels
}

// medianStep is the median of a quantity over the rounds that count of the
// steps that match, NaN where none has it.
//
// A median, since a round that was disturbed should not move the line.
func medianStep(c *result.Case, of func(*result.Step) float64, match func(*result.Step) bool) float64 {
	var values []float64
	for i := range c.Steps {
		if s := &c.Steps[i]; match(s) && report.IsShown(c, s) {
			if x := of(s); report.IsFinite(x) {
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

// moment is one place in the protocol where sizes were taken. The index
// separates steps without a phase.
type moment struct {
	phase        string
	cycle, index int
}

func (m moment) matches(s *result.Step) bool {
	return s.Disk != nil && s.Phase == m.phase && s.Cycle == m.cycle && (m.phase != "" || s.Index == m.index)
}

// moments lists the places with sizes over all cases, in the order of the
// protocol.
func (r *run) moments() []moment {
	var out []moment
	for i := range r.Result.Cases {
		for _, s := range r.Result.Cases[i].Steps {
			if s.Disk != nil && !slices.ContainsFunc(out, func(m moment) bool { return m.matches(&s) }) {
				out = append(out, moment{s.Phase, s.Cycle, s.Index})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b moment) int { return cmp.Compare(a.index, b.index) })
	return out
}
