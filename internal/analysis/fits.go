package analysis

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/plan"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
)

// curve is one fitted model.
type curve struct {
	at           func(x float64) float64
	coefficients []coefficient
}

// coefficient is one number of a model; interval is nil where the fit itself
// has none.
type coefficient struct {
	name     string
	value    float64
	interval func(level float64) (stats.Interval, error)
}

// value is the coefficient of a name; false if the model has none.
func (c curve) value(name string) (float64, bool) {
	k, ok := find(c.coefficients, func(k coefficient) bool { return k.name == name })
	return k.value, ok
}

// models are the models of the plan language.
var models = map[string]func(xs, ys []float64) (curve, error){
	"line": func(xs, ys []float64) (curve, error) {
		l, err := stats.FitLine(xs, ys)
		return curve{l.At, []coefficient{{"intercept", l.Intercept, l.InterceptInterval},
			{"slope", l.Slope, l.SlopeInterval}, {"r2", l.R2, nil}}}, err
	},
	"power": func(xs, ys []float64) (curve, error) {
		w, err := stats.FitPower(xs, ys)
		return curve{w.At, []coefficient{{"factor", w.Coefficient, w.CoefficientInterval},
			{"exponent", w.Exponent, w.Log.SlopeInterval}, {"r2", w.Log.R2, nil}}}, err
	},
	"two-lines": func(xs, ys []float64) (curve, error) {
		t, err := stats.FitTwoLines(xs, ys)
		return curve{t.At, []coefficient{{"intercept", t.Left.Intercept, nil}, {"slope", t.Left.Slope, nil},
			{"break", t.Break, nil}, {"intercept_2", t.Right.Intercept, nil}, {"slope_2", t.Right.Slope, nil},
			{"r2", t.R2, nil}}}, err
	},
}

func fitPoints(model string, points [][2]float64) (curve, error) {
	xs := mapped(points, func(p [2]float64) float64 { return p[0] })
	return models[model](xs, mapped(points, func(p [2]float64) float64 { return p[1] }))
}

// fitted is a fit of the plan on one side: round by round where it was
// measured.
type fitted struct {
	points [][2]float64
	whole  curve
	rounds []int
	curves []curve
	// Points are single files
	files  bool
	per    replica
	reason string
}

// fit fits each round alone, and the means of these rounds; on the author's
// side it fits the printed points.
func (j judge) fit(f plan.Fit) fitted {
	out := fitted{per: j.s.per, files: f.Along == "file_size" && !j.author}
	points := j.axisPoints
	if out.files {
		points = j.filePoints
	}
	byRound, reason := points(f)
	if out.reason = reason; reason != "" {
		return out
	}
	rounds := sortedKeys(byRound)
	for _, r := range rounds {
		if j.author {
			break
		}
		c, err := fitPoints(f.Model, byRound[r])
		if err != nil {
			out.reason = wording.Text("fit-failed", out.per.name(), r, err)
			return out
		}
		out.rounds, out.curves = append(out.rounds, r), append(out.curves, c)
	}
	// Each point is the centre of the rounds that were fitted. A value of a round
	// that lacks another point is in neither.
	if out.files {
		out.points = slices.Concat(mapped(rounds, func(r int) [][2]float64 { return byRound[r] })...)
	} else {
		for i, p := range byRound[rounds[0]] {
			ys := mapped(rounds, func(r int) float64 { return byRound[r][i][1] })
			out.points = append(out.points, [2]float64{p[0], centre(f.Quantity.Unit(), ys)})
		}
	}
	var err error
	if out.whole, err = fitPoints(f.Model, out.points); err != nil {
		out.reason = err.Error()
	}
	return out
}

// axisPoints are the values along a numeric axis, of each round that has all of
// them.
func (j judge) axisPoints(f plan.Fit) (map[int][][2]float64, string) {
	points, bad := j.along(plan.Operand{Quantity: f.Quantity, Where: f.Where}, f.Along)
	if bad.fails() {
		return nil, wording.Join(bad.missing, bad.weak)
	}
	var kept []point
	var xs []float64
	for _, p := range points {
		x, ok := number(p.at)
		// The band size is the one found, as the source states its own
		used, found := find(j.s.cases, func(sub *caseData) bool {
			v, _ := sub.value("band_size")
			return sub.c.Target.BandSizeUsed > 0 && sameValue("band_size", v, p.at)
		})
		if f.Along == "band_size" && !p.fixed && found {
			x, ok = float64(used.c.Target.BandSizeUsed), true
		}
		if ok && (len(f.Points) == 0 || hasValue(f.Along, f.Points, p.at)) {
			kept, xs = append(kept, p), append(xs, x)
		}
	}
	if len(kept) == 0 {
		return nil, wording.Text("no-fit-point", f.Along)
	}
	byRound := map[int][][2]float64{}
	rounds, rows := grid(kept)
	for i, r := range rounds {
		for k, y := range rows[i] {
			byRound[r] = append(byRound[r], [2]float64{xs[k], y})
		}
	}
	if len(byRound) == 0 {
		return nil, wording.Text("no-round-of-all")
	}
	return byRound, ""
}

// filePoints are single files: size against their time or rate, by round.
func (j judge) filePoints(f plan.Fit) (map[int][][2]float64, string) {
	if !isPerFile(f.Quantity) && !isFileTime(f.Quantity) {
		return nil, wording.Text("not-of-files", QuantityName(f.Quantity))
	}
	cells, missing := j.s.cells(f.Quantity, f.Where, j.strict)
	if missing != "" {
		return nil, missing
	}
	filter := filterOf(f.Where)
	if len(f.Points) > 0 {
		filter = filterOf(withChoice(f.Where, "file_size", f.Points...))
	}
	out := map[int][][2]float64{}
	for _, c := range cells {
		rounds, steps := c.rounds()
		for _, round := range rounds {
			r, fs := c.sub.per.replicate(c.sub.runs, round), filesOf(steps[round], filter)
			// A slope would be the rate that each got while the others ran
			if fs.workers > 1 {
				return nil, errWorkers.Error()
			}
			ys := fs.time
			if isPerFile(f.Quantity) {
				ys = fs.rate
			}
			for i, size := range fs.size {
				out[r] = append(out[r], [2]float64{size, ys[i]})
			}
		}
	}
	if len(out) == 0 {
		return nil, errNoFile.Error()
	}
	return out, ""
}

// fitResult puts a fit into the form of the result.
func fitResult(f plan.Fit, x fitted) result.Fit {
	out := result.Fit{Name: f.Name, Model: f.Model, Along: f.Along, Op: string(f.Quantity), Reason: x.reason,
		Points: append([][2]float64{}, x.points...), Coefficients: []result.Coefficient{}, Predictions: [][2]float64{}}
	published := map[string]*float64{}
	for _, c := range f.Published {
		published[c.Name] = &c.Value
		if x.reason != "" {
			out.Coefficients = append(out.Coefficients, result.Coefficient{Name: c.Name, Published: &c.Value})
		}
	}
	if x.reason != "" {
		return out
	}
	for _, k := range x.whole.coefficients {
		c := result.Coefficient{Name: k.name, Value: k.value, Published: published[k.name]}
		x.interval(&c, k.interval)
		out.Coefficients = append(out.Coefficients, c)
	}
	for _, at := range f.Predict {
		// A power law, for instance, has no number at zero
		if v, ok := number(at); ok && finite(x.at(v)) {
			out.Predictions = append(out.Predictions, [2]float64{v, x.at(v)})
		}
	}
	return out
}

// at predicts the mean of the predictions of the rounds from three on, as the
// coefficients are their means, so that a line goes through its own
// predictions.
func (x fitted) at(v float64) float64 {
	if len(x.curves) < minRounds {
		return x.whole.at(v)
	}
	return plainScale.centre(mapped(x.curves, func(c curve) float64 { return c.at(v) }))
}

// interval gives a coefficient its interval: over rounds from three on, else
// the fit's own, over its points. Files of two mounts have none: they are not
// files within one mount, and two mounts are too few to show how mounts differ.
func (x fitted) interval(c *result.Coefficient, own func(level float64) (stats.Interval, error)) {
	switch {
	case c.Name == "r2":
	case len(x.curves) >= minRounds:
		vs := x.values(c.Name)
		for _, sc := range []scale{plainScale.over(x.per), logScale.over(x.per)} {
			if iv, err := sc.interval(vs); err == nil {
				c.Value, c.CI = sc.centre(vs), ciOf(iv, x.per.name(), x.per.method(sc.name))
			}
			// The factor of a power law, which is above zero, is taken by its logarithms
			// where the plain interval is not above zero.
			if c.Name != "factor" || c.CI == nil || c.CI.Low > 0 || slices.Min(vs) <= 0 {
				return
			}
		}
	case own != nil && !(x.files && len(x.curves) > 1):
		unit := "point of the fit"
		if x.files {
			unit = fileUnit
		}
		if iv, err := own(level); err == nil {
			c.CI = ciOf(iv, unit, iv.Method)
		}
	}
}

// values are a coefficient in each round.
func (x fitted) values(name string) []float64 {
	return mapped(x.curves, func(c curve) float64 {
		v, _ := c.value(name)
		return v
	})
}

func (s *runData) fitNamed(name string) (plan.Fit, bool) {
	return find(s.p.Fits, func(f plan.Fit) bool { return f.Name == name })
}

// fitOf is the fit that a claim names, on the side that is judged.
func (j judge) fitOf(a plan.Assert) (plan.Fit, fitted) {
	f, ok := j.s.fitNamed(a.Fit)
	if !ok {
		return f, fitted{reason: wording.Text("no-fit", a.Fit)}
	}
	return f, j.fit(f)
}

// coefficient bounds a coefficient of a fit, fitted in each round alone. On
// the author's side it is fitted to his points, or, where he prints none, taken
// as he prints it.
func (j judge) coefficient(a plan.Assert) finding {
	f, x := j.fitOf(a)
	phrase := wording.Say("phrase.coefficient", nil, a.Coefficient, a.Fit)
	a.Bound.Unit = cmp.Or(a.Bound.Unit, "1")
	v, ok := x.whole.value(a.Coefficient)
	if j.author && x.reason != "" {
		var printed plan.Coefficient
		if printed, ok = find(f.Published, func(c plan.Coefficient) bool { return c.Name == a.Coefficient }); ok {
			v, x.reason = printed.Value, ""
		}
	}
	switch {
	case x.reason != "":
		return finding{missing: x.reason}
	case !ok:
		return missing("no-coefficient", f.Model, a.Coefficient)
	case j.author:
		return judgeFigure(exactly(v, v), a.Bound, phrase)
	}
	sc, vs := plainScale.over(j.s.per).absolute(a.Bound.Unit), x.values(a.Coefficient)
	if a.Coefficient != "r2" {
		return judgeRounds(sc, vs, a.Bound, phrase)
	}
	// R² is a share, and so are the ends of its interval. Ends of the bound that
	// no share can pass are opened: there is no number to test at them, where the
	// t distribution would still see something beyond.
	sc.from = func(x float64) float64 { return min(max(x, 0), 1) }
	need := needs(a.Bound)
	if a.Bound.Low <= 0 && !a.Bound.LowOpen {
		a.Bound.Low = math.Inf(-1)
	}
	if a.Bound.High >= 1 && !a.Bound.HighOpen {
		a.Bound.High = math.Inf(1)
	}
	out := judgeRounds(sc, vs, a.Bound, phrase)
	if !out.need.IsZero() {
		out.need = need
	}
	return out
}

// prediction compares a value with what the fit predicts for it: left /
// predicted.
func (j judge) prediction(a plan.Assert) finding {
	f, x := j.fitOf(a)
	if x.reason != "" {
		return finding{missing: x.reason}
	}
	name := strings.Join(a.At, ", ")
	at, ok := number(name)
	if !ok {
		return weak("no-number", name)
	}
	left := j.operandValues(a.Left)[0]
	var predicted operandValue
	if j.author {
		v := x.whole.at(at)
		predicted = exactly(v, v)
		predicted.text = wording.Amount{Value: v, Unit: left.unit}.String()
	}
	predicted.q, predicted.unit, predicted.label = f.Quantity, left.unit, wording.Text("predicted", a.Fit, name)
	predicted.rounds = x.rounds
	predicted.values = mapped(x.curves, func(c curve) float64 { return c.at(at) })
	return judgeRatio(left, predicted, a.Bound)
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
	return append(out, slices.Concat(mapped(a.Parts, s.operands)...)...)
}

// relation plots two quantities against each other. A point that lacks one of
// them is left out, and Reason names it.
func (j judge) relation(rel plan.Relation) result.Relation {
	out := result.Relation{Name: rel.Name, XOp: string(rel.X.Quantity), YOp: string(rel.Y.Quantity),
		Points: []result.RelationPoint{}}
	labels := wording.Labels(rel.Over)
	var xs, ys []float64
	for i, sel := range rel.Over {
		x, y := j.operand(narrowed(rel.X, sel)), j.operand(narrowed(rel.Y, sel))
		if f, bad := missingValues(x, y); bad {
			why := wording.Text("of-case", labels[i], wording.Join(f.missing, f.weak))
			out.Reason = wording.Join(out.Reason, why)
			continue
		}
		xs, ys = append(xs, x.headline()), append(ys, y.headline())
		out.Points = append(out.Points, result.RelationPoint{Label: labels[i], X: x.headline(), Y: y.headline()})
	}
	off := offLine(xs, ys)
	for i := range out.Points {
		p := &out.Points[i]
		p.RankX, p.RankY, p.Outlier = rankFromTop(xs, i), rankFromTop(ys, i), slices.Contains(off, i)
	}
	var err error
	if out.Spearman, err = stats.Spearman(xs, ys); err != nil {
		out.Reason = wording.Join(out.Reason, wording.Text("no-correlation", err))
	}
	return out
}

// narrowed is an operand inside one selection: the selection overrides its
// keys.
func narrowed(op plan.Operand, sel plan.Selector) plan.Operand {
	for _, c := range sel {
		op.Where = withChoice(op.Where, c.Key, c.Values...)
	}
	return op
}

// rankFromTop is 1 for the largest; equal values share the better rank.
func rankFromTop(xs []float64, i int) int {
	return 1 + len(slices.DeleteFunc(slices.Clone(xs), func(x float64) bool { return x <= xs[i] }))
}

// minForOutlier is the least number of points for which one of them can be
// called off the line of the others.
const minForOutlier = 5

// offLineZ is the modified z score beyond which a point is off the line, after
// Iglewicz and Hoaglin (How to Detect and Handle Outliers, 1993).
const offLineZ = 3.5

// offLine finds points off the Theil-Sen line, by the distance of their
// residual from the median residual, which is 0, in units of the scaled median
// absolute deviation. The farthest one is taken out and the line drawn anew, as
// one point off drags the others with it. The word describes the picture; it is
// not a test.
func offLine(xs, ys []float64) (out []int) {
	for len(xs)-len(out) >= minForOutlier {
		var at []int
		var x, y []float64
		for i := range xs {
			if !slices.Contains(out, i) {
				at, x, y = append(at, i), append(x, xs[i]), append(y, ys[i])
			}
		}
		l, err := stats.FitTheilSen(x, y)
		var residuals []float64
		for i := range x {
			residuals = append(residuals, y[i]-l.At(x[i]))
		}
		away := mapped(residuals, math.Abs)
		far := slices.Max(away)
		worst := slices.Index(away, far)
		if err != nil || far <= max(offLineZ*stats.MADScale*mad(residuals), slack*math.Abs(y[worst])) {
			break
		}
		out = append(out, at[worst])
	}
	return out
}
