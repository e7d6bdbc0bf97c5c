package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/stats"
)

// curve is one fitted model.
type curve struct {
	names  []string
	values map[string]float64
	// interval of a coefficient by the fit itself; nil where the model has none.
	interval func(name string) (stats.Interval, error)
	at       func(x float64) float64
}

// fitCurve fits a model of the plan language to points.
func fitCurve(model string, xs, ys []float64) (curve, error) {
	switch model {
	case "line":
		l, err := stats.FitLine(xs, ys)
		return curve{
			names:  []string{"intercept", "slope", "r2"},
			values: map[string]float64{"intercept": l.Intercept, "slope": l.Slope, "r2": l.R2},
			interval: func(name string) (stats.Interval, error) {
				if name == "slope" {
					return l.SlopeInterval(level)
				}
				return l.InterceptInterval(level)
			}, at: l.At}, err
	case "power":
		w, err := stats.FitPower(xs, ys)
		return curve{
			names:  []string{"factor", "exponent", "r2"},
			values: map[string]float64{"factor": w.Coefficient, "exponent": w.Exponent, "r2": w.Log.R2},
			interval: func(name string) (stats.Interval, error) {
				if name == "exponent" {
					return w.ExponentInterval(level)
				}
				return w.CoefficientInterval(level)
			}, at: w.At}, err
	case "two-lines":
		t, err := stats.FitTwoLines(xs, ys, stats.MinForLine)
		return curve{
			names: []string{"intercept", "slope", "break", "intercept_2", "slope_2", "r2"},
			values: map[string]float64{"intercept": t.Left.Intercept, "slope": t.Left.Slope, "break": t.Break,
				"intercept_2": t.Right.Intercept, "slope_2": t.Right.Slope, "r2": 1 - (1-t.One.R2)*(1-t.Gain)},
			at: t.At}, err
	}
	return curve{}, fmt.Errorf("fitting %q: no such model", model)
}

// fitted is a fit of the plan on one side: round by round where it was measured.
type fitted struct {
	points [][2]float64
	whole  curve
	rounds []int
	curves []curve
	files  bool // points are single files
	per    replica
	reason string
}

// measuredFit fits each round on its own, and the means of these rounds.
func (s *runData) measuredFit(f plan.Fit, est string) fitted {
	op := plan.Operand{Quantity: f.Quantity, Where: f.Where}
	out := fitted{per: s.per}
	var byRound map[int][][2]float64
	if f.Along == "file_size" {
		out.files = true
		byRound, out.reason = s.filePoints(f)
	} else {
		byRound, out.points, out.reason = s.axisPoints(op, f, est)
	}
	if out.reason != "" {
		return out
	}
	for _, r := range slices.Sorted(maps.Keys(byRound)) {
		c, err := fitPoints(f.Model, byRound[r])
		if err != nil {
			out.reason = fmt.Sprintf("%s %d: %v", s.per.name(), r, err)
			return out
		}
		out.rounds, out.curves = append(out.rounds, r), append(out.curves, c)
		if out.files {
			out.points = append(out.points, byRound[r]...)
		}
	}
	c, err := fitPoints(f.Model, out.points)
	if err != nil {
		out.reason = err.Error()
	}
	out.whole = c
	return out
}

func fitPoints(model string, points [][2]float64) (curve, error) {
	xs, ys := make([]float64, len(points)), make([]float64, len(points))
	for i, p := range points {
		xs[i], ys[i] = p[0], p[1]
	}
	return fitCurve(model, xs, ys)
}

// axisPoints are the values along a numeric axis, of each round that has all of
// them, and the centres of these.
func (s *runData) axisPoints(op plan.Operand, f plan.Fit, est string) (map[int][][2]float64, [][2]float64, string) {
	points, bad := judge{s: s, est: est}.along(op, f.Along)
	if why := join(bad.missing, bad.weak); why != "" {
		return nil, nil, why
	}
	var xs []float64
	points, xs = s.numeric(points, f)
	if len(points) == 0 {
		return nil, nil, fmt.Sprintf("no value of %s among the points of the fit was measured", f.Along)
	}
	byRound := map[int][][2]float64{}
	for _, r := range points[0].rounds {
		row := onRound(points, xs, r)
		if len(row) == len(points) {
			byRound[r] = row
		}
	}
	if len(byRound) == 0 {
		return nil, nil, "no round measured all points"
	}
	return byRound, centres(points[0].unit, byRound), ""
}

// centres are the points of a fit as they are drawn: each the centre of the rounds
// that were fitted. A value of a round that lacks another point is in neither.
func centres(unit string, byRound map[int][][2]float64) (out [][2]float64) {
	rounds := slices.Sorted(maps.Keys(byRound))
	for i, p := range byRound[rounds[0]] {
		ys := make([]float64, len(rounds))
		for k, r := range rounds {
			ys[k] = byRound[r][i][1]
		}
		out = append(out, [2]float64{p[0], centre(unit, ys)})
	}
	return out
}

func onRound(points []point, xs []float64, round int) [][2]float64 {
	var row [][2]float64
	for i, p := range points {
		if k, ok := slices.BinarySearch(p.rounds, round); ok {
			row = append(row, [2]float64{xs[i], p.values[k]})
		}
	}
	return row
}

// numeric keeps the points that take part in the fit and have a number for x.
// The band size is the one found, as the source states its own.
func (s *runData) numeric(points []point, f plan.Fit) (kept []point, xs []float64) {
	for _, p := range points {
		wanted := len(f.Points) == 0 || slices.ContainsFunc(f.Points, func(v string) bool { return sameValue(f.Along, v, p.at) || sameNumber(v, p.at) })
		x, ok := number(p.at)
		if f.Along == "band_size" && !p.fixed {
			x, ok = s.bandUsed(p.at, x, ok)
		}
		if wanted && ok {
			kept, xs = append(kept, p), append(xs, x)
		}
	}
	return kept, xs
}

func sameNumber(a, b string) bool {
	x, okX := number(a)
	y, okY := number(b)
	return okX && okY && x == y
}

// bandUsed is the band size that cases asked for at had in fact.
func (s *runData) bandUsed(at string, x float64, ok bool) (float64, bool) {
	for _, sub := range s.cases {
		v, _ := sub.value("band_size")
		if sub.c.Target.BandSizeUsed > 0 && sameValue("band_size", v, at) {
			return float64(sub.c.Target.BandSizeUsed), true
		}
	}
	return x, ok
}

// filePoints are single files: size against their time or rate, by round.
func (s *runData) filePoints(f plan.Fit) (map[int][][2]float64, string) {
	if !perFile(f.Quantity) && !fileTime(f.Quantity) {
		return nil, fmt.Sprintf("the %s is not a quantity of single files", nameOf(f.Quantity))
	}
	cells, missing := s.cells(f.Quantity, f.Where)
	if missing != "" {
		return nil, missing
	}
	wanted := map[float64]bool{}
	for _, text := range f.Points { // 2000 MB is 2 GB
		if x, ok := number(text); ok {
			wanted[x] = true
		}
	}
	out := map[int][][2]float64{}
	for _, c := range cells {
		for _, st := range c.steps() {
			fs := filesOf([]*result.Step{st}, filterOf(f.Where))
			if fs.workers > 1 { // a slope would be told as the rate that each got beside the others
				return nil, errWorkers.Error()
			}
			for i := range fs.size {
				y := fs.time[i]
				if perFile(f.Quantity) {
					y = fs.rate[i]
				}
				if len(f.Points) == 0 || wanted[fs.size[i]] {
					r := c.sub.replicate(st.Round)
					out[r] = append(out[r], [2]float64{fs.size[i], y})
				}
			}
		}
	}
	if len(out) == 0 {
		return nil, "no file was timed"
	}
	return out, ""
}

// fits are the fits of the plan, measured, with the author's coefficients.
func (s *runData) fits() []result.Fit {
	out := []result.Fit{}
	for _, f := range s.p.Fits {
		out = append(out, fitResult(f, s.measuredFit(f, s.headlineName())))
	}
	return out
}

// printedFit fits a model of the plan to the author's own published points. Where there
// are too few of them, reason gives the cause.
func (s *runData) printedFit(f plan.Fit) fitted {
	points, bad := s.printedAlong(plan.Operand{Quantity: f.Quantity, Where: f.Where}, f.Along)
	out := fitted{reason: join(bad.missing, bad.weak)}
	if out.reason != "" {
		return out
	}
	points, xs := s.numeric(points, f)
	for i, p := range points {
		if y := p.headline(); !math.IsInf(y, 0) {
			out.points = append(out.points, [2]float64{xs[i], y})
		}
	}
	c, err := fitPoints(f.Model, out.points)
	if err != nil {
		out.reason = err.Error()
	}
	out.whole = c
	return out
}

// fitResult puts a fit into the form of the result.
func fitResult(f plan.Fit, x fitted) result.Fit {
	out := result.Fit{Name: f.Name, Model: f.Model, Along: f.Along, Op: string(f.Quantity), Reason: x.reason,
		Points: nonNil(x.points), Coefficients: []result.Coefficient{}, Predictions: [][2]float64{}}
	if x.reason != "" {
		for _, c := range f.Published {
			v := c.Value
			out.Coefficients = append(out.Coefficients, result.Coefficient{Name: c.Name, Published: &v})
		}
		return out
	}
	for _, name := range x.whole.names {
		c := result.Coefficient{Name: name, Value: x.whole.values[name]}
		x.interval(&c)
		for _, p := range f.Published {
			if v := p.Value; p.Name == name {
				c.Published = &v
			}
		}
		out.Coefficients = append(out.Coefficients, c)
	}
	for _, at := range f.Predict {
		if v, ok := number(at); ok {
			out.Predictions = append(out.Predictions, [2]float64{v, x.at(v)})
		}
	}
	return out
}

// at predicts the mean of the predictions of the rounds from three on, as the
// coefficients are their means, so that a line goes through its own predictions.
func (x fitted) at(v float64) float64 {
	if len(x.curves) < minRounds {
		return x.whole.at(v)
	}
	ys := make([]float64, len(x.curves))
	for i, c := range x.curves {
		ys[i] = c.at(v)
	}
	return plainScale.centre(ys)
}

// interval gives a coefficient its interval: over rounds from three on, else the
// fit's own, over its points. Files of two mounts have none: they are not files
// within one mount, and two mounts are too few to show how mounts differ.
func (x fitted) interval(c *result.Coefficient) {
	if c.Name == "r2" {
		return
	}
	if len(x.curves) >= minRounds {
		var vs []float64
		for _, k := range x.curves {
			vs = append(vs, k.values[c.Name])
		}
		if iv, err := stats.MeanInterval(vs, x.per.level()); err == nil {
			iv.Level = level
			c.Value = plainScale.centre(vs)
			c.CI = ciOf(iv, x.per.name())
			c.CI.Method += x.per.kept()
			x.positive(c, vs)
		}
		return
	}
	if x.whole.interval == nil || x.files && len(x.curves) > 1 {
		return
	}
	if iv, err := x.whole.interval(c.Name); err == nil {
		unit := "point of the fit"
		if x.files {
			unit = fileUnit
		}
		c.CI = ciOf(iv, unit)
	}
}

// positive takes the factor of a power law, which is above zero, by its logarithms
// where the plain interval is not.
func (x fitted) positive(c *result.Coefficient, vs []float64) {
	if c.Name != "factor" || c.CI.Low > 0 || slices.Min(vs) <= 0 {
		return
	}
	sc := logScale.over(x.per)
	if iv, err := sc.interval(vs); err == nil {
		c.Value, c.CI = sc.centre(vs), ciOf(iv, x.per.name())
		c.CI.Method = sc.name + x.per.kept()
	}
}

func nonNil(points [][2]float64) [][2]float64 {
	if points == nil {
		return [][2]float64{}
	}
	return points
}

func (s *runData) fitNamed(name string) (plan.Fit, bool) {
	i := slices.IndexFunc(s.p.Fits, func(f plan.Fit) bool { return f.Name == name })
	if i < 0 {
		return plan.Fit{}, false
	}
	return s.p.Fits[i], true
}

// fit is a fit of the plan on the side that is judged.
func (j judge) fit(name string) (plan.Fit, fitted) {
	f, ok := j.s.fitNamed(name)
	if !ok {
		return f, fitted{reason: fmt.Sprintf("the plan has no fit %q", name)}
	}
	if j.author {
		return f, j.s.printedFit(f)
	}
	if missing := j.unmeasured(plan.Operand{Quantity: f.Quantity, Where: f.Where}); missing != "" {
		return f, fitted{reason: missing}
	}
	return f, j.s.measuredFit(f, j.est)
}

// coefficient bounds a coefficient of a fit, fitted in each round on its own. On
// the author's side it is fitted to his points, or, where he prints none, taken
// as he prints it.
func (j judge) coefficient(a plan.Assert) finding {
	f, x := j.fit(a.Fit)
	phrase := func(v string) string { return fmt.Sprintf("the %s of fit %s is %s", a.Coefficient, a.Fit, v) }
	unit := cmp.Or(a.Bound.Unit, "1")
	if j.author {
		v, ok := x.whole.values[a.Coefficient]
		if x.reason != "" {
			i := slices.IndexFunc(f.Published, func(c plan.Coefficient) bool { return c.Name == a.Coefficient })
			if i < 0 {
				return finding{missing: x.reason}
			}
			v, ok = f.Published[i].Value, true
		}
		if !ok {
			return finding{missing: fmt.Sprintf("a %s has no coefficient %q", f.Model, a.Coefficient)}
		}
		one := operandValue{fixed: true, low: 1, high: 1}
		return judgePrinted(operandValue{fixed: true, low: v, high: v}, one, a.Bound, func(x, _ float64) float64 { return x }, unit, phrase)
	}
	if x.reason != "" {
		return finding{missing: x.reason}
	}
	var vs []float64
	for _, c := range x.curves {
		v, ok := c.values[a.Coefficient]
		if !ok {
			return finding{missing: fmt.Sprintf("a %s has no coefficient %q", f.Model, a.Coefficient)}
		}
		vs = append(vs, v)
	}
	a.Bound.Unit = unit
	sc := plainScale.over(j.s.per).absolute(unit)
	if a.Coefficient != "r2" {
		return judgeRounds(sc, unit, vs, a.Bound, phrase)
	}
	sc.from = asShare
	out := judgeRounds(sc, unit, vs, beyondShares(a.Bound), phrase)
	if out.need != "" {
		out.need = boundText(a.Bound)
	}
	return out
}

// asShare keeps the ends of an interval of shares, such as that of R², among the shares.
func asShare(x float64) float64 { return min(max(x, 0), 1) }

// beyondShares opens the ends of a bound that no share can pass: there is no number
// to test at them, where the t distribution would still see something beyond.
func beyondShares(b plan.Bound) plan.Bound {
	if b.Low <= 0 && !b.LowOpen {
		b.Low = math.Inf(-1)
	}
	if b.High >= 1 && !b.HighOpen {
		b.High = math.Inf(1)
	}
	return b
}

// prediction sets a value against what the fit predicts for it: left / predicted.
func (j judge) prediction(a plan.Assert) finding {
	f, x := j.fit(a.Fit)
	if x.reason != "" {
		return finding{missing: x.reason}
	}
	if len(a.At) == 0 {
		return finding{weak: "the claim names no point of the prediction"}
	}
	at, ok := number(a.At[0])
	if !ok {
		return finding{weak: fmt.Sprintf("%q is no number", a.At[0])}
	}
	left := j.operandValues(a.Left)[0]
	said := operandValue{q: f.Quantity, unit: left.unit, label: fmt.Sprintf("what fit %s predicts at %s", a.Fit, a.At[0])}
	if j.author {
		said.fixed = true
		said.low = x.whole.at(at)
		said.high, said.text = said.low, show(said.low, said.unit)
	}
	for i, c := range x.curves {
		said.rounds, said.values = append(said.rounds, x.rounds[i]), append(said.values, c.at(at))
	}
	return judgeRatio(left, said, a.Bound)
}

// operands lists every operand inside a test, those of its fits included.
func (s *runData) operands(a plan.Assert) []plan.Operand {
	var out []plan.Operand
	for _, op := range append([]plan.Operand{a.Left, a.Right}, a.Of...) {
		if op.Quantity != "" && op.Constant == nil {
			out = append(out, op)
		}
	}
	if f, ok := s.fitNamed(a.Fit); ok && a.Fit != "" {
		out = append(out, plan.Operand{Quantity: f.Quantity, Where: f.Where})
	}
	for _, p := range a.Parts {
		out = append(out, s.operands(p)...)
	}
	return out
}
