package chart

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/report"
	"dmgbench/internal/result"
	"dmgbench/internal/system/units"
)

// minCurve is the number of values from which an axis makes a curve.
//
// Two points always lie on a line and show no shape.
const minCurve = 3

// intervalRoom is how far an axis reaches for intervals, in multiples of the
// largest value: longer ones, which would press the values flat, are cut at the
// edge with an arrow.
const intervalRoom = 3

// curve is one quantity along an axis.
type curve struct {
	name   string
	points []curvePoint
}

type curvePoint struct {
	x      float64
	figure *result.Summary
}

// curveSet collects curves by name, in the order in which they come.
type curveSet struct{ curves []curve }

// Curves are few: a search is as fast as a map, and keeps their order.
func (s *curveSet) add(name string, x float64, figure *result.Summary) {
	at := slices.IndexFunc(s.curves, func(c curve) bool { return c.name == name })
	if at < 0 {
		at, s.curves = len(s.curves), append(s.curves, curve{name: name})
	}
	s.curves[at].points = append(s.curves[at].points, curvePoint{x, figure})
}

// long are the curves with enough points, each sorted by x.
func (s *curveSet) long() []curve {
	out := slices.DeleteFunc(s.curves, func(c curve) bool { return len(c.points) < minCurve })
	for _, c := range out {
		slices.SortStableFunc(c.points, func(a, b curvePoint) int { return cmp.Compare(a.x, b.x) })
	}
	return out
}

// drawCurves draws curves along an axis and ends the y axis where intervals
// would press the values flat. role is line, or dots where fits are the lines.
func drawCurves(id, op, along, xUnit, role string, curves []curve) (c report.Chart, ns []string) {
	unit := report.Headline(curves[0].points[0].figure).Unit
	var values []float64
	for _, one := range curves {
		for _, p := range one.points {
			values = append(values, report.Headline(p.figure).Value)
		}
	}
	sc := report.ColumnScale(unit, values...)
	c = report.Chart{ID: id, Height: 320, Heading: report.Capitalize(report.QuantityName(op)) + " along " + along,
		Y: report.Axis{Name: report.QuantityName(op), Unit: unit, Low: new(0.0)}}
	c.Table.Columns = report.Columns("<curve", along, report.WithUnit("measured", sc), "interval", "published", "<n")
	for _, one := range curves {
		s := report.Series{Role: role, Name: one.name}
		for _, p := range one.points {
			x := report.Human(p.x, xUnit)
			m := addFigure(&c, p.figure, sc, one.name, x)
			m.X, m.Y, m.Tip = p.x, report.Headline(p.figure).Value, along+" "+x+"\n"+m.Tip
			s.Marks, ns = append(s.Marks, m), report.AppendNew(ns, m.N)
		}
		c.Series = append(c.Series, s)
	}
	capIntervals(&c, intervalRoom)
	return c, ns
}

// capIntervals ends the y axis at a multiple of the largest value where an
// interval goes beyond.
func capIntervals(c *report.Chart, times float64) {
	top, most := 0.0, 0.0
	for _, m := range c.Marks() {
		top = max(top, m.Y)
		if m.CI != nil && report.IsFinite(m.CI.High) {
			most = max(most, m.CI.High)
		}
	}
	if top > 0 && most > times*top {
		c.Y.High = new(report.RoundUp(times * top))
	}
}

// isSwept reports whether a quantity is drawn along an axis: every rate with
// the time that it is the inverse of, what axes are varied for (bands, size,
// ratio), and what a fit or a published figure is about.
func (r *run) isSwept(key, op string, s report.FigureSection) bool {
	return s.ID == "speeds" ||
		slices.Contains(strings.Fields("bands allocated ratio stream_time write_time read_time"), op) ||
		slices.ContainsFunc(r.Result.Fits, func(f result.Fit) bool { return isFitAlong(f, key, op) }) ||
		s.ID == "times" && len(s.Figures.PublishedOn(op)) > 0
}

// isFitAlong reports whether a fit can be drawn along this axis.
func isFitAlong(f result.Fit, key, op string) bool {
	return f.Along == key && f.Op == op && len(f.Points) > 0 && f.Reason == ""
}

// numericKeys are the keys with at least minCurve different numbers as values.
func (r *run) numericKeys() []string {
	values := map[string][]float64{}
	var order []string
	for i := range r.Result.Cases {
		for _, kv := range r.Result.Cases[i].Keys {
			if x, _, ok := parseNumber(kv[0], kv[1]); ok {
				order, values[kv[0]] = report.AppendNew(order, kv[0]), report.AppendNew(values[kv[0]], x)
			}
		}
	}
	return slices.DeleteFunc(order, func(key string) bool { return len(values[key]) < minCurve })
}

// parseNumber reads the value of a key as a number with its base unit.
//
// Key sizes of encryption look like numbers ("256") and are names.
func parseNumber(key, value string) (x float64, unit string, ok bool) {
	if b, err := units.ParseBytes(value); err == nil {
		return float64(b), "B", true
	}
	f, err := strconv.ParseFloat(value, 64)
	return f, "1", err == nil && report.IsFinite(f) && key != "encryption"
}

// keyNumber is the place of a case on an axis; a band size is the one that was
// found.
//
// A tool may round the requested band size.
func keyNumber(c *result.Case, key string) (x float64, unit string, ok bool) {
	for _, kv := range c.Keys {
		if kv[0] == key {
			x, unit, ok = parseNumber(kv[0], kv[1])
		}
	}
	if ok && key == "band_size" && c.Target.BandSizeUsed > 0 {
		x = float64(c.Target.BandSizeUsed)
	}
	return x, unit, ok
}

// sweepCurves groups the figures of a quantity by everything but the axis.
func (r *run) sweepCurves(key, op string, f report.Figures) (curves []curve, unit string) {
	var set curveSet
	vary := slices.DeleteFunc(report.VaryingKeys(r.Result.Cases), func(k string) bool { return k == key })
	for _, k := range f.Keys {
		s, c := f.By[k][op], r.caseOf(k.CaseID)
		if s == nil || c == nil || k.Cycle != 0 {
			continue
		}
		x, u, ok := keyNumber(c, key)
		if !ok {
			continue
		}
		unit = u
		parts := []string{report.TextIf(c.Baseline, report.NativeFolder)}
		for _, kv := range c.Keys {
			if slices.Contains(vary, kv[0]) {
				parts = append(parts, report.CaseValue(kv[0], kv[1]))
			}
		}
		name := strings.Join(report.NonEmpty(append(parts, report.Plain(k.Phase, 40))), " · ")
		set.add(report.FirstOf(name, report.QuantityName(op)), x, s)
	}
	return set.long(), unit
}

// keyName writes a key of the plan in words.
func keyName(key string) string { return report.Plain(strings.ReplaceAll(key, "_", " "), 40) }

// cycleCharts draw each rate along the cycles of a repeat block.
func cycleCharts(r *run) []report.Chart {
	var out []report.Chart
	f := r.speeds()
	for _, op := range f.Ops {
		var set curveSet
		for _, k := range f.Keys {
			if s := f.By[k][op]; s != nil && k.Cycle > 0 {
				parts := report.NonEmpty([]string{r.CaseName(k.CaseID), report.Plain(k.Phase, 40)})
				set.add(strings.Join(parts, " · "), float64(k.Cycle), s)
			}
		}
		curves := set.long()
		if len(curves) == 0 {
			continue
		}
		c, ns := drawCurves("cycles-"+report.Slug(op), op, "cycle", "1", "line", curves)
		c.Heading = report.Capitalize(report.QuantityName(op)) + " along the cycles"
		c.X, c.Y.High = report.Axis{Name: "cycle", Unit: "1"}, nil
		for _, s := range c.Series { // as many intervals as cycles would hide the lines
			for i := range s.Marks {
				s.Marks[i].CI = nil
			}
		}
		caption(&c, "curves", data{"Ns": ns, "Cycles": true})
		out = append(out, c)
	}
	return out
}

// numberAxis is logarithmic, with a tick at each value, where the values span a
// factor of 32 or more.
func numberAxis(name, unit string, xs []float64) report.Axis {
	a := report.Axis{Name: name, Unit: unit, Human: unit == "B"}
	low, high := slices.Min(xs), slices.Max(xs)
	if isWide(low, high) {
		a.Log = true
		a.Low, a.High = new(report.RoundDigits(low/1.2)), new(report.RoundDigits(high*1.2))
		a.Ticks = slices.Compact(slices.Sorted(slices.Values(xs)))
	}
	return a
}

// A factor of 32 is five doublings, as of band sizes from 1 to 32 MiB.
func isWide(low, high float64) bool { return low > 0 && high/low >= 32 }

// sample returns n+1 points of a function from low to high, evenly on the scale
// that the axis has.
//
// 40 to 60 segments look smooth at 900 pixels.
func sample(n int, low, high float64, log bool, f func(x float64) float64) []report.Mark {
	out := make([]report.Mark, n+1)
	for i := range out {
		share := float64(i) / float64(n)
		x := low + (high-low)*share
		if log {
			x = low * math.Pow(high/low, share)
		}
		out[i] = report.Point(x, f(x))
	}
	return out
}

// parallelKeys are the axes along which one would like the rate to grow in
// proportion.
var parallelKeys = []string{"threads", "workers", "cores"}

// addIdeal draws, for each curve along a number of threads, workers or cores,
// what its first point would become if every further one did as much: the rate
// in proportion, the time inversely. It reports whether there are such lines.
func addIdeal(c *report.Chart, key string, curves []curve) bool {
	if !slices.Contains(parallelKeys, key) || c.Y.Unit != "B/s" && c.Y.Unit != "s" {
		return false
	}
	top, most := 0.0, 0.0
	for _, m := range c.Marks() {
		top = max(top, m.Y)
	}
	for _, one := range curves {
		first, last := one.points[0], one.points[len(one.points)-1]
		if first.x <= 0 {
			continue
		}
		value := report.Headline(first.figure).Value
		// One name for all: the legend hides them together.
		s := report.Series{Role: "ideal", Name: "ideal", Marks: sample(40, first.x, last.x, false,
			func(x float64) float64 {
				if c.Y.Unit == "s" {
					return value * first.x / x
				}
				return value * x / first.x
			})}
		for _, m := range s.Marks {
			most = max(most, m.Y)
		}
		c.Series = append(c.Series, s)
	}
	if c.Y.High == nil && top > 0 && most > 2*top { // the axis ends where the measured values are not pressed flat
		c.Y.High = new(report.RoundUp(2 * top))
	}
	return most > 0
}
