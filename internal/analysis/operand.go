package analysis

import (
	"cmp"
	"math"
	"slices"

	"dmgbench/internal/plan"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
)

// operandValue is one operand of a claim with its value: one number a round
// where it was measured, or an interval that no round changes where it was
// published.
type operandValue struct {
	label string
	q     plan.Quantity
	unit  string

	rounds []int
	values []float64
	// Files or steps of the values
	n   int
	est string
	// What is replicated: round or session
	per replica

	fixed bool
	span
	// "about": counts as any value within the rounding
	about bool
	// As printed
	text string

	// Why there is nothing: not measured, or not published
	missing string
	// Why the measured rounds or published figures give no number
	weak string
}

// span is an interval of numbers.
type span struct {
	low, high         float64
	lowOpen, highOpen bool
}

// gatherValues is the mean of cells in the rounds that all of them have. Where
// the session is replicated, its value is the centre of its rounds.
func gatherValues(q plan.Quantity, cells []cell, est string, f plan.Selector) operandValue {
	out := roundValues(q, cells, est, f)
	if out.per.unit != perSession {
		return out
	}
	sessions := mapped(out.rounds, func(r int) int { return out.per.replicate(cells[0].sub.runs, r) })
	groups := groupBy(sessions, out.values)
	out.rounds = sortedKeys(groups)
	out.values = mapped(out.rounds, func(session int) float64 {
		if est == latency { // may be negative, where it is noise
			return mean(groups[session])
		}
		return centre(out.unit, groups[session])
	})
	return out
}

// roundValues is the mean of cells in the rounds that all of them have.
func roundValues(q plan.Quantity, cells []cell, est string, f plan.Selector) operandValue {
	out := operandValue{q: q, unit: q.Unit(), est: est}
	sum, have := map[int]float64{}, map[int]int{}
	for _, c := range cells {
		out.per = c.sub.per
		rounds, steps := c.rounds()
		for _, r := range rounds {
			x := c.sub.stepsValue(q, est, steps[r], f)
			if x.err != nil {
				out.weak = wording.Text("of-case", c.sub.c.ID, x.err)
				continue
			}
			sum[r] += x.v
			have[r]++
			out.n += x.n
		}
	}
	for _, r := range sortedKeys(have) {
		if v := sum[r] / float64(len(cells)); have[r] == len(cells) && finite(v) {
			out.rounds, out.values = append(out.rounds, r), append(out.values, v)
		}
	}
	switch {
	case isPerFile(q) && out.weak != "":
		// A line that rises in some rounds only: to keep those would be to
		// choose by the outcome.
		out.rounds, out.values = nil, nil
	case len(out.rounds) > 0:
		out.weak = ""
	case out.weak == "":
		out.weak = wording.Text("no-complete-round")
	}
	return out
}

// figureValue is a printed figure as the interval that it means.
func figureValue(f plan.Figure) operandValue {
	out := operandValue{fixed: true, unit: f.Unit, span: span{low: f.Low, high: f.High}, text: f.Text,
		about: f.Kind == "about"}
	switch {
	case f.Kind == "below" && f.Unit == "1" && f.High <= 0:
		out.low, out.highOpen = math.Inf(-1), true
	case f.Kind == "below": // no rate, time or size is negative
		out.low, out.highOpen = 0, true
	case f.Kind == "above":
		out.high, out.lowOpen = math.Inf(1), true
	}
	return out
}

// exactly is a fixed pure number, or an interval of them.
func exactly(low, high float64) operandValue {
	return operandValue{fixed: true, span: span{low: low, high: high}, unit: "1"}
}

// headline is the central value of an operand: geometric mean of the rounds for
// rates and times, the mean otherwise; the middle of a printed interval.
func (a operandValue) headline() float64 {
	switch {
	case !a.fixed:
		return centre(a.unit, a.values)
	case math.IsInf(a.high, 1):
		return a.low
	case a.highOpen:
		return a.high
	}
	return (a.low + a.high) / 2
}

// scale is how the values of the operand are averaged.
func (a operandValue) scale() scale { return scaleOf(a.unit, a.values).over(a.per) }

// describe gives the value of a measured operand with interval, n and method,
// or that of a published one.
func (a operandValue) describe() wording.Message {
	if a.fixed {
		return wording.Say("value.published", a.text)
	}
	sc := a.scale()
	value, n := wording.Amount{Value: a.headline(), Unit: a.unit}, sc.times(len(a.rounds))
	out := wording.Say("value", value, n)
	if iv, err := sc.interval(a.values); err == nil {
		span := wording.Span{Low: iv.Low, High: iv.High, Unit: a.unit}
		out = wording.Say("value.interval", value, span, sc.method(), n)
	}
	if isPerFile(a.q) {
		out = wording.Say("value.files", out, wording.Count{N: a.n, Noun: "file"}, a.est)
	}
	return out
}

// missingValues is the finding of a test with an operand that has no value.
func missingValues(operands ...operandValue) (f finding, fails bool) {
	for _, a := range operands {
		f.missing, f.weak = wording.Join(f.missing, a.missing), wording.Join(f.weak, a.weak)
	}
	return f, f.fails()
}

// evidenceOf gives the value of each operand with n and method.
func evidenceOf(operands ...operandValue) (out []wording.Message) {
	for _, a := range operands {
		if a.q != "" {
			out = append(out, wording.Say("evidence.operand", QuantityName(a.q), a.label, a.describe()))
		}
	}
	return out
}

// judgePair tests a number that op computes from two operands, on a scale. A
// printed value is the same in every round. Where a ratio is zero it has no
// logarithm: two zeros are equal, and with one zero there is no ratio.
func judgePair(
	a, b operandValue, bound plan.Bound, sc scale, op func(x, y float64) float64, phrase wording.Message,
) finding {
	f, bad := missingValues(a, b)
	isRatio := sc.name == logScale.name
	sc = sc.over(cmp.Or(a.per, b.per))
	if a.fixed || b.fixed || !isRatio {
		sc = sc.absolute(a.unit)
	}
	rounds := func(values []float64) finding {
		switch {
		case len(values) == 0:
			return weak("no-pairs")
		case isRatio && (slices.ContainsFunc(values, math.IsNaN) || slices.Min(values) < 0):
			return weak("not-positive.ratio")
		case isRatio && (slices.Min(values) == 0 || !finite(values...)):
			return judgeEdge(sc, values, bound, phrase)
		}
		return judgeRounds(sc, values, bound, phrase)
	}
	switch {
	case bad:
		return f
	case a.fixed && b.fixed:
		f = judgePublished(a, b, bound, op, phrase)
	case a.fixed:
		f = judgeEnds(a, func(v float64) finding {
			return rounds(mapped(b.values, func(y float64) float64 { return op(v, y) }))
		})
	case b.fixed:
		f = judgeEnds(b, func(v float64) finding {
			return rounds(mapped(a.values, func(x float64) float64 { return op(x, v) }))
		})
	default:
		var values []float64
		for i, r := range a.rounds {
			if j, ok := slices.BinarySearch(b.rounds, r); ok {
				values = append(values, op(a.values[i], b.values[j]))
			}
		}
		f = rounds(values)
	}
	f.evidence = slices.Concat(evidenceOf(a, b), f.evidence)
	return f
}

// judgeRatio tests a / b against a bound, rounds through their logarithms.
func judgeRatio(a, b operandValue, bound plan.Bound) finding {
	bound.Unit = "1"
	phrase := wording.Say("phrase.ratio", nil, QuantityName(a.q), a.label, QuantityName(b.q), b.label)
	if a.q == b.q && isPerFile(a.q) {
		phrase = wording.Say("phrase.ratio-rate", nil, a.label, string(a.q), b.label)
	}
	return judgePair(a, b, bound, logScale, divide, phrase)
}

// divide is x / y, of equal finite numbers 1, also of zeros.
func divide(x, y float64) float64 {
	if x == y && !math.IsInf(x, 0) {
		return 1
	}
	return x / y
}

// judgeEdge judges ratios when some are zero or infinite: they decide only
// where all rounds agree.
func judgeEdge(sc scale, r []float64, bound plan.Bound, phrase wording.Message) finding {
	f := finding{sampled: true, need: needs(bound), p: 1, per: sc.per, few: len(r) < minRounds}
	f.saw = wording.Say("seen.few", phrase.With(wording.Span{Low: slices.Min(r), High: slices.Max(r), Unit: "1"}),
		sc.times(len(r)))
	f.evidence = []wording.Message{f.saw}
	isIn := func(v float64) bool { return satisfies(bound, v) }
	isOut := func(v float64) bool { return !isIn(v) }
	switch {
	case !slices.ContainsFunc(r, isOut):
		f.dir, f.p = 1, 0
	case !slices.ContainsFunc(r, isIn):
		f.dir, f.p = -1, 0
	}
	return f
}

// judgeDifference tests a - b against a bound.
func judgeDifference(a, b operandValue, bound plan.Bound) finding {
	bound.Unit = a.unit
	return judgePair(a, b, bound, plainScale, func(x, y float64) float64 { return x - y },
		wording.Say("phrase.difference", nil, QuantityName(a.q), a.label, b.label))
}

// judgeEnds judges a measured value against both ends of a printed one: a
// verdict has to hold whatever the true figure inside the printed interval is,
// the interval of "about" being all that it can mean.
func judgeEnds(f operandValue, judge func(v float64) finding) finding {
	w := f.widened()
	low := judge(w.low)
	if w.low == w.high {
		return low
	}
	high := judge(w.high)
	out := low
	if high.p > low.p {
		out = high
	}
	if low.dir != high.dir {
		out.dir, out.p = 0, 1
		out.gap = wording.Say("gap.printed", f.text)
	}
	out.evidence = slices.Concat(low.evidence, high.evidence)
	return out
}

// judgeFigure judges one printed figure; see [judgePublished].
func judgeFigure(a operandValue, bound plan.Bound, phrase wording.Message) finding {
	return judgePublished(a, exactly(1, 1), bound, func(x, _ float64) float64 { return x }, phrase)
}

// aboutTolerance is how far the true value of a figure printed as "about" may
// be from it, as a share.
const aboutTolerance = 0.05

// judgePublished judges two printed figures. A figure means an interval: exact
// ones for a point, "below", "above" and ranges for all their values, and every
// one of these has to satisfy the bound. "about 2" means 2 ± 5 %, and one value
// that satisfies the bound is enough: the author rounded, and the claim is the
// author's.
func judgePublished(
	a, b operandValue, bound plan.Bound, op func(x, y float64) float64, phrase wording.Message,
) finding {
	f := finding{need: needs(bound)}
	wide := imageOf(a.widened(), b.widened(), op)
	saw := phrase.With(wording.Span{Low: wide.low, High: wide.high, Unit: bound.Unit})
	f.saw = wording.Say("as-published.seen", saw)
	f.evidence = []wording.Message{f.saw}
	switch {
	case math.IsNaN(wide.low):
		return finding{weak: wording.Text("published-open"), evidence: f.evidence}
	case wide.isInside(bound):
		f.dir = 1
		return f
	case wide.high < bound.Low, wide.low > bound.High, wide.high == bound.Low && (wide.lowOpen || bound.LowOpen),
		wide.low == bound.High && (wide.lowOpen || bound.HighOpen):
		f.dir, f.gap = -1, gap(bound, wide.low, wide.high)
		return f
	}
	for _, x := range a.readings() {
		for _, y := range b.readings() {
			if imageOf(x, y, op).isInside(bound) {
				f.dir, f.saw = 1, wording.Say("as-published.about", saw, wording.Percent(aboutTolerance))
				return f
			}
		}
	}
	f.p, f.gap = 1, gap(bound, wide.low, wide.high)
	return f
}

// widened is everything that the figure can mean.
func (a operandValue) widened() span {
	s := a.span
	if a.about {
		d := aboutTolerance * math.Abs(a.low)
		s.low, s.high = a.low-d, a.high+d
	}
	return s
}

// readings are what a figure may be read as: its whole interval and, of "about",
// the values from one end of it to the other.
func (a operandValue) readings() []span {
	w := a.widened()
	out := []span{w}
	const steps = 20
	for i := 0; a.about && i <= steps; i++ {
		v := w.low + (w.high-w.low)*float64(i)/steps
		out = append(out, span{low: v, high: v})
	}
	return out
}

// imageOf is the interval of op over two intervals, NaN where it has no values;
// where an end is open, both are. op is monotone in each of its arguments (a
// difference, or a ratio of values that are not negative), so that the ends
// decide.
func imageOf(a, b span, op func(x, y float64) float64) span {
	open := a.lowOpen || a.highOpen || b.lowOpen || b.highOpen
	out := span{math.Inf(1), math.Inf(-1), open, open}
	for _, x := range []float64{a.low, a.high} {
		for _, y := range []float64{b.low, b.high} {
			v := op(x, y)
			if math.IsNaN(v) {
				return span{low: v, high: v}
			}
			out.low, out.high = min(out.low, v), max(out.high, v)
		}
	}
	return out
}

// isInside reports whether the whole interval satisfies the bound. An open end
// may touch a strict bound.
func (s span) isInside(b plan.Bound) bool {
	if s.lowOpen && s.low < s.high {
		return s.low >= b.Low && s.high <= b.High
	}
	return satisfies(b, s.low) && satisfies(b, s.high)
}

// satisfies reports whether a number is within a bound, up to rounding; an
// infinite one is where the bound has no end there.
func satisfies(b plan.Bound, v float64) bool {
	return holdsAbout(b, v) || math.IsInf(v, 1) && math.IsInf(b.High, 1) || math.IsInf(v, -1) && math.IsInf(b.Low, -1)
}

// estimate is the centre of an operand's rounds with its t interval, which an
// extreme does not have.
func (a operandValue) estimate(name string) result.Estimate {
	sc := a.scale()
	// May be negative, where it is noise
	if name == latency {
		a.unit, sc = "s", plainScale.over(a.per)
	}
	e := result.Estimate{Name: name, Value: sc.centre(a.values), Unit: a.unit, N: a.n}
	if name == minimum || name == maximum {
		e.Why = wording.Text("extreme")
		return e
	}
	sc.roundInterval(&e, a.values)
	return e
}

// roundInterval gives an estimate the t interval of its rounds.
func (sc scale) roundInterval(e *result.Estimate, values []float64) {
	iv, err := sc.interval(values)
	if err != nil {
		e.Why = wording.Text("few-rounds.interval", sc.times(len(values)), minRounds)
		return
	}
	if e.CI = ciOf(iv, sc.per.name(), sc.per.method(sc.name)); e.CI == nil {
		e.Why = wording.Text("not-finite")
	}
}
