package analysis

import (
	"math"
	"slices"

	"dmgbench/internal/plan"
	"dmgbench/internal/report/wording"
)

// pairTest is a test of two values: op computes the tested number, in unit,
// from two printed figures; rounds judges values where at least one was
// measured.
type pairTest struct {
	bound  plan.Bound
	unit   string
	op     func(x, y float64) float64
	rounds func(a, b operandValue) finding
	phrase wording.Message
}

// judge tests a and b. A printed value is the same in every round.
func (t pairTest) judge(a, b operandValue) finding {
	if f, bad := missingValues(a, b); bad {
		return f
	}
	var f finding
	switch {
	case a.fixed && b.fixed:
		f = judgePublished(a, b, t.bound, t.op, t.unit, t.phrase)
	case a.fixed:
		f = judgeEnds(a, func(v float64) finding { return t.rounds(constantRounds(v, b), b) })
	case b.fixed:
		f = judgeEnds(b, func(v float64) finding { return t.rounds(a, constantRounds(v, a)) })
	default:
		f = t.rounds(a, b)
	}
	f.evidence = slices.Concat(evidenceOf(a, b), f.evidence)
	return f
}

// judgeRatio tests a / b against a bound.
func judgeRatio(a, b operandValue, bound plan.Bound) finding {
	t := pairTest{bound: bound, unit: "1", op: divide, phrase: ratioPhrase(a, b)}
	t.rounds = func(a, b operandValue) finding { return ratioRounds(a, b, bound, t.phrase) }
	return t.judge(a, b)
}

// ratioPhrase compares a with b, their ratio to be filled in.
func ratioPhrase(a, b operandValue) wording.Message {
	switch {
	case a.q != b.q:
		return wording.Say("phrase.ratio-of", nil, QuantityName(a.q), a.label, QuantityName(b.q), b.label)
	case isPerFile(a.q):
		return wording.Say("phrase.ratio-rate", nil, a.label, string(a.q), b.label)
	}
	return wording.Say("phrase.ratio", nil, QuantityName(a.q), a.label, b.label)
}

// judgeDifference tests a - b against a bound.
func judgeDifference(a, b operandValue, bound plan.Bound) finding {
	bound.Unit = a.unit
	t := pairTest{bound: bound, unit: a.unit, op: func(x, y float64) float64 { return x - y },
		phrase: wording.Say("phrase.difference", nil, QuantityName(a.q), a.label, b.label)}
	t.rounds = func(a, b operandValue) finding {
		x, y := paired(a, b)
		if len(x) == 0 {
			return weak("no-pairs")
		}
		for i := range x {
			x[i] -= y[i]
		}
		return judgeRounds(plainScale.over(a.per).absolute(a.unit), a.unit, x, bound, t.phrase)
	}
	return t.judge(a, b)
}

// ratioRounds compares paired rounds through their logarithms. Where a value is
// zero there is no logarithm: two zeros are equal, and with one zero there is
// no ratio.
func ratioRounds(a, b operandValue, bound plan.Bound, phrase wording.Message) finding {
	x, y := paired(a, b)
	if len(x) == 0 {
		return weak("no-pairs")
	}
	sc := logScale.over(firstReplica(a.per, b.per))
	if a.fixed || b.fixed {
		sc = sc.absolute(a.unit)
	}
	for i := range x {
		x[i] = divide(x[i], y[i])
	}
	switch {
	case slices.ContainsFunc(x, math.IsNaN) || slices.Min(x) < 0:
		return weak("not-positive.ratio")
	case slices.Min(x) == 0 || !finite(x...):
		return judgeEdge(sc, x, bound, phrase)
	}
	return judgeRounds(sc, "1", x, bound, phrase)
}

// judgeEdge judges ratios when some are zero or infinite: they decide only
// where all rounds agree.
func judgeEdge(sc scale, r []float64, bound plan.Bound, phrase wording.Message) finding {
	f := finding{sampled: true, need: needs(bound), p: 1, per: sc.per, few: len(r) < minRounds}
	seen := wording.Span{Low: slices.Min(r), High: slices.Max(r), Unit: "1"}
	f.saw = wording.Say("seen.few", phrase.With(seen), sc.times(len(r)))
	f.evidence = []wording.Message{f.saw}
	in := 0
	for _, v := range r {
		if holdsAbout(bound, v) || math.IsInf(v, 1) && math.IsInf(bound.High, 1) {
			in++
		}
	}
	switch in {
	case len(r):
		f.dir, f.p = 1, 0
	case 0:
		f.dir, f.p = -1, 0
	}
	return f
}

// paired are the values of the rounds that both operands have.
func paired(a, b operandValue) (x, y []float64) {
	for i, r := range a.rounds {
		if j, ok := slices.BinarySearch(b.rounds, r); ok {
			x, y = append(x, a.values[i]), append(y, b.values[j])
		}
	}
	return x, y
}

// constantRounds gives one number to every round of like.
func constantRounds(v float64, like operandValue) operandValue {
	return operandValue{fixed: true, q: like.q, unit: like.unit, per: like.per, rounds: like.rounds,
		values: slices.Repeat([]float64{v}, len(like.rounds))}
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

func first(x, _ float64) float64 { return x }

// divide is x / y, of equal finite numbers 1, also of zeros.
func divide(x, y float64) float64 {
	switch {
	case x == y && !math.IsInf(x, 0):
		return 1
	case math.IsInf(y, 0) && math.IsInf(x, 0):
		return math.NaN()
	}
	return x / y
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

// aboutTolerance is how far the true value of a figure printed as "about" may
// be from it, as a share.
const aboutTolerance = 0.05

// judgePublished judges two printed figures. A figure means an interval: exact
// ones for a point, "below", "above" and ranges for all their values, and every
// one of these has to satisfy the bound. "about 2" means 2 ± 5 %, and one value
// that satisfies the bound is enough: the author rounded, and the claim is the
// author's.
func judgePublished(
	a, b operandValue, bound plan.Bound, op func(x, y float64) float64, unit string, phrase wording.Message,
) finding {
	bound.Unit = unit
	f := finding{need: needs(bound)}
	wide := imageOf(a.widened(), b.widened(), op)
	saw := phrase.With(wording.Span{Low: wide.low, High: wide.high, Unit: unit})
	f.saw = wording.Say("as-published.seen", saw)
	f.evidence = []wording.Message{f.saw}
	if math.IsNaN(wide.low) {
		return finding{weak: wording.Text("published-open"), evidence: f.evidence}
	}
	switch {
	case wide.isInside(bound):
		f.dir = 1
		return f
	case wide.isOutside(bound):
		f.dir, f.gap = -1, gap(bound, wide.low, wide.high)
		return f
	}
	for _, x := range a.readings() {
		for _, y := range b.readings() {
			if imageOf(x, y, op).isInside(bound) {
				f.dir = 1
				if a.about || b.about {
					f.saw = wording.Say("as-published.about", saw, wording.Percent(aboutTolerance))
				}
				return f
			}
		}
	}
	f.p, f.gap = 1, gap(bound, wide.low, wide.high)
	return f
}

// span is an interval of numbers; open means that neither end belongs to it.
type span struct {
	low, high float64
	open      bool
}

// widened is everything that the figure can mean.
func (a operandValue) widened() span {
	s := span{a.low, a.high, a.lowOpen || a.highOpen}
	if a.about {
		d := aboutTolerance * math.Abs(a.low)
		s.low, s.high = a.low-d, a.high+d
	}
	return s
}

// readings are the values that an "about" may be read as; anything else has one
// reading, the whole interval.
func (a operandValue) readings() []span {
	w := a.widened()
	if !a.about {
		return []span{w}
	}
	const steps = 20
	out := []span{{low: a.low, high: a.low}}
	for i := range steps + 1 {
		v := w.low + (w.high-w.low)*float64(i)/steps
		out = append(out, span{low: v, high: v})
	}
	return out
}

// imageOf is the interval of op over two intervals, NaN where it has no values.
// op is monotone in each of its arguments (a difference, or a ratio of values
// that are not negative), so that the ends decide.
func imageOf(a, b span, op func(x, y float64) float64) span {
	out := span{math.Inf(1), math.Inf(-1), a.open || b.open}
	for _, x := range []float64{a.low, a.high} {
		for _, y := range []float64{b.low, b.high} {
			v := op(x, y)
			if math.IsNaN(v) {
				return span{math.NaN(), math.NaN(), true}
			}
			out.low, out.high = min(out.low, v), max(out.high, v)
		}
	}
	return out
}

// isInside reports whether the whole interval satisfies the bound. An open end
// may touch a strict bound.
func (s span) isInside(b plan.Bound) bool {
	if s.open && s.low < s.high {
		return s.low >= b.Low && s.high <= b.High
	}
	ok := func(v float64) bool {
		return holdsAbout(b, v) || math.IsInf(v, 1) && math.IsInf(b.High, 1) ||
			math.IsInf(v, -1) && math.IsInf(b.Low, -1)
	}
	return ok(s.low) && ok(s.high)
}

// isOutside reports whether no value of the interval satisfies the bound.
func (s span) isOutside(b plan.Bound) bool {
	if s.high < b.Low || s.low > b.High {
		return true
	}
	return s.high == b.Low && (s.open || b.LowOpen) || s.low == b.High && (s.open || b.HighOpen)
}
