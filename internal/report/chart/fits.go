package chart

import (
	"math"
	"slices"
	"strconv"

	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/result"
)

// modelOf is the function of a fit, or nil where coefficients are missing.
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

func measuredModel(f result.Fit) func(float64) float64 {
	return modelOf(f, func(c result.Coefficient) *float64 { return &c.Value })
}

func publishedModel(f result.Fit) func(float64) float64 {
	return modelOf(f, func(c result.Coefficient) *float64 { return c.Published })
}

// isOffScale reports whether a published curve would press the measured points
// flat.
func isOffScale(f result.Fit) bool {
	top, most := 0.0, 0.0
	at := publishedModel(f)
	for _, p := range f.Points {
		top = max(top, p[1])
		if at != nil {
			most = max(most, at(p[0]))
		}
	}
	return top > 0 && most > 3*top
}

func offScaleText(f result.Fit) string {
	return report.TextIf(isOffScale(f), " The published curve is off this scale; its coefficients are in the table.")
}

// addFit draws the curve of a fit, the published one and the predictions, and
// returns the range of x.
func addFit(c *report.Chart, f result.Fit) (low, high float64) {
	name := "fit " + report.Plain(f.Name, 60)
	low, high = math.Inf(1), math.Inf(-1)
	for _, p := range slices.Concat(f.Points, f.Predictions) {
		low, high = min(low, p[0]), max(high, p[0])
	}
	draw := func(role, name string, at func(float64) float64) {
		if at != nil && report.IsFinite(low) && report.IsFinite(high) {
			c.Add(report.Series{Role: role, Name: name, Marks: sample(60, low, high, isWide(low, high), at)})
		}
	}
	draw("fit", name, measuredModel(f))
	if !isOffScale(f) {
		draw("faint", "published "+name, publishedModel(f))
	}
	s := report.Series{Role: "prediction", Name: "prediction of " + name}
	for _, p := range f.Predictions {
		s.Marks = append(s.Marks, report.Point(p[0], p[1]))
	}
	c.Add(s)
	return low, high
}

// fitChart draws a fit on its own points, for axes that are not keys of cases
// (file size, cycle).
func (r *run) fitChart(i int, f result.Fit) report.Chart {
	along, name := keyName(f.Along), report.QuantityName(f.Op)
	c := report.Chart{ID: "fit-" + strconv.Itoa(i+1), Height: 320, Heading: report.Capitalize(name) + " along " + along,
		Y: report.Axis{Name: name, Unit: plan.Quantity(f.Op).Unit()}, Table: r.Fits[i]}
	points := report.Series{Role: "points", Name: "measured"}
	every := (len(f.Points) + pointsPerChart - 1) / pointsPerChart
	var xs []float64
	for n := 0; n < len(f.Points); n += every {
		p := f.Points[n]
		points.Marks, xs = append(points.Marks, report.Point(p[0], p[1])), append(xs, p[0])
	}
	c.Add(points)
	low, high := addFit(&c, f)
	xs = slices.DeleteFunc(append(xs, low, high), func(x float64) bool { return !report.IsFinite(x) })
	c.X = numberAxis(along, report.AxisUnit(f.Along), xs)
	if c.X.Log {
		c.X.Ticks = report.RoundTicks(*c.X.Low, *c.X.High)
	}
	c.Sub = report.Count(len(f.Points), "point") + report.TextIf(every > 1, ", one of "+strconv.Itoa(every)+" drawn") +
		". Model: " + report.ModelName(f.Model) + "."
	note := "Thin line: the fit; hollow: what it predicts; dashed: as published."
	if f.Reason != "" {
		note = "No fit: " + report.Plain(f.Reason, 200) + "."
	}
	c.Notes = []string{note + offScaleText(f)}
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
	for _, op := range r.speeds().Ops {
		out = append(out, r.cycleChart(op)...)
	}
	for i, f := range r.Result.Fits {
		if !drawn[i] && len(f.Points) > 0 {
			out = append(append(out, r.fitChart(i, f)), fitResiduals(i, f)...)
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
	var fits []result.Fit
	for i, fit := range r.Result.Fits {
		if isFitAlong(fit, key, op) {
			fits, drawn[i] = append(fits, fit), true
		}
	}
	role := "line"
	if len(fits) >= len(curves) {
		role = "dots"
	}
	along := keyName(key)
	c := drawCurves("sweep-"+report.Slug(key)+"-"+report.Slug(op), op, along, xUnit, role, curves)
	var xs []float64
	for _, m := range c.Marks() {
		xs = append(xs, m.X)
	}
	note := c.IntervalNote("Bars")
	ideal := addIdeal(&c, key, curves)
	for _, fit := range fits {
		low, high := addFit(&c, fit)
		xs, note = append(xs, low, high), note+offScaleText(fit)
	}
	c.X = numberAxis(along, xUnit, xs)
	c.Sub += report.TextIf(len(fits) > 0, " Thin line: the fit; hollow: what it predicts; dashed: as published.") +
		ideal
	c.Notes = []string{note}
	return []report.Chart{c}
}
