package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"dmgbench/internal/plan"
	"dmgbench/internal/stats"
)

// point is one value of an axis with the operand there.
type point struct {
	at string
	operandValue
}

// along spreads an operand over the values of an axis, in the order of the axis.
func (j judge) along(op plan.Operand, axis string) (points []point, bad finding) {
	if j.author || op.Published {
		points, bad = j.s.printedAlong(op, axis)
	} else if missing := j.unmeasured(op); missing != "" {
		return nil, finding{missing: missing}
	} else {
		est := cmp.Or(op.Statistic, j.est)
		points, bad = j.s.measuredAlong(op, axis, est)
	}
	if bad.missing != "" || bad.weak != "" {
		return nil, bad
	}
	var sides []operandValue
	for i := range points {
		points[i].label = choiceText(axis, []string{points[i].at})
		if points[i].label == "" {
			points[i].label = fmt.Sprintf("no %s", axis)
		}
		sides = append(sides, points[i].operandValue)
	}
	if f, bad := missingValues(sides...); bad {
		return nil, f
	}
	if len(points) < 2 {
		return nil, finding{missing: fmt.Sprintf("only one value of %s is there", axis)}
	}
	return points, finding{}
}

func (s *runData) measuredAlong(op plan.Operand, axis, est string) ([]point, finding) {
	cells, missing := s.cells(op.Quantity, op.Where)
	if missing != "" {
		return nil, finding{missing: missing}
	}
	if axis == "file_size" || axis == "set" {
		return samplesAlong(op, cells, axis, est), finding{}
	}
	groups := map[string][]cell{}
	var seen []string
	for _, c := range cells {
		at, ok := c.at(axis)
		if !ok {
			return nil, finding{weak: fmt.Sprintf("%q is not an axis of this plan", axis)}
		}
		if _, ok := groups[at]; !ok {
			seen = append(seen, at)
		}
		groups[at] = append(groups[at], c)
	}
	var out []point
	for _, at := range s.inOrder(axis, seen) {
		out = append(out, point{at, gatherValues(op.Quantity, groups[at], est, filterOf(op.Where))})
	}
	return out, finding{}
}

// at is the value of an axis for the cell.
func (c cell) at(axis string) (string, bool) {
	switch axis {
	case "phase":
		return c.key.phase, true
	case "cycle":
		return strconv.Itoa(c.key.cycle), true
	}
	return c.sub.value(axis)
}

// samplesAlong splits the files of cells by size or set.
func samplesAlong(op plan.Operand, cells []cell, axis, est string) []point {
	values := map[int64]bool{}
	f := filterOf(op.Where)
	for _, c := range cells {
		for _, st := range c.steps() {
			for _, sm := range f.apply(st.Samples) {
				if axis == "set" {
					values[int64(sm.Set)] = true
				} else {
					values[sm.Bytes] = true
				}
			}
		}
	}
	var out []point
	for _, v := range slices.Sorted(maps.Keys(values)) {
		text := sizeText(v)
		if axis == "set" {
			text = strconv.FormatInt(v, 10)
		}
		own := sampleFilter{}
		if f != nil {
			own = *f
		}
		choice := plan.Choice{Key: axis, Values: []string{text}}
		if axis == "set" {
			own.set = &choice
		} else {
			own.size = &choice
		}
		out = append(out, point{text, gatherValues(op.Quantity, cells, est, &own)})
	}
	return out
}

// inOrder sorts values of an axis: as the plan lists them, numbers and sizes by
// their worth, phases as the protocol has them.
func (s *runData) inOrder(axis string, values []string) []string {
	out := slices.Clone(values)
	rank := func(v string) int {
		return slices.IndexFunc(s.axisValues(axis), func(w string) bool { return sameValue(axis, v, w) })
	}
	slices.SortStableFunc(out, func(a, b string) int {
		if ra, rb := rank(a), rank(b); ra != rb {
			return ra - rb
		}
		x, okX := number(a)
		y, okY := number(b)
		if okX && okY && x != y {
			if x < y {
				return -1
			}
			return 1
		}
		return 0
	})
	return out
}

// axisValues are the values of an axis as the plan lists them.
func (s *runData) axisValues(axis string) []string {
	for _, a := range s.p.Axes {
		if a.Key == axis {
			return a.Values
		}
	}
	for _, m := range s.p.Manual {
		if m.Name == axis {
			return m.Values
		}
	}
	if axis == "phase" {
		var out []string
		for _, b := range s.p.Protocol {
			out = phasesOf(out, b.Steps)
		}
		return out
	}
	return nil
}

func phasesOf(out []string, steps []plan.Step) []string {
	for _, st := range steps {
		if st.Phase != "" && !slices.Contains(out, st.Phase) {
			out = append(out, st.Phase)
		}
		out = phasesOf(out, st.Steps)
	}
	return out
}

// extreme wants the largest (smallest) value at one of the given points.
func (j judge) extreme(a plan.Assert) finding {
	points, bad := j.along(a.Left, a.Along)
	if bad.missing != "" || bad.weak != "" {
		return bad
	}
	isAt := func(p point) bool {
		return slices.ContainsFunc(a.At, func(v string) bool { return sameValue(a.Along, v, p.at) })
	}
	better := func(x, y operandValue) finding {
		if a.Direction == "smallest" {
			return judgeGreater(y, x)
		}
		return judgeGreater(x, y)
	}
	best, bestAt, named := -1, -1, 0
	for i, p := range points {
		if isAt(p) {
			named++
		}
		if best < 0 || better(p.operandValue, points[best].operandValue).dir > 0 {
			best = i
		}
		if isAt(p) && (bestAt < 0 || better(p.operandValue, points[bestAt].operandValue).dir > 0) {
			bestAt = i
		}
	}
	if bestAt < 0 {
		return finding{missing: fmt.Sprintf("no value was measured at %s", choiceText(a.Along, a.At))}
	}
	var parts []finding
	for _, p := range points {
		if !isAt(p) {
			parts = append(parts, better(points[bestAt].operandValue, p.operandValue))
		}
	}
	f := combineAll(parts)
	if f.dir > 0 { // having chosen the best of those named by looking costs a factor of their number (Bonferroni)
		f.p = min(1, f.p*float64(named))
	}
	f.saw = fmt.Sprintf("along %s, the %s is %s at %s (%s)", a.Along, nameOf(a.Left.Quantity), a.Direction, points[best].at,
		show(points[best].headline(), points[best].unit))
	f.need = choiceText(a.Along, a.At)
	f.gap = ""
	if f.dir == 0 || f.p > family {
		f.gap = "and its neighbours are too close to tell"
	}
	f.evidence = listed(points)
	return f
}

func listed(points []point) []string {
	out := make([]string, len(points))
	for i, p := range points {
		if p.fixed {
			out[i] = p.label + ": " + p.text + ", published"
		} else {
			out[i] = p.label + ": " + p.describe()
		}
	}
	return out
}

// grid are the values of the rounds that all points have: grid[round][point].
func grid(points []point) [][]float64 {
	var out [][]float64
	for i, r := range points[0].rounds {
		row := []float64{points[0].values[i]}
		for _, p := range points[1:] {
			if k, ok := slices.BinarySearch(p.rounds, r); ok {
				row = append(row, p.values[k])
			}
		}
		if len(row) == len(points) {
			out = append(out, row)
		}
	}
	return out
}

// trend wants a slope along the axis, taken by least squares over the positions
// on it in each round, or, for "constant", a small spread.
func (j judge) trend(a plan.Assert) finding {
	if a.Direction == "constant" {
		return j.spread(a.Left, a.Along, plan.Bound{Low: math.Inf(-1), High: float64(a.Within), Unit: "1"})
	}
	points, bad := j.along(a.Left, a.Along)
	if bad.missing != "" || bad.weak != "" {
		return bad
	}
	bound := plan.Bound{Low: 1, High: math.Inf(1), LowOpen: true, Unit: "1"}
	if a.Direction == "falling" {
		bound = plan.Bound{Low: math.Inf(-1), High: 1, HighOpen: true, Unit: "1"}
	}
	phrase := func(v string) string {
		return fmt.Sprintf("from one %s to the next the %s changes by a factor of %s", a.Along, nameOf(a.Left.Quantity), v)
	}
	if points[0].fixed {
		return printedTrend(points, bound, phrase)
	}
	var factors []float64
	for _, row := range grid(points) {
		if slices.Min(row) <= 0 {
			return finding{weak: "values that are not positive have no factor"}
		}
		factors = append(factors, math.Exp(slopeOf(logScale.all(row))))
	}
	if len(factors) == 0 {
		return finding{weak: "no round measured all points"}
	}
	f := judgeRounds(logScale.over(points[0].per), "1", factors, bound, phrase)
	f.evidence = append(listed(points), f.evidence...)
	return f
}

// slopeOf is the least squares slope over the positions 0, 1, 2 …
func slopeOf(ys []float64) float64 {
	mid := float64(len(ys)-1) / 2
	xy, xx := 0.0, 0.0
	for i, y := range ys {
		xy += (float64(i) - mid) * y
		xx += (float64(i) - mid) * (float64(i) - mid)
	}
	return xy / xx
}

// printedTrend wants slope and Kendall's tau of printed figures to agree.
func printedTrend(points []point, bound plan.Bound, phrase func(string) string) finding {
	var mids []float64
	for _, p := range points {
		if math.IsInf(p.high, 1) || p.headline() <= 0 {
			return finding{weak: "open figures have no trend"}
		}
		mids = append(mids, p.headline())
	}
	factor := math.Exp(slopeOf(logScale.all(mids)))
	f := finding{dir: -1, need: boundText(bound), saw: phrase(show(factor, "1")) + ", as published", evidence: listed(points)}
	if holdsAbout(bound, factor) {
		f.dir = 1
	}
	if k, err := stats.Trend(mids); err == nil && (k.Coefficient > 0) != (factor > 1) {
		f.dir, f.p, f.gap = 0, 1, "and the order of the figures says otherwise"
	}
	return f
}

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
	one := operandValue{fixed: true, low: 1, high: 1}
	f := judgePrinted(operandValue{fixed: true, low: low, high: high}, one, bound, func(x, _ float64) float64 { return x }, "1", phrase)
	if nominal := (slices.Max(mids) - slices.Min(mids)) / math.Abs(m); f.dir == 0 && holdsAbout(bound, nominal) &&
		!slices.ContainsFunc(points, func(p point) bool { return !p.about && p.low != p.high }) {
		f.dir, f.p, f.gap = 1, 0, ""
	}
	return f
}
