package chart

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
	"dmgbench/internal/system/units"
)

// minCurve is the number of values from which an axis makes a curve.
//
// Two points always lie on a line and show no shape.
const minCurve = 3

// axisRoom is how far an axis reaches for intervals and lines that are not
// measured, in multiples of the largest value: longer ones, which would press the
// values flat, are cut at the edge, intervals with an arrow.
const axisRoom = 3

// curve is one quantity along an axis.
type curve struct {
	name   string
	points []curvePoint
}

type curvePoint struct {
	x      float64
	figure *result.Summary
}

// curvesOf groups the figures of a quantity by name, in the order in which they
// come, and keeps the groups with enough points, each sorted by x. place gives
// the name and the x of a figure, and whether it is drawn.
func curvesOf(
	f report.Figures, op string, place func(k report.FigureKey) (name string, x float64, ok bool),
) (curves []curve) {
	for _, k := range f.Keys {
		s := f.By[k][op]
		name, x, ok := place(k)
		if s == nil || !ok {
			continue
		}
		at := slices.IndexFunc(curves, func(c curve) bool { return c.name == name })
		if at < 0 {
			at, curves = len(curves), append(curves, curve{name: name})
		}
		curves[at].points = append(curves[at].points, curvePoint{x, s})
	}
	curves = slices.DeleteFunc(curves, func(c curve) bool { return len(c.points) < minCurve })
	for _, c := range curves {
		slices.SortStableFunc(c.points, func(a, b curvePoint) int { return cmp.Compare(a.x, b.x) })
	}
	return curves
}

// drawCurves draws curves along an axis and ends the y axis where intervals
// would press the values flat. role is line, or dots where fits are the lines.
func drawCurves(id, op, along, xUnit, role string, curves []curve) (c report.Chart, ns []string) {
	unit := report.Headline(curves[0].points[0].figure).Unit
	points := report.FlatMap(curves, func(c curve) []curvePoint { return c.points })
	values := report.Map(points, func(p curvePoint) float64 { return report.Headline(p.figure).Value })
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
	return c, ns
}

// top is the largest value of marks.
func top(marks []report.Mark) (top float64) {
	for _, m := range marks {
		top = max(top, m.Y)
	}
	return top
}

// capAxis ends the y axis at a multiple of the largest measured value where an
// interval or a line goes beyond.
func capAxis(c *report.Chart) {
	end := axisRoom * top(c.Marks())
	for _, s := range c.Series {
		if end > 0 && slices.ContainsFunc(s.Marks, func(m report.Mark) bool {
			return m.Y > end || m.CI != nil && report.IsFinite(m.CI.High) && m.CI.High > end
		}) {
			c.Y.High = new(report.RoundUp(end))
		}
	}
}

// sweepCharts draw each rate along each numeric axis of the plan, with the fits
// that belong to it; then the rates along the cycles of a repeat block, and the
// fits that found no axis.
func sweepCharts(r *run) []report.Chart {
	var out []report.Chart
	drawn := map[int]bool{} // fits
	for _, key := range r.numericKeys() {
		for _, s := range r.Sections {
			for _, op := range s.Figures.Ops {
				if r.isSwept(key, op, s) {
					out = append(out, r.sweepChart(key, op, s.Figures, drawn)...)
				}
			}
		}
	}
	out = append(out, cycleCharts(r)...)
	for i, f := range r.Result.Fits {
		if !drawn[i] && len(f.Points) > 0 {
			out = append(append(out, r.fitChart(i, newDrawnFit(f))), r.fitResiduals(i, newDrawnFit(f))...)
		}
	}
	return out
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

// sweepCurves groups the figures of a quantity by everything but the axis. The
// place of a band size is the one that was found: a tool may round the requested
// one.
func (r *run) sweepCurves(key, op string, f report.Figures) (curves []curve, unit string) {
	vary := slices.DeleteFunc(report.VaryingKeys(r.Result.Cases), func(k string) bool { return k == key })
	curves = curvesOf(f, op, func(k report.FigureKey) (name string, x float64, ok bool) {
		c := r.caseOf(k.CaseID)
		parts := []string{report.TextIf(c.Baseline, report.NativeFolder)}
		for _, kv := range c.Keys {
			if number, base, isNumber := parseNumber(kv[0], kv[1]); kv[0] == key && isNumber {
				x, unit, ok = number, base, k.Cycle == 0
			}
			if slices.Contains(vary, kv[0]) {
				parts = append(parts, report.CaseValue(kv[0], kv[1]))
			}
		}
		if key == "band_size" && c.Target.BandSizeUsed > 0 {
			x = float64(c.Target.BandSizeUsed)
		}
		name = strings.Join(wording.NonEmpty(append(parts, report.Plain(k.Phase, 40))), " · ")
		return report.FirstOf(name, report.QuantityName(op)), x, ok
	})
	return curves, unit
}

// sweepChart is one quantity along one axis; the fits that are in the picture
// are marked as drawn.
func (r *run) sweepChart(key, op string, f report.Figures, drawn map[int]bool) []report.Chart {
	curves, xUnit := r.sweepCurves(key, op, f)
	if len(curves) == 0 {
		return nil
	}
	var fits []drawnFit
	for i, fit := range r.Result.Fits {
		if isFitAlong(fit, key, op) {
			fits, drawn[i] = append(fits, newDrawnFit(fit)), true
		}
	}
	role := "line"
	if len(fits) >= len(curves) {
		role = "dots"
	}
	c, ns := drawCurves("sweep-"+report.Slug(key)+"-"+report.Slug(op), op, keyName(key), xUnit, role, curves)
	xs := report.Map(c.Marks(), func(m report.Mark) float64 { return m.X })
	d := data{"Ns": ns, "Fits": fits, "Unit": c.Y.Unit, "Intervals": c.IntervalNote("Bars"),
		"Ideal": addIdeal(&c, key, curves)}
	xs = append(xs, report.FlatMap(fits, func(f drawnFit) []float64 { return f.draw(&c) })...)
	c.X = numberAxis(keyName(key), xUnit, xs)
	capAxis(&c)
	caption(&c, "curves", d)
	return []report.Chart{c}
}

// keyName writes a key of the plan in words.
func keyName(key string) string { return report.Plain(strings.ReplaceAll(key, "_", " "), 40) }

// cycleCharts draw each rate along the cycles of a repeat block.
func cycleCharts(r *run) []report.Chart {
	var out []report.Chart
	f := r.speeds()
	for _, op := range f.Ops {
		curves := curvesOf(f, op, func(k report.FigureKey) (string, float64, bool) {
			name := strings.Join(wording.NonEmpty([]string{r.CaseName(k.CaseID), report.Plain(k.Phase, 40)}), " · ")
			return name, float64(k.Cycle), k.Cycle > 0
		})
		if len(curves) == 0 {
			continue
		}
		c, ns := drawCurves("cycles-"+report.Slug(op), op, "cycle", "1", "line", curves)
		c.Heading = report.Capitalize(report.QuantityName(op)) + " along the cycles"
		c.X = report.Axis{Name: "cycle", Unit: "1"}
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
		a.FitLog(low, high, 1.2)
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

// addIdeal draws, for each curve along a number of threads, workers or cores,
// what its first point would become if every further one did as much: the rate
// in proportion, the time inversely. It reports whether there are such lines.
func addIdeal(c *report.Chart, key string, curves []curve) bool {
	isTime := c.Y.Unit == "s"
	if !slices.Contains([]string{"threads", "workers", "cores"}, key) || c.Y.Unit != "B/s" && !isTime {
		return false
	}
	hasLines := false
	for _, one := range curves {
		first, last := one.points[0], one.points[len(one.points)-1]
		if first.x <= 0 {
			continue
		}
		// One name for all: the legend hides them together.
		s := report.Series{Role: "ideal", Name: "ideal", Marks: sample(40, first.x, last.x, false,
			func(x float64) float64 {
				share := x / first.x
				if isTime {
					share = first.x / x
				}
				return report.Headline(first.figure).Value * share
			})}
		hasLines, c.Series = true, append(c.Series, s)
	}
	return hasLines
}

// drawnFit is a fit of the plan with its functions, which are nil where
// coefficients are missing.
type drawnFit struct {
	result.Fit
	measured, published func(x float64) float64
}

func newDrawnFit(f result.Fit) drawnFit {
	return drawnFit{f, modelOf(f, func(c result.Coefficient) *float64 { return &c.Value }),
		modelOf(f, func(c result.Coefficient) *float64 { return c.Published })}
}

// modelOf is the function of a fit, or nil where coefficients are missing.
//
// The coefficients are those that package stats gives the models, in base
// units.
func modelOf(f result.Fit, value func(result.Coefficient) *float64) func(x float64) float64 {
	k := func(name string) float64 {
		at := slices.IndexFunc(f.Coefficients, func(c result.Coefficient) bool { return c.Name == name })
		if at < 0 || value(f.Coefficients[at]) == nil {
			return math.NaN()
		}
		return *value(f.Coefficients[at])
	}
	model := func(x float64) float64 {
		switch {
		case f.Model == "power":
			return k("factor") * math.Pow(x, k("exponent"))
		case f.Model == "two-lines" && x > k("break"):
			return k("intercept_2") + k("slope_2")*x
		}
		return k("intercept") + k("slope")*x
	}
	if len(f.Points) == 0 || !report.IsFinite(model(f.Points[0][0])) {
		return nil
	}
	return model
}

func pairPoint(p [2]float64) report.Mark { return report.Point(p[0], p[1]) }

// draw adds the curve of a fit, the published one and the predictions, and
// returns their range on the x axis.
func (f drawnFit) draw(c *report.Chart) []float64 {
	var xs []float64
	name := "fit " + report.Plain(f.Name, 60)
	s := report.Series{Role: "prediction", Name: "prediction of " + name, Marks: report.Map(f.Predictions, pairPoint)}
	for _, p := range slices.Concat(f.Points, f.Predictions) {
		if report.IsFinite(p[0]) {
			xs = append(xs, p[0])
		}
	}
	if len(xs) == 0 {
		c.Add(s)
		return nil
	}
	// The lines reach as far as the predictions, which lie beyond the points.
	low, high := slices.Min(xs), slices.Max(xs)
	curve := func(role, name string, at func(float64) float64) {
		if at != nil {
			c.Add(report.Series{Role: role, Name: name, Marks: sample(60, low, high, isWide(low, high), at)})
		}
	}
	curve("fit", name, f.measured)
	curve("faint", "published "+name, f.published)
	c.Add(s)
	return []float64{low, high}
}

// fitChart draws a fit on its own points, for axes that are not keys of cases
// (file size, cycle).
func (r *run) fitChart(i int, f drawnFit) report.Chart {
	along, name := keyName(f.Along), report.QuantityName(f.Op)
	c := report.Chart{ID: "fit-" + strconv.Itoa(i+1), Height: 320, Heading: report.Capitalize(name) + " along " + along,
		X: report.Axis{Name: along, Unit: "1"}, Y: report.Axis{Name: name, Unit: plan.Quantity(f.Op).Unit()},
		Table: r.Fits[i]}
	kept, every := thin(f.Points, pointsPerChart)
	c.Add(report.Series{Role: "points", Name: "measured", Marks: report.Map(kept, pairPoint)})
	if ends := f.draw(&c); ends != nil {
		c.X = numberAxis(along, report.AxisUnit(f.Along), ends)
	}
	if capAxis(&c); c.X.Log {
		c.X.Ticks = report.RoundTicks(*c.X.Low, *c.X.High)
	}
	caption(&c, "fit", data{"Points": len(f.Points), "Every": every, "Model": report.ModelName(f.Model),
		"Reason": f.Reason})
	return c
}

// relationCharts draw one quantity against another.
func relationCharts(r *run) []report.Chart {
	var out []report.Chart
	for i, rel := range r.Result.Relations {
		if len(rel.Points) > 0 {
			c := relationChart(rel)
			c.ID, c.Table = "relation-"+strconv.Itoa(i+1), r.Relations[i]
			out = append(out, c)
		}
	}
	return out
}

// pointRoom is the least room about named points, as a share of the largest
// value: the script writes names to the right of their points.
const pointRoom = 0.02

// relationChart has a named point for each case with its two ranks, the line of
// the cases that are not outliers, and rings around the outliers.
func relationChart(rel result.Relation) report.Chart {
	x, y := report.QuantityName(rel.XOp), report.QuantityName(rel.YOp)
	c := report.Chart{Height: 340, Heading: report.Capitalize(y) + " against " + x,
		X: report.Axis{Name: x, Unit: plan.Quantity(rel.XOp).Unit()},
		Y: report.Axis{Name: y, Unit: plan.Quantity(rel.YOp).Unit()}}
	rings := report.Series{Role: "warned", Name: "off the line"}
	var xs, ys, lineX, lineY []float64
	for _, p := range rel.Points {
		name := fmt.Sprintf("%s (%d → %d)", report.Plain(p.Label, 60), p.RankX, p.RankY)
		m := report.Point(p.X, p.Y)
		m.Tip = fmt.Sprintf("%s %s, rank %d\n%s %s, rank %d", x, report.Human(p.X, c.X.Unit), p.RankX, y,
			report.Human(p.Y, c.Y.Unit), p.RankY) +
			report.TextIf(p.Outlier, "\noff the line of the others")
		c.Add(report.Series{Role: "named", Name: name, Marks: []report.Mark{m}})
		if m.Drawn() {
			xs, ys = append(xs, p.X), append(ys, p.Y)
			if !p.Outlier {
				lineX, lineY = append(lineX, p.X), append(lineY, p.Y)
			}
		}
		if p.Outlier {
			m.Tip = name + "\n" + m.Tip
			rings.Marks = append(rings.Marks, m)
		}
	}
	// Theil–Sen has no residuals that a single far point could dominate;
	// outliers of the analysis are left out nevertheless.
	line, err := stats.FitTheilSen(lineX, lineY)
	drawn := len(lineX) >= 3 && err == nil
	if drawn {
		low, high := slices.Min(lineX), slices.Max(lineX)
		ends := []report.Mark{report.Point(low, line.At(low)), report.Point(high, line.At(high))}
		c.Add(report.Series{Role: "faint", Name: "line", Marks: ends})
	}
	c.Add(rings)
	c.X.FitAround(pointRoom, xs...)
	c.Y.FitAround(pointRoom, ys...)
	caption(&c, "relation", data{"Cases": len(rel.Points), "X": x, "Y": y, "Reason": rel.Reason,
		"Spearman": rel.Spearman, "Line": drawn, "Rings": len(rings.Marks)})
	return c
}
