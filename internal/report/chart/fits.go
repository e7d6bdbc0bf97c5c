package chart

import (
	"math"
	"slices"
	"strconv"

	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/result"
)

// drawnFit is a fit of the plan with its functions, which are nil where
// coefficients are missing.
type drawnFit struct {
	result.Fit
	measured, published func(x float64) float64
	OffScale            bool // the published curve would press the measured points flat
}

func newDrawnFit(f result.Fit) drawnFit {
	d := drawnFit{Fit: f,
		measured:  modelOf(f, func(c result.Coefficient) *float64 { return &c.Value }),
		published: modelOf(f, func(c result.Coefficient) *float64 { return c.Published })}
	top, most := 0.0, 0.0
	for _, p := range f.Points {
		top = max(top, p[1])
		if d.published != nil {
			most = max(most, d.published(p[0]))
		}
	}
	// Values that were published for a faster machine.
	d.OffScale = top > 0 && most > 3*top
	return d
}

// modelOf is the function of a fit, or nil where coefficients are missing.
//
// The coefficients are those that package stats gives the models, in base
// units.
func modelOf(f result.Fit, value func(result.Coefficient) *float64) func(x float64) float64 {
	k := map[string]float64{}
	for _, c := range f.Coefficients {
		if v := value(c); v != nil && report.IsFinite(*v) {
			k[c.Name] = *v
		}
	}
	has := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(n string) bool { _, ok := k[n]; return !ok })
	}
	switch {
	case f.Model == "line" && has("intercept", "slope"):
		return func(x float64) float64 { return k["intercept"] + k["slope"]*x }
	case f.Model == "power" && has("factor", "exponent"):
		return func(x float64) float64 { return k["factor"] * math.Pow(x, k["exponent"]) }
	case f.Model == "two-lines" && has("intercept", "slope", "break", "intercept_2", "slope_2"):
		return func(x float64) float64 {
			if x > k["break"] {
				return k["intercept_2"] + k["slope_2"]*x
			}
			return k["intercept"] + k["slope"]*x
		}
	}
	return nil
}

// draw adds the curve of a fit, the published one and the predictions, and
// returns their range on the x axis.
func (f drawnFit) draw(c *report.Chart) []float64 {
	var xs []float64
	name := "fit " + report.Plain(f.Name, 60)
	for _, p := range slices.Concat(f.Points, f.Predictions) {
		if report.IsFinite(p[0]) {
			xs = append(xs, p[0])
		}
	}
	curve := func(role, name string, at func(float64) float64) {
		if at != nil && len(xs) > 0 {
			low, high := slices.Min(xs), slices.Max(xs)
			c.Add(report.Series{Role: role, Name: name, Marks: sample(60, low, high, isWide(low, high), at)})
		}
	}
	// The lines reach as far as the predictions, which lie beyond the points.
	curve("fit", name, f.measured)
	if !f.OffScale {
		curve("faint", "published "+name, f.published)
	}
	s := report.Series{Role: "prediction", Name: "prediction of " + name}
	for _, p := range f.Predictions {
		s.Marks = append(s.Marks, report.Point(p[0], p[1]))
	}
	c.Add(s)
	if len(xs) == 0 {
		return nil
	}
	return []float64{slices.Min(xs), slices.Max(xs)}
}

// fitChart draws a fit on its own points, for axes that are not keys of cases
// (file size, cycle).
func (r *run) fitChart(i int, f drawnFit) report.Chart {
	along, name := keyName(f.Along), report.QuantityName(f.Op)
	c := report.Chart{ID: "fit-" + strconv.Itoa(i+1), Height: 320, Heading: report.Capitalize(name) + " along " + along,
		X: report.Axis{Name: along, Unit: "1"}, Y: report.Axis{Name: name, Unit: plan.Quantity(f.Op).Unit()},
		Table: r.Fits[i]}
	points := report.Series{Role: "points", Name: "measured"}
	every := (len(f.Points) + pointsPerChart - 1) / pointsPerChart
	for n := 0; n < len(f.Points); n += every {
		points.Marks = append(points.Marks, report.Point(f.Points[n][0], f.Points[n][1]))
	}
	c.Add(points)
	if ends := f.draw(&c); ends != nil {
		c.X = numberAxis(along, report.AxisUnit(f.Along), ends)
	}
	if c.X.Log {
		c.X.Ticks = report.RoundTicks(*c.X.Low, *c.X.High)
	}
	caption(&c, "fit", data{"Points": len(f.Points), "Every": every, "Model": report.ModelName(f.Model),
		"Reason": f.Reason, "OffScale": f.OffScale})
	return c
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
			fit := newDrawnFit(f)
			out = append(append(out, r.fitChart(i, fit)), fitResiduals(i, fit)...)
		}
	}
	return out
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
	var xs []float64
	for _, m := range c.Marks() {
		xs = append(xs, m.X)
	}
	d := data{"Ns": ns, "Fits": fits, "Unit": c.Y.Unit, "Intervals": c.IntervalNote("Bars"),
		"Ideal": addIdeal(&c, key, curves)}
	for _, fit := range fits {
		xs = append(xs, fit.draw(&c)...)
	}
	c.X = numberAxis(keyName(key), xUnit, xs)
	caption(&c, "curves", d)
	return []report.Chart{c}
}
