package analysis

import (
	"fmt"
	"math"
	"slices"

	"dmgbench/internal/plan"
)

// missingValues is the finding of a test with a side that has no value.
func missingValues(sides ...operandValue) (finding, bool) {
	var f finding
	for _, a := range sides {
		f.missing, f.weak = join(f.missing, a.missing), join(f.weak, a.weak)
	}
	return f, f.missing != "" || f.weak != ""
}

// pairTest is a test of two values: op computes the tested number, in unit, from two printed figures; rounds judges
// values where at least one was measured; phrase words what was seen.
type pairTest struct {
	bound  plan.Bound
	unit   string
	op     func(x, y float64) float64
	rounds func(a, b operandValue) finding
	phrase func(string) string
}

// judge tests a and b. A printed value is the same in every round.
func (t pairTest) judge(a, b operandValue) finding {
	if f, bad := missingValues(a, b); bad {
		return f
	}
	var f finding
	switch {
	case a.fixed && b.fixed:
		f = judgePrinted(a, b, t.bound, t.op, t.unit, t.phrase)
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
	t := pairTest{bound: bound, unit: "1", op: divide, phrase: func(v string) string { return timesPhrase(a, b, v) }}
	t.rounds = func(a, b operandValue) finding { return ratioRounds(a, b, bound, t.phrase) }
	return t.judge(a, b)
}

// judgeDifference tests a - b against a bound.
func judgeDifference(a, b operandValue, bound plan.Bound) finding {
	bound.Unit = a.unit
	t := pairTest{bound: bound, unit: a.unit, op: func(x, y float64) float64 { return x - y }, phrase: func(v string) string {
		return fmt.Sprintf("the %s of %s less that of %s is %s", nameOf(a.q), a.label, b.label, v)
	}}
	t.rounds = func(a, b operandValue) finding {
		x, y := paired(a, b)
		if len(x) == 0 {
			return finding{weak: noPairs}
		}
		d := make([]float64, len(x))
		for i := range x {
			d[i] = x[i] - y[i]
		}
		return judgeRounds(plainScale.over(a.per).absolute(a.unit), a.unit, d, bound, t.phrase)
	}
	return t.judge(a, b)
}

// judgeEqual tests whether a and b differ by at most a share of the larger one.
func judgeEqual(a, b operandValue, share float64) finding {
	f := judgeRatio(a, b, plan.Bound{Low: 1 - share, High: 1 / (1 - share), Unit: "1"})
	if f.need != "" {
		f.need = fmt.Sprintf("a difference of at most %s of the larger, a ratio %s", percent(share), f.need)
	}
	return f
}

// judgeApart tests whether a is larger than b by more than a share of a.
func judgeApart(a, b operandValue, share float64) finding {
	return judgeRatio(a, b, plan.Bound{Low: 1 / (1 - share), High: math.Inf(1), LowOpen: true, Unit: "1"})
}

// judgeBound tests a value itself.
func judgeBound(a operandValue, bound plan.Bound) finding {
	if f, bad := missingValues(a); bad {
		return f
	}
	bound.Unit = a.unit
	phrase := func(v string) string { return fmt.Sprintf("the %s of %s is %s", nameOf(a.q), a.label, v) }
	if a.fixed {
		one := operandValue{fixed: true, low: 1, high: 1, unit: "1"}
		f := judgePrinted(a, one, bound, func(x, _ float64) float64 { return x }, a.unit, phrase)
		f.evidence = slices.Concat(evidenceOf(a), f.evidence)
		return f
	}
	f := judgeRounds(scaleOf(a.unit, a.values).over(a.per).absolute(a.unit), a.unit, a.values, bound, phrase)
	f.evidence = slices.Concat(evidenceOf(a), f.evidence)
	return f
}

const noPairs = "no round measured both sides"

// ratioRounds compares paired rounds through their logarithms. Where a value is
// zero there is no logarithm: two zeros are equal, and with one zero there is no ratio.
func ratioRounds(a, b operandValue, bound plan.Bound, phrase func(string) string) finding {
	x, y := paired(a, b)
	if len(x) == 0 {
		return finding{weak: noPairs}
	}
	r := make([]float64, len(x))
	for i := range x {
		switch {
		case x[i] == y[i]:
			r[i] = 1
		case x[i] <= 0 || y[i] <= 0 || math.IsInf(y[i], 0):
			if math.IsInf(y[i], 1) || x[i] == 0 && y[i] > 0 {
				r[i] = 0
			} else if x[i] > 0 {
				r[i] = math.Inf(1)
			} else {
				r[i] = math.NaN()
			}
		default:
			r[i] = x[i] / y[i]
		}
	}
	sc := logScale.over(firstReplica(a.per, b.per))
	if a.fixed || b.fixed {
		sc = sc.absolute(a.unit)
	}
	if slices.Min(r) <= 0 || math.IsInf(slices.Max(r), 0) || slices.ContainsFunc(r, math.IsNaN) {
		return judgeEdge(sc, r, bound, phrase)
	}
	return judgeRounds(sc, "1", r, bound, phrase)
}

// judgeEdge judges ratios when some are zero or infinite: they decide only
// where all rounds agree.
func judgeEdge(sc scale, r []float64, bound plan.Bound, phrase func(string) string) finding {
	f := finding{sampled: true, need: boundText(bound), p: 1, per: sc.per}
	in := 0
	for _, v := range r {
		if holdsAbout(bound, v) || math.IsInf(v, 1) && math.IsInf(bound.High, 1) {
			in++
		}
	}
	what := "no finite number of"
	if slices.Max(r) == 0 {
		what = "0"
	}
	f.saw = fmt.Sprintf("%s in %s", phrase(what), sc.times(len(r)))
	f.evidence = []string{f.saw}
	f.few = len(r) < minRounds
	switch {
	case slices.ContainsFunc(r, math.IsNaN):
		return finding{weak: "values that are not positive have no ratio"}
	case in == len(r):
		f.dir, f.p = 1, 0
	case in == 0:
		f.dir, f.p = -1, 0
	}
	return f
}

// paired are the values of the rounds that both sides have.
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
	out := operandValue{fixed: true, q: like.q, unit: like.unit, per: like.per, rounds: like.rounds, values: make([]float64, len(like.rounds))}
	for i := range out.values {
		out.values[i] = v
	}
	return out
}

// judgeEnds judges a measured side against both ends of a printed one: a verdict
// has to hold whatever the true figure inside the printed interval is, that of
// "about" being one that it can mean.
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
		out.gap = fmt.Sprintf("and the printed %q leaves it open", f.text)
	}
	out.evidence = slices.Concat(low.evidence, high.evidence)
	return out
}

func divide(x, y float64) float64 {
	switch {
	case x == y && !math.IsInf(x, 0):
		return 1
	case math.IsInf(y, 0) && math.IsInf(x, 0):
		return math.NaN()
	}
	return x / y
}

// evidenceOf gives the value of each side with n and method.
func evidenceOf(sides ...operandValue) []string {
	var out []string
	for _, a := range sides {
		if a.q == "" {
			continue
		}
		head := fmt.Sprintf("%s of %s: ", nameOf(a.q), a.label)
		if a.fixed {
			out = append(out, head+a.text+", published")
			continue
		}
		out = append(out, head+a.describe())
	}
	return out
}

// describe gives the value of a measured side with interval, n and method.
func (a operandValue) describe() string {
	text := show(a.headline(), a.unit)
	sc := scaleOf(a.unit, a.values).over(a.per)
	if iv, err := sc.interval(a.values); err == nil {
		text += fmt.Sprintf(" (95 %% interval %s, %s)", showSpan(iv.Low, iv.High, a.unit), sc.name+sc.per.kept())
	}
	text += ", n = " + plural(len(a.rounds), a.per.name())
	if perFile(a.q) {
		text += fmt.Sprintf(", %s, %s", plural(a.n, "file"), a.est)
	}
	return text
}
