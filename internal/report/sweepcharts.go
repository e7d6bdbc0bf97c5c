package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/units"
)

// minSweep is the number of values from which an axis makes a curve.
const minSweep = 3

// sweepCharts draw each rate along each numeric axis of the plan, with the fits
// that belong to it, and then the fits that found no axis.
func (v *View) sweepCharts() []Chart {
	var out []Chart
	drawn := map[int]bool{}
	for _, key := range v.numericAxes() {
		for _, s := range v.Sections {
			for _, op := range s.Figures.Ops {
				if !v.swept(key, op, s) {
					continue
				}
				if c, ok := v.sweepChart(key, op, s.Figures, drawn); ok {
					out = append(out, c)
				}
			}
		}
	}
	out = append(out, v.cycleCharts()...)
	for i, f := range v.Result.Fits {
		if !drawn[i] && len(f.Points) > 0 {
			out = append(append(out, v.fitChart(i, f)), v.fitResiduals(i, f)...)
		}
	}
	return out
}

// swept reports whether a quantity is drawn along an axis: every rate with the time that
// it is the inverse of, what is swept for (bands, size, ratio), and whatever a fit or a published figure is about.
func (v *View) swept(key, op string, s FigureSection) bool {
	switch {
	case s.ID == "speeds" || op == "bands" || op == "allocated" || op == "ratio":
		return true
	case op == "stream_time" || op == "write_time" || op == "read_time":
		return true
	case slices.ContainsFunc(v.Result.Fits, func(f result.Fit) bool { return fitsCurve(f, key, op) }):
		return true
	}
	return s.ID == "times" && s.Figures.Any(op, func(sum *result.Summary) bool { return len(sum.Published) > 0 })
}

// numericAxes are the keys whose values are numbers in at least minSweep cases.
func (v *View) numericAxes() []string {
	values := map[string]map[float64]bool{}
	var order []string
	for i := range v.Result.Cases {
		for _, kv := range v.Result.Cases[i].Keys {
			x, _, ok := numeric(kv[0], kv[1])
			if !ok {
				continue
			}
			if values[kv[0]] == nil {
				values[kv[0]] = map[float64]bool{}
				order = append(order, kv[0])
			}
			values[kv[0]][x] = true
		}
	}
	return slices.DeleteFunc(order, func(key string) bool { return len(values[key]) < minSweep })
}

// numeric reads the value of a key as a number with its base unit.
func numeric(key, value string) (x float64, unit string, ok bool) {
	if b, err := units.ParseBytes(value); err == nil {
		return float64(b), "B", true
	}
	f, err := strconv.ParseFloat(value, 64)
	if err != nil || !IsFinite(f) || key == "encryption" {
		return 0, "", false
	}
	return f, "1", true
}

// sweepValue is where a case lies on an axis; a band size counts as it was found.
func sweepValue(c *result.Case, key string) (x float64, unit string, ok bool) {
	for _, kv := range c.Keys {
		if kv[0] == key {
			x, unit, ok = numeric(kv[0], kv[1])
		}
	}
	if ok && key == "band_size" && c.Target.BandSizeUsed > 0 {
		x = float64(c.Target.BandSizeUsed)
	}
	return x, unit, ok
}

// curvePoint is one case on a curve.
type curvePoint struct {
	x float64
	e *result.Estimate
	s *result.Summary
}

// curves groups the figures of a quantity by everything but the axis.
func (v *View) curves(key, op string, f Figures) (names []string, by map[string][]curvePoint, unit string) {
	by = map[string][]curvePoint{}
	vary := slices.DeleteFunc(VaryingKeys(v.Result.Cases), func(k string) bool { return k == key })
	for _, k := range f.Keys {
		s := f.By[k][op]
		at := v.Order[k.CaseID]
		if s == nil || k.Cycle != 0 || at >= len(v.Result.Cases) || v.Result.Cases[at].ID != k.CaseID {
			continue
		}
		c := &v.Result.Cases[at]
		x, u, ok := sweepValue(c, key)
		if !ok {
			continue
		}
		unit = u
		parts := []string{TextIf(c.Baseline, NativeFolder)}
		for _, kv := range c.Keys {
			if slices.Contains(vary, kv[0]) {
				parts = append(parts, CaseValue(kv[0], kv[1]))
			}
		}
		parts = append(parts, Plain(k.Phase, 40))
		name := FirstOf(strings.Join(NonEmpty(parts), " · "), QuantityName(op))
		if by[name] == nil {
			names = append(names, name)
		}
		by[name] = append(by[name], curvePoint{x, Headline(s), s})
	}
	return names, by, unit
}

func (v *View) sweepChart(key, op string, f Figures, drawn map[int]bool) (Chart, bool) {
	names, by, xUnit := v.curves(key, op, f)
	names = slices.DeleteFunc(names, func(n string) bool { return len(by[n]) < minSweep })
	if len(names) == 0 {
		return Chart{}, false
	}
	unit := by[names[0]][0].e.Unit
	keyWords := Plain(strings.ReplaceAll(key, "_", " "), 40)
	c := Chart{ID: "sweep-" + slug(key) + "-" + slug(op), Section: "sweep", Height: 320,
		Heading: Capitalize(QuantityName(op)) + " along " + keyWords, Y: Axis{Name: QuantityName(op), Unit: unit, Low: pointer(0)}}
	c.Table = Table{Caption: c.Heading, Columns: Columns("<curve", keyWords, "measured", "interval", "published", "<n")}
	var intervals, ns []string
	var xs []float64
	role := "line"
	fits := 0
	for _, f := range v.Result.Fits {
		fits += bit(fitsCurve(f, key, op))
	}
	if fits >= len(names) {
		role = "dots" // the fits are the lines
	}
	for _, name := range names {
		points := by[name]
		slices.SortStableFunc(points, func(a, b curvePoint) int { return cmp.Compare(a.x, b.x) })
		line, bars := Series{Role: role, Name: name}, Series{Role: "error", Name: name}
		for _, p := range points {
			xs, ns = append(xs, p.x), AppendNew(ns, SampleSize(p.s))
			c.Y.Values = append(c.Y.Values, p.e.Value)
			line.Points = append(line.Points, xy(p.x, p.e.Value))
			interval := ""
			if ci := p.e.CI; ci != nil && IsFinite(ci.Low) && IsFinite(ci.High) {
				intervals = AppendNew(intervals, DescribeInterval(ci))
				bars.Points = append(bars.Points, []any{digits(p.x), digits(ci.Low), digits(ci.High)})
				interval = Human(ci.Low, unit) + "–" + Human(ci.High, unit)
			}
			row := FigureRow(p.s, "", ScaleOf(unit, p.e.Value))
			line.Tips = append(line.Tips, keyWords+" "+Human(p.x, xUnit)+"\n"+tip(row))
			c.Table.Rows = append(c.Table.Rows, []Cell{{Text: name, Class: "head"}, {Text: Human(p.x, xUnit)}, {Text: Human(p.e.Value, unit)}, {Text: interval}, {Text: row[4]}, {Text: row[6], Class: "muted"}})
		}
		c.Series = append(c.Series, line)
		if len(bars.Points) > 0 {
			c.Series = append(c.Series, bars)
		}
	}
	clipped := c.capIntervals(3)
	ideal := c.addIdeal(key, unit, names, by)
	fitted, off := false, ""
	for i, fit := range v.Result.Fits {
		if fitsCurve(fit, key, op) {
			xs = append(xs, c.addFit(fit)...)
			drawn[i], fitted = true, true
			off += offScaleText(fit)
		}
	}
	c.X = sweepAxis(keyWords, xUnit, xs)
	c.Sub = strings.Join(ns, " / ") + " a point." + TextIf(fitted, " Thin line: the fit; hollow: what it predicts; dashed: as published.") +
		TextIf(ideal, " Dotted: "+idealText(unit)+".")
	whiskers := "No interval: too few rounds."
	if len(intervals) > 0 {
		whiskers = "Bars: " + strings.Join(intervals, "; ") + "." + TextIf(clipped, " An arrow goes on beyond the scale.")
	}
	c.Notes = []string{whiskers + off, v.Provenance}
	return c, true
}

// capIntervals ends the y axis at a multiple of the largest value where an interval
// goes beyond, since it would press all values flat.
func (c *Chart) capIntervals(times float64) bool {
	top, most := 0.0, 0.0
	for _, y := range c.Y.Values {
		top = max(top, y)
	}
	for _, s := range c.Series {
		for _, p := range s.Points {
			if s.Role == "error" {
				most = max(most, p.([]any)[2].(float64))
			}
		}
	}
	if top <= 0 || most <= times*top {
		return false
	}
	c.Y.High = pointer(roundUp(times * top))
	return most > *c.Y.High
}

// fitsCurve reports whether a fit can be drawn along this axis.
func fitsCurve(f result.Fit, key, op string) bool {
	return f.Along == key && f.Op == op && len(f.Points) > 0 && f.Reason == ""
}

// sweepAxis is logarithmic where the values span more than a decade and a half of
// the same sign, with a tick at each value.
func sweepAxis(name, unit string, xs []float64) Axis {
	a := Axis{Name: name, Unit: unit, Human: unit == "B", Values: xs}
	low, high := slices.Min(xs), slices.Max(xs)
	if low > 0 && high/low >= 32 {
		a.Log = true
		a.Low, a.High = pointer(digits(low/1.2)), pointer(digits(high*1.2))
		a.Ticks = slices.Clone(xs)
		slices.Sort(a.Ticks)
		a.Ticks = slices.Compact(a.Ticks)
	}
	return a
}

// model is the function of a fit, or nil if coefficients are missing.
func model(f result.Fit, value func(result.Coefficient) (float64, bool)) func(x float64) float64 {
	k := map[string]float64{}
	for _, c := range f.Coefficients {
		if x, ok := value(c); ok && IsFinite(x) {
			k[c.Name] = x
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

// publishedModel is the function of the published coefficients, nil if there are none.
func publishedModel(f result.Fit) func(float64) float64 {
	return model(f, func(k result.Coefficient) (float64, bool) {
		if k.Published == nil {
			return 0, false
		}
		return *k.Published, true
	})
}

// offScale reports whether a published curve would press the measured points flat.
func offScale(f result.Fit, at func(float64) float64) bool {
	top, most := 0.0, 0.0
	for _, p := range f.Points {
		top = max(top, p[1])
		if at != nil {
			most = max(most, at(p[0]))
		}
	}
	return top > 0 && most > 3*top
}

// offScaleText says so inside the picture.
func offScaleText(f result.Fit) string {
	if at := publishedModel(f); at != nil && offScale(f, at) {
		return " The published curve is off this scale; its coefficients are in the table."
	}
	return ""
}

// addFit draws a fit's curve, the published one and the predictions, and returns the x that have to fit on the axis.
func (c *Chart) addFit(f result.Fit) []float64 {
	name := "fit " + Plain(f.Name, 60)
	low, high := math.Inf(1), math.Inf(-1)
	for _, p := range slices.Concat(f.Points, f.Predictions) {
		low, high = min(low, p[0]), max(high, p[0])
	}
	curve := func(role, name string, at func(float64) float64) {
		if at == nil || !IsFinite(low) || !IsFinite(high) {
			return
		}
		s := Series{Role: role, Name: name}
		for i := range 61 {
			x := low + (high-low)*float64(i)/60
			if low > 0 && high/low >= 32 {
				x = low * math.Pow(high/low, float64(i)/60)
			}
			s.Points = append(s.Points, xy(x, at(x)))
		}
		c.Series = append(c.Series, s)
	}
	curve("fit", name, model(f, func(k result.Coefficient) (float64, bool) { return k.Value, true }))
	if at := publishedModel(f); !offScale(f, at) {
		curve("faint", "published "+name, at)
	}
	if len(f.Predictions) > 0 {
		s := Series{Role: "prediction", Name: "prediction of " + name}
		for _, p := range f.Predictions {
			s.Points = append(s.Points, xy(p[0], p[1]))
			c.Y.Values = append(c.Y.Values, p[1])
		}
		c.Series = append(c.Series, s)
	}
	return []float64{low, high}
}

// fitChart draws a fit on its own points, for axes that are no key of cases (file size, cycle).
func (v *View) fitChart(i int, f result.Fit) Chart {
	unit := plan.Quantity(f.Op).Unit()
	c := Chart{ID: "fit-" + strconv.Itoa(i+1), Section: "sweep", Height: 320, Heading: Capitalize(QuantityName(f.Op)) + " along " + Plain(strings.ReplaceAll(f.Along, "_", " "), 40),
		Y: Axis{Name: QuantityName(f.Op), Unit: unit}, Table: v.Fits[i].Table}
	pts := Series{Role: "points", Name: "measured"}
	every := (len(f.Points) + pointsPerChart - 1) / pointsPerChart
	var xs []float64
	for n, p := range f.Points {
		if n%every == 0 {
			pts.Points, xs = append(pts.Points, xy(p[0], p[1])), append(xs, p[0])
			c.Y.Values = append(c.Y.Values, p[1])
		}
	}
	c.Series = append(c.Series, pts)
	xs = append(xs, c.addFit(f)...)
	c.X = sweepAxis(Plain(strings.ReplaceAll(f.Along, "_", " "), 40), AxisUnit(f.Along), slices.DeleteFunc(xs, func(x float64) bool { return !IsFinite(x) }))
	if c.X.Log {
		c.X.Ticks = sizeTicks(*c.X.Low, *c.X.High)
	}
	c.Sub = Count(len(f.Points), "point") + TextIf(every > 1, ", one of "+strconv.Itoa(every)+" drawn") + ". Model: " + ModelName(f.Model) + "."
	c.Notes = []string{FirstOf(TextIf(f.Reason != "", "No fit: "+Plain(f.Reason, 200)+"."), "Thin line: the fit; hollow: what it predicts; dashed: as published.") + offScaleText(f), v.Provenance}
	return c
}
