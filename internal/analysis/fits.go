package analysis

import (
	"cmp"
	"math"
	"slices"

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
			{"exponent", w.Exponent, w.ExponentInterval}, {"r2", w.Log.R2, nil}}}, err
	},
	"two-lines": func(xs, ys []float64) (curve, error) {
		t, err := stats.FitTwoLines(xs, ys, stats.MinForLine)
		return curve{t.At, []coefficient{{"intercept", t.Left.Intercept, nil}, {"slope", t.Left.Slope, nil},
			{"break", t.Break, nil}, {"intercept_2", t.Right.Intercept, nil}, {"slope_2", t.Right.Slope, nil},
			{"r2", 1 - (1-t.One.R2)*(1-t.Gain), nil}}}, err
	},
}

func fitPoints(model string, points [][2]float64) (curve, error) {
	fit, ok := models[model]
	if !ok {
		return curve{}, because("no-model", model)
	}
	xs, ys := make([]float64, len(points)), make([]float64, len(points))
	for i, p := range points {
		xs[i], ys[i] = p[0], p[1]
	}
	return fit(xs, ys)
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

// fitWhole fits all points together.
func (x *fitted) fitWhole(model string) {
	var err error
	if x.whole, err = fitPoints(model, x.points); err != nil {
		x.reason = err.Error()
	}
}

// measuredFit fits each round alone, and the means of these rounds.
func (j judge) measuredFit(f plan.Fit) fitted {
	out := fitted{per: j.s.per, files: f.Along == "file_size"}
	var byRound map[int][][2]float64
	if out.files {
		byRound, out.reason = j.filePoints(f)
	} else {
		byRound, out.reason = j.axisPoints(f)
	}
	if out.reason != "" {
		return out
	}
	for _, r := range sortedKeys(byRound) {
		c, err := fitPoints(f.Model, byRound[r])
		if err != nil {
			out.reason = wording.Text("fit-failed", out.per.name(), r, err)
			return out
		}
		out.rounds, out.curves = append(out.rounds, r), append(out.curves, c)
		if out.files {
			out.points = append(out.points, byRound[r]...)
		}
	}
	if !out.files {
		out.points = centres(f.Quantity.Unit(), byRound)
	}
	out.fitWhole(f.Model)
	return out
}

// axisPoints are the values along a numeric axis, of each round that has all of
// them.
func (j judge) axisPoints(f plan.Fit) (map[int][][2]float64, string) {
	points, bad := j.along(plan.Operand{Quantity: f.Quantity, Where: f.Where}, f.Along)
	if bad.fails() {
		return nil, wording.Join(bad.missing, bad.weak)
	}
	points, xs := j.s.numeric(points, f)
	if len(points) == 0 {
		return nil, wording.Text("no-fit-point", f.Along)
	}
	byRound := map[int][][2]float64{}
	rounds, rows := grid(points)
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

// centres are the points of a fit as they are drawn: each the centre of the
// rounds that were fitted. A value of a round that lacks another point is in
// neither.
func centres(unit string, byRound map[int][][2]float64) (out [][2]float64) {
	rounds := sortedKeys(byRound)
	for i, p := range byRound[rounds[0]] {
		ys := make([]float64, len(rounds))
		for k, r := range rounds {
			ys[k] = byRound[r][i][1]
		}
		out = append(out, [2]float64{p[0], centre(unit, ys)})
	}
	return out
}

// numeric keeps the points that take part in the fit and have a number for x.
// The band size is the one found, as the source states its own.
func (s *runData) numeric(points []point, f plan.Fit) (kept []point, xs []float64) {
	for _, p := range points {
		x, ok := number(p.at)
		isWanted := func(v string) bool {
			y, isNumber := number(v)
			return sameValue(f.Along, v, p.at) || ok && isNumber && x == y
		}
		wanted := len(f.Points) == 0 || slices.ContainsFunc(f.Points, isWanted)
		if used := s.bandUsed(p.at); f.Along == "band_size" && !p.fixed && used > 0 {
			x, ok = float64(used), true
		}
		if wanted && ok {
			kept, xs = append(kept, p), append(xs, x)
		}
	}
	return kept, xs
}

// bandUsed is the band size that cases asked for at had in fact, 0 without any.
func (s *runData) bandUsed(at string) int64 {
	sub, ok := find(s.cases, func(sub *caseData) bool {
		v, _ := sub.value("band_size")
		return sub.c.Target.BandSizeUsed > 0 && sameValue("band_size", v, at)
	})
	if !ok {
		return 0
	}
	return sub.c.Target.BandSizeUsed
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
		rounds, steps := c.replicates()
		for _, r := range rounds {
			fs := filesOf(steps[r], filter)
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

// fits are the fits of the plan, measured, with the author's coefficients.
func (s *runData) fits() []result.Fit {
	out := []result.Fit{}
	for _, f := range s.p.Fits {
		out = append(out, fitResult(f, judge{s: s, est: s.headlineName()}.measuredFit(f)))
	}
	return out
}

// publishedFit fits a model of the plan to the author's own published points.
// Where there are too few of them, reason gives the cause.
func (s *runData) publishedFit(f plan.Fit) fitted {
	points, bad := s.publishedAlong(plan.Operand{Quantity: f.Quantity, Where: f.Where}, f.Along)
	out := fitted{reason: wording.Join(bad.missing, bad.weak)}
	if out.reason != "" {
		return out
	}
	points, xs := s.numeric(points, f)
	for i, p := range points {
		if y := p.headline(); !math.IsInf(y, 0) {
			out.points = append(out.points, [2]float64{xs[i], y})
		}
	}
	out.fitWhole(f.Model)
	return out
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
	ys := make([]float64, len(x.curves))
	for i, c := range x.curves {
		ys[i] = c.at(v)
	}
	return plainScale.centre(ys)
}

// interval gives a coefficient its interval: over rounds from three on, else
// the fit's own, over its points. Files of two mounts have none: they are not
// files within one mount, and two mounts are too few to show how mounts differ.
func (x fitted) interval(c *result.Coefficient, own func(level float64) (stats.Interval, error)) {
	switch {
	case c.Name == "r2":
	case len(x.curves) >= minRounds:
		x.roundInterval(c)
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

// roundInterval is the interval over rounds. The factor of a power law, which
// is above zero, is taken by its logarithms where the plain interval is not
// above zero.
func (x fitted) roundInterval(c *result.Coefficient) {
	vs := make([]float64, len(x.curves))
	for i, k := range x.curves {
		vs[i], _ = k.value(c.Name)
	}
	for _, sc := range []scale{plainScale.over(x.per), logScale.over(x.per)} {
		if iv, err := sc.interval(vs); err == nil {
			c.Value, c.CI = sc.centre(vs), ciOf(iv, x.per.name(), x.per.method(sc.name))
		}
		if c.Name != "factor" || c.CI == nil || c.CI.Low > 0 || slices.Min(vs) <= 0 {
			return
		}
	}
}

func (s *runData) fitNamed(name string) (plan.Fit, bool) {
	return find(s.p.Fits, func(f plan.Fit) bool { return f.Name == name })
}

// fit is a fit of the plan on the side that is judged.
func (j judge) fit(name string) (plan.Fit, fitted) {
	f, ok := j.s.fitNamed(name)
	if !ok {
		return f, fitted{reason: wording.Text("no-fit", name)}
	}
	if j.author {
		return f, j.s.publishedFit(f)
	}
	return f, j.measuredFit(f)
}

// coefficient bounds a coefficient of a fit, fitted in each round alone. On
// the author's side it is fitted to his points, or, where he prints none, taken
// as he prints it.
func (j judge) coefficient(a plan.Assert) finding {
	f, x := j.fit(a.Fit)
	phrase := wording.Say("phrase.coefficient", nil, a.Coefficient, a.Fit)
	unit := cmp.Or(a.Bound.Unit, "1")
	if j.author && x.reason != "" {
		c, ok := find(f.Published, func(c plan.Coefficient) bool { return c.Name == a.Coefficient })
		if ok {
			x = fitted{whole: curve{coefficients: []coefficient{{name: c.Name, value: c.Value}}}}
		}
	}
	if x.reason != "" {
		return finding{missing: x.reason}
	}
	v, ok := x.whole.value(a.Coefficient)
	if !ok {
		return missing("no-coefficient", f.Model, a.Coefficient)
	}
	if j.author {
		return judgePublished(exactly(v, v), exactly(1, 1), a.Bound, first, unit, phrase)
	}
	var vs []float64
	for _, c := range x.curves {
		v, _ := c.value(a.Coefficient)
		vs = append(vs, v)
	}
	a.Bound.Unit = unit
	sc := plainScale.over(j.s.per).absolute(unit)
	if a.Coefficient != "r2" {
		return judgeRounds(sc, unit, vs, a.Bound, phrase)
	}
	// R² is a share, and so are the ends of its interval
	sc.from = func(x float64) float64 { return min(max(x, 0), 1) }
	out := judgeRounds(sc, unit, vs, beyondShares(a.Bound), phrase)
	if !out.need.IsZero() {
		out.need = needs(a.Bound)
	}
	return out
}

// beyondShares opens the ends of a bound that no share can pass: there is no
// number to test at them, where the t distribution would still see something
// beyond.
func beyondShares(b plan.Bound) plan.Bound {
	if b.Low <= 0 && !b.LowOpen {
		b.Low = math.Inf(-1)
	}
	if b.High >= 1 && !b.HighOpen {
		b.High = math.Inf(1)
	}
	return b
}

// prediction compares a value with what the fit predicts for it: left /
// predicted.
func (j judge) prediction(a plan.Assert) finding {
	f, x := j.fit(a.Fit)
	if x.reason != "" {
		return finding{missing: x.reason}
	}
	if len(a.At) == 0 {
		return weak("no-prediction")
	}
	at, ok := number(a.At[0])
	if !ok {
		return weak("no-number", a.At[0])
	}
	left := j.operandValues(a.Left)[0]
	var predicted operandValue
	if j.author {
		v := x.whole.at(at)
		predicted = exactly(v, v)
		predicted.text = wording.Amount{Value: v, Unit: left.unit}.String()
	}
	predicted.q, predicted.unit, predicted.label = f.Quantity, left.unit, wording.Text("predicted", a.Fit, a.At[0])
	for i, c := range x.curves {
		predicted.rounds, predicted.values = append(predicted.rounds, x.rounds[i]), append(predicted.values, c.at(at))
	}
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
	for _, p := range a.Parts {
		out = append(out, s.operands(p)...)
	}
	return out
}

// relations are the relations of the plan, on what was measured.
func (s *runData) relations() []result.Relation {
	out := []result.Relation{}
	for _, rel := range s.p.Relations {
		out = append(out, judge{s: s, est: s.headlineName()}.relation(rel))
	}
	return out
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
	for i := range out.Points {
		out.Points[i].RankX, out.Points[i].RankY = rankFromTop(xs, i), rankFromTop(ys, i)
	}
	for _, i := range offLine(xs, ys) {
		out.Points[i].Outlier = true
	}
	c, err := stats.Spearman(xs, ys)
	if err != nil {
		out.Reason = wording.Join(out.Reason, wording.Text("no-correlation", err))
	}
	out.Spearman = c
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
	rank := 1
	for _, x := range xs {
		if x > xs[i] {
			rank++
		}
	}
	return rank
}

// minForOutlier is the least number of points for which one of them can be
// called off the line of the others.
const minForOutlier = 5

// offLineZ is the modified z score beyond which a point is off the line, after
// Iglewicz and Hoaglin (How to Detect and Handle Outliers, 1993).
const offLineZ = 3.5

// offLine finds points off the Theil-Sen line, by the distance of their
// residual from the median residual in units of the scaled median absolute
// deviation. The farthest one is taken out and the line drawn anew, as one
// point off drags the others with it. The word describes the picture; it is not
// a test.
func offLine(xs, ys []float64) (out []int) {
	rest := make([]int, len(xs))
	for i := range rest {
		rest[i] = i
	}
	for len(rest) >= minForOutlier {
		x, y := make([]float64, len(rest)), make([]float64, len(rest))
		for k, i := range rest {
			x[k], y[k] = xs[i], ys[i]
		}
		worst := farthest(x, y)
		if worst < 0 {
			break
		}
		out = append(out, rest[worst])
		rest = slices.Delete(rest, worst, worst+1)
	}
	slices.Sort(out)
	return out
}

// farthest is the index of the point farthest off the line, -1 if none is off.
func farthest(xs, ys []float64) int {
	l, err := stats.FitTheilSen(xs, ys)
	if err != nil {
		return -1
	}
	residuals := make([]float64, len(xs))
	for i := range xs {
		residuals[i] = ys[i] - l.At(xs[i])
	}
	mid := median(residuals)
	worst, far := -1, offLineZ*stats.MADScale*mad(residuals)
	for i, r := range residuals {
		if d := math.Abs(r - mid); d > far && d > slack*math.Abs(ys[i]) {
			worst, far = i, d
		}
	}
	return worst
}
