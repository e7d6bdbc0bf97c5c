package analysis

import (
	"fmt"
	"math"
	"slices"

	"dmgbench/internal/plan"
	"dmgbench/internal/stats"
)

// spread bounds (max - min) / mean over an axis.
//
// The spread of single rounds contains their scatter and comes out too large. It
// may therefore only show that a spread is small. That it is large has to show in
// two given points, the largest and the smallest by the centres of all rounds,
// which keep their places in every round; having chosen them by looking costs a
// factor of the number of pairs (Bonferroni).
func (j judge) spread(op plan.Operand, axis string, bound plan.Bound) finding {
	points, bad := j.along(op, axis)
	if bad.missing != "" || bad.weak != "" {
		return bad
	}
	bound.Unit = "1"
	phrase := func(v string) string {
		return fmt.Sprintf("over %s the %s spreads by %s of its mean", axis, nameOf(op.Quantity), v)
	}
	var f finding
	if points[0].fixed {
		f = printedSpread(points, bound, phrase)
	} else {
		f = spreadRounds(points, bound, phrase)
	}
	f.evidence = append(listed(points), f.evidence...)
	return f
}

// notNegative is the plain scale for what cannot be below zero.
var notNegative = scale{to: plainScale.to, from: func(x float64) float64 { return max(0, x) }, name: plainScale.name}

func spreadRounds(points []point, bound plan.Bound, phrase func(string) string) finding {
	rows := grid(points)
	if len(rows) == 0 {
		return finding{weak: "no round measured all points"}
	}
	top, bottom := ends(rows)
	var whole, pair []float64
	for _, row := range rows {
		m, err := stats.Mean(row)
		if err != nil || m == 0 {
			return finding{weak: "the mean is zero"}
		}
		whole = append(whole, (slices.Max(row)-slices.Min(row))/math.Abs(m))
		pair = append(pair, (row[top]-row[bottom])/math.Abs(m))
	}
	pairs := float64(len(points) * (len(points) - 1) / 2)
	f := judgeRounds(notNegative.over(points[0].per), "1", pair, bound, phrase)
	if f.few || f.weak != "" {
		return f
	}
	f.p = 0
	sc := plainScale.over(points[0].per)
	small := func(end float64) float64 { // that the spread is below end
		if sc.centre(whole) >= end {
			return 1
		}
		return sc.pAt(whole, end)
	}
	large := func(end float64) float64 { return min(1, pairs*sc.pAt(pair, end)) }
	switch seen := plainScale.centre(pair); {
	case f.dir > 0 && bound.Low > 0:
		f.p = max(large(bound.Low), small(bound.High))
	case f.dir > 0:
		f.p = small(bound.High)
	case seen > bound.High || bound.HighOpen && seen == bound.High:
		f.p = large(bound.High)
	default:
		f.p = small(bound.Low)
	}
	if f.p > family && (f.gap == "" || f.dir < 0) {
		f.gap = "and the rounds scatter too much to tell"
	}
	f.evidence = append(f.evidence, fmt.Sprintf("spread of single rounds, which contains their scatter: %s; %s",
		showSpan(slices.Min(whole), slices.Max(whole), "1"), SayP(f.p)))
	return f
}

// ends are the points with the largest and the smallest mean over the rounds.
func ends(rows [][]float64) (top, bottom int) {
	sums := make([]float64, len(rows[0]))
	for _, row := range rows {
		for i, v := range row {
			sums[i] += v
		}
	}
	for i, v := range sums {
		if v > sums[top] {
			top = i
		}
		if v < sums[bottom] {
			bottom = i
		}
	}
	return top, bottom
}

func printedSpread(points []point, bound plan.Bound, phrase func(string) string) finding {
	var lows, highs, mids []float64
	for _, p := range points {
		w := p.widened()
		lows, highs, mids = append(lows, w.low), append(highs, w.high), append(mids, p.headline())
	}
	m, err := stats.Mean(mids)
	if err != nil || m == 0 || math.IsInf(slices.Max(highs), 0) {
		return finding{weak: "open figures have no spread"}
	}
	low := max(0, slices.Max(lows)-slices.Min(highs)) / math.Abs(m)
	high := (slices.Max(highs) - slices.Min(lows)) / math.Abs(m)
	one := side{fixed: true, low: 1, high: 1}
	f := printed(side{fixed: true, low: low, high: high}, one, bound, func(x, _ float64) float64 { return x }, "1", phrase)
	if nominal := (slices.Max(mids) - slices.Min(mids)) / math.Abs(m); f.dir == 0 && holdsAbout(bound, nominal) &&
		!slices.ContainsFunc(points, func(p point) bool { return !p.about && p.low != p.high }) {
		f.dir, f.p, f.gap = 1, 0, ""
	}
	return f
}
