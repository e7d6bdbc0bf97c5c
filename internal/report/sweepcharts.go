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
func (v *view) sweepCharts() []chart {
	var out []chart
	drawn := map[int]bool{}
	for _, key := range v.numericAxes() {
		for _, s := range v.sections {
			for _, op := range s.figures.ops {
				if !v.swept(key, op, s) {
					continue
				}
				if c, ok := v.sweepChart(key, op, s.figures, drawn); ok {
					out = append(out, c)
				}
			}
		}
	}
	out = append(out, v.cycleCharts()...)
	for i, f := range v.result.Fits {
		if !drawn[i] && len(f.Points) > 0 {
			out = append(append(out, v.fitChart(i, f)), v.fitResiduals(i, f)...)
		}
	}
	return out
}

// swept reports whether a quantity is drawn along an axis: every rate with the time that
// it is the inverse of, what is swept for (bands, size, ratio), and whatever a fit or a published figure is about.
func (v *view) swept(key, op string, s section) bool {
	switch {
	case s.id == "speeds" || op == "bands" || op == "allocated" || op == "ratio":
		return true
	case op == "stream_time" || op == "write_time" || op == "read_time":
		return true
	case slices.ContainsFunc(v.result.Fits, func(f result.Fit) bool { return fitsCurve(f, key, op) }):
		return true
	}
	return s.id == "times" && s.figures.some(op, func(sum *result.Summary) bool { return len(sum.Published) > 0 })
}

// numericAxes are the keys whose values are numbers in at least minSweep cases.
func (v *view) numericAxes() []string {
	values := map[string]map[float64]bool{}
	var order []string
	for i := range v.result.Cases {
		for _, kv := range v.result.Cases[i].Keys {
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
	if err != nil || !finite(f) || key == "encryption" {
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
func (v *view) curves(key, op string, f figures) (names []string, by map[string][]curvePoint, unit string) {
	by = map[string][]curvePoint{}
	vary := slices.DeleteFunc(varying(v.result.Cases), func(k string) bool { return k == key })
	for _, k := range f.keys {
		s := f.by[k][op]
		at := v.order[k.caseID]
		if s == nil || k.cycle != 0 || at >= len(v.result.Cases) || v.result.Cases[at].ID != k.caseID {
			continue
		}
		c := &v.result.Cases[at]
		x, u, ok := sweepValue(c, key)
		if !ok {
			continue
		}
		unit = u
		parts := []string{zero(c.Baseline, nativeFolder)}
		for _, kv := range c.Keys {
			if slices.Contains(vary, kv[0]) {
				parts = append(parts, caseValue(kv[0], kv[1]))
			}
		}
		parts = append(parts, plain(k.phase, 40))
		name := firstOf(strings.Join(nonEmpty(parts), " · "), words(op))
		if by[name] == nil {
			names = append(names, name)
		}
		by[name] = append(by[name], curvePoint{x, headline(s), s})
	}
	return names, by, unit
}

func (v *view) sweepChart(key, op string, f figures, drawn map[int]bool) (chart, bool) {
	names, by, xUnit := v.curves(key, op, f)
	names = slices.DeleteFunc(names, func(n string) bool { return len(by[n]) < minSweep })
	if len(names) == 0 {
		return chart{}, false
	}
	unit := by[names[0]][0].e.Unit
	keyWords := plain(strings.ReplaceAll(key, "_", " "), 40)
	c := chart{id: "sweep-" + slug(key) + "-" + slug(op), section: "sweep", height: 320,
		heading: title(words(op)) + " along " + keyWords, y: axis{name: words(op), unit: unit, low: pointer(0)}}
	c.table = table{Caption: c.heading, Columns: []column{{"", "curve", true}, {"", keyWords, false}, {"", "measured", false}, {"", "interval", false}, {"", "published", false}, {"", "n", true}}}
	var intervals, ns []string
	var xs []float64
	role := "line"
	fits := 0
	for _, f := range v.result.Fits {
		fits += bit(fitsCurve(f, key, op))
	}
	if fits >= len(names) {
		role = "dots" // the fits are the lines
	}
	for _, name := range names {
		points := by[name]
		slices.SortStableFunc(points, func(a, b curvePoint) int { return cmp.Compare(a.x, b.x) })
		line, bars := series{role: role, name: name}, series{role: "error", name: name}
		for _, p := range points {
			xs, ns = append(xs, p.x), appendNew(ns, counted(p.s))
			c.y.values = append(c.y.values, p.e.Value)
			line.points = append(line.points, xy(p.x, p.e.Value))
			interval := ""
			if ci := p.e.CI; ci != nil && finite(ci.Low) && finite(ci.High) {
				intervals = appendNew(intervals, ciText(ci))
				bars.points = append(bars.points, []any{digits(p.x), digits(ci.Low), digits(ci.High)})
				interval = human(ci.Low, unit) + "–" + human(ci.High, unit)
			}
			row, _, _ := textRow(p.s, "", scaleOf(unit, p.e.Value), sameForAll{})
			line.tips = append(line.tips, keyWords+" "+human(p.x, xUnit)+"\n"+tip(row))
			c.table.Rows = append(c.table.Rows, []cell{{Text: name, Class: "head"}, {Text: human(p.x, xUnit)}, {Text: human(p.e.Value, unit)}, {Text: interval}, {Text: row[4]}, {Text: row[6], Class: "muted"}})
		}
		c.series = append(c.series, line)
		if len(bars.points) > 0 {
			c.series = append(c.series, bars)
		}
	}
	clipped := c.capIntervals(3)
	ideal := c.addIdeal(key, unit, names, by)
	fitted, off := false, ""
	for i, fit := range v.result.Fits {
		if fitsCurve(fit, key, op) {
			xs = append(xs, c.addFit(fit)...)
			drawn[i], fitted = true, true
			off += offScaleText(fit)
		}
	}
	c.x = sweepAxis(keyWords, xUnit, xs)
	c.sub = strings.Join(ns, " / ") + " a point." + zero(fitted, " Thin line: the fit; hollow: what it predicts; dashed: as published.") +
		zero(ideal, " Dotted: "+idealText(unit)+".")
	whiskers := "No interval: too few rounds."
	if len(intervals) > 0 {
		whiskers = "Bars: " + strings.Join(intervals, "; ") + "." + zero(clipped, " An arrow goes on beyond the scale.")
	}
	c.notes = []string{whiskers + off, v.provenance}
	return c, true
}

// capIntervals ends the y axis at a multiple of the largest value where an interval
// goes beyond, since it would press all values flat.
func (c *chart) capIntervals(times float64) bool {
	top, most := 0.0, 0.0
	for _, y := range c.y.values {
		top = max(top, y)
	}
	for _, s := range c.series {
		for _, p := range s.points {
			if s.role == "error" {
				most = max(most, p.([]any)[2].(float64))
			}
		}
	}
	if top <= 0 || most <= times*top {
		return false
	}
	c.y.high = pointer(roundUp(times * top))
	return most > *c.y.high
}

// fitsCurve reports whether a fit can be drawn along this axis.
func fitsCurve(f result.Fit, key, op string) bool {
	return f.Along == key && f.Op == op && len(f.Points) > 0 && f.Reason == ""
}

// sweepAxis is logarithmic where the values span more than a decade and a half of
// the same sign, with a tick at each value.
func sweepAxis(name, unit string, xs []float64) axis {
	a := axis{name: name, unit: unit, human: unit == "B", values: xs}
	low, high := slices.Min(xs), slices.Max(xs)
	if low > 0 && high/low >= 32 {
		a.log = true
		a.low, a.high = pointer(digits(low/1.2)), pointer(digits(high*1.2))
		a.ticks = slices.Clone(xs)
		slices.Sort(a.ticks)
		a.ticks = slices.Compact(a.ticks)
	}
	return a
}

// model is the function of a fit, or nil if coefficients are missing.
func model(f result.Fit, value func(result.Coefficient) (float64, bool)) func(x float64) float64 {
	k := map[string]float64{}
	for _, c := range f.Coefficients {
		if x, ok := value(c); ok && finite(x) {
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
func (c *chart) addFit(f result.Fit) []float64 {
	name := "fit " + plain(f.Name, 60)
	low, high := math.Inf(1), math.Inf(-1)
	for _, p := range slices.Concat(f.Points, f.Predictions) {
		low, high = min(low, p[0]), max(high, p[0])
	}
	curve := func(role, name string, at func(float64) float64) {
		if at == nil || !finite(low) || !finite(high) {
			return
		}
		s := series{role: role, name: name}
		for i := range 61 {
			x := low + (high-low)*float64(i)/60
			if low > 0 && high/low >= 32 {
				x = low * math.Pow(high/low, float64(i)/60)
			}
			s.points = append(s.points, xy(x, at(x)))
		}
		c.series = append(c.series, s)
	}
	curve("fit", name, model(f, func(k result.Coefficient) (float64, bool) { return k.Value, true }))
	if at := publishedModel(f); !offScale(f, at) {
		curve("faint", "published "+name, at)
	}
	if len(f.Predictions) > 0 {
		s := series{role: "prediction", name: "prediction of " + name}
		for _, p := range f.Predictions {
			s.points = append(s.points, xy(p[0], p[1]))
			c.y.values = append(c.y.values, p[1])
		}
		c.series = append(c.series, s)
	}
	return []float64{low, high}
}

// fitChart draws a fit on its own points, for axes that are no key of cases (file size, cycle).
func (v *view) fitChart(i int, f result.Fit) chart {
	unit := plan.Quantity(f.Op).Unit()
	c := chart{id: "fit-" + strconv.Itoa(i+1), section: "sweep", height: 320, heading: title(words(f.Op)) + " along " + plain(strings.ReplaceAll(f.Along, "_", " "), 40),
		y: axis{name: words(f.Op), unit: unit}, table: v.fits[i].table}
	pts := series{role: "points", name: "measured"}
	every := (len(f.Points) + pointsPerChart - 1) / pointsPerChart
	var xs []float64
	for n, p := range f.Points {
		if n%every == 0 {
			pts.points, xs = append(pts.points, xy(p[0], p[1])), append(xs, p[0])
			c.y.values = append(c.y.values, p[1])
		}
	}
	c.series = append(c.series, pts)
	xs = append(xs, c.addFit(f)...)
	c.x = sweepAxis(plain(strings.ReplaceAll(f.Along, "_", " "), 40), alongUnit(f.Along), slices.DeleteFunc(xs, func(x float64) bool { return !finite(x) }))
	if c.x.log {
		c.x.ticks = sizeTicks(*c.x.low, *c.x.high)
	}
	c.sub = count(len(f.Points), "point") + zero(every > 1, ", one of "+strconv.Itoa(every)+" drawn") + ". Model: " + modelText(f.Model) + "."
	c.notes = []string{firstOf(zero(f.Reason != "", "No fit: "+plain(f.Reason, 200)+"."), "Thin line: the fit; hollow: what it predicts; dashed: as published.") + offScaleText(f), v.provenance}
	return c
}
