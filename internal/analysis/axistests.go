package analysis

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/plan"
	"dmgbench/internal/report/wording"
)

// along spreads an operand over the values of an axis, in the order of the
// axis.
func (j judge) along(op plan.Operand, axis string) (points []point, bad finding) {
	if j.author || op.Published {
		points, bad = j.s.publishedAlong(op, axis)
	} else {
		points, bad = j.measuredAlong(op, axis, cmp.Or(op.Statistic, j.est))
	}
	if bad.fails() {
		return nil, bad
	}
	var operands []operandValue
	for i := range points {
		points[i].label = cmp.Or(wording.ChoiceText(axis, points[i].at), wording.Text("no-axis-value", axis))
		operands = append(operands, points[i].operandValue)
	}
	if f, bad := missingValues(operands...); bad {
		return nil, f
	}
	if len(points) < 2 {
		return nil, missing("one-axis-value", axis)
	}
	return points, finding{}
}

func (j judge) measuredAlong(op plan.Operand, axis, est string) ([]point, finding) {
	cells, gone := j.s.cells(op.Quantity, op.Where, j.strict)
	if gone != "" {
		return nil, finding{missing: gone}
	}
	if axis == "file_size" || axis == "set" {
		return samplesAlong(op, cells, axis, est), finding{}
	}
	groups := map[string][]cell{}
	var seen []string
	for _, c := range cells {
		at, ok := c.axisValue(axis)
		if !ok {
			return nil, weak("no-axis", axis)
		}
		if _, ok := groups[at]; !ok {
			seen = append(seen, at)
		}
		groups[at] = append(groups[at], c)
	}
	var out []point
	for _, at := range j.s.inOrder(axis, seen) {
		out = append(out, point{at, gatherValues(op.Quantity, groups[at], est, filterOf(op.Where))})
	}
	return out, finding{}
}

// axisValue is the value of an axis for the cell.
func (c cell) axisValue(axis string) (string, bool) {
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
	values := map[int64]string{}
	for _, c := range cells {
		for _, st := range c.steps() {
			for _, sm := range filtered(st.Samples, filterOf(op.Where)) {
				if axis == "set" {
					values[int64(sm.Set)] = strconv.Itoa(sm.Set)
				} else if _, ok := values[sm.Bytes]; !ok {
					values[sm.Bytes] = wording.Size(sm.Bytes).String()
				}
			}
		}
	}
	var out []point
	for _, v := range sortedKeys(values) {
		part := filterOf(withChoice(op.Where, axis, values[v]))
		out = append(out, point{values[v], gatherValues(op.Quantity, cells, est, part)})
	}
	return out
}

// inOrder sorts values of an axis: as the plan lists them, numbers and sizes by
// their worth, phases as the protocol has them.
func (s *runData) inOrder(axis string, values []string) []string {
	listed := s.axisValues(axis)
	rank := func(v string) int {
		return slices.IndexFunc(listed, func(w string) bool { return sameValue(axis, v, w) })
	}
	return slices.SortedStableFunc(slices.Values(values), func(a, b string) int {
		x, okX := number(a)
		y, okY := number(b)
		if !okX || !okY {
			x, y = 0, 0
		}
		return cmp.Or(rank(a)-rank(b), cmp.Compare(x, y))
	})
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
		return texts(s.protocol(), func(st plan.Step) string { return st.Phase })
	}
	return nil
}

// extreme wants the largest (smallest) value at one of the given points.
func (j judge) extreme(a plan.Assert) finding {
	points, bad := j.along(a.Left, a.Along)
	if bad.fails() {
		return bad
	}
	isAt := func(p point) bool {
		return slices.ContainsFunc(a.At, func(v string) bool { return sameValue(a.Along, v, p.at) })
	}
	better := func(x, y point) finding {
		if a.Direction == "smallest" {
			x, y = y, x
		}
		return judgeGreater(x.operandValue, y.operandValue)
	}
	bestOf := func(list []point) point {
		best := list[0]
		for _, p := range list[1:] {
			if better(p, best).dir > 0 {
				best = p
			}
		}
		return best
	}
	named := slices.DeleteFunc(slices.Clone(points), func(p point) bool { return !isAt(p) })
	if len(named) == 0 {
		return missing("not-measured-at", wording.ChoiceText(a.Along, a.At...))
	}
	best, bestNamed := bestOf(points), bestOf(named)
	var parts []finding
	for _, p := range points {
		if !isAt(p) {
			parts = append(parts, better(bestNamed, p))
		}
	}
	f := combineAll(parts)
	// Having chosen the best of those named by looking costs a factor of their
	// number (Bonferroni)
	if f.dir > 0 {
		f.p = min(1, f.p*float64(len(named)))
	}
	f.saw = wording.Say("seen.extreme", a.Along, QuantityName(a.Left.Quantity), a.Direction, best.at,
		wording.Amount{Value: best.headline(), Unit: best.unit})
	f.need, f.gap = wording.Say("text", wording.ChoiceText(a.Along, a.At...)), wording.Message{}
	if f.dir == 0 || f.p > family {
		f.gap = wording.Say("gap.close")
	}
	f.evidence = evidenceAlong(points)
	return f
}

func evidenceAlong(points []point) []wording.Message {
	out := make([]wording.Message, len(points))
	for i, p := range points {
		out[i] = wording.Say("evidence.point", p.label, p.describe())
	}
	return out
}

// grid are the values of the rounds that all points have: grid[round][point].
func grid(points []point) (rounds []int, rows [][]float64) {
	for _, r := range points[0].rounds {
		var row []float64
		for _, p := range points {
			if k, ok := slices.BinarySearch(p.rounds, r); ok {
				row = append(row, p.values[k])
			}
		}
		if len(row) == len(points) {
			rounds, rows = append(rounds, r), append(rows, row)
		}
	}
	return rounds, rows
}

// trend wants a slope along the axis, taken by least squares over the positions
// on it in each round, or, for "constant", a small spread.
func (j judge) trend(a plan.Assert) finding {
	bound := plan.Bound{Low: 1, High: math.Inf(1), LowOpen: true, Unit: "1"}
	switch a.Direction {
	case "constant":
		return j.spread(a.Left, a.Along, plan.Bound{Low: math.Inf(-1), High: float64(a.Within), Unit: "1"})
	case "falling":
		bound = plan.Bound{Low: math.Inf(-1), High: 1, HighOpen: true, Unit: "1"}
	}
	points, bad := j.along(a.Left, a.Along)
	if bad.fails() {
		return bad
	}
	phrase := wording.Say("phrase.trend", nil, a.Along, QuantityName(a.Left.Quantity))
	if points[0].fixed {
		return publishedTrend(points, bound, phrase)
	}
	var factors []float64
	_, rows := grid(points)
	for _, row := range rows {
		if slices.Min(row) <= 0 {
			return weak("not-positive.factor")
		}
		factors = append(factors, math.Exp(slopeOf(logScale.all(row))))
	}
	if len(factors) == 0 {
		return weak("no-round-of-all")
	}
	f := judgeRounds(logScale.over(points[0].per), "1", factors, bound, phrase)
	f.evidence = append(evidenceAlong(points), f.evidence...)
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

// publishedTrend wants slope and Kendall's tau of printed figures to agree.
func publishedTrend(points []point, bound plan.Bound, phrase wording.Message) finding {
	var mids []float64
	for _, p := range points {
		if math.IsInf(p.high, 1) || p.headline() <= 0 {
			return weak("open-figures.trend")
		}
		mids = append(mids, p.headline())
	}
	factor := math.Exp(slopeOf(logScale.all(mids)))
	f := finding{dir: -1, need: needs(bound), evidence: evidenceAlong(points),
		saw: wording.Say("as-published.seen", phrase.With(wording.Number(factor)))}
	if holdsAbout(bound, factor) {
		f.dir = 1
	}
	if k, err := stats.Trend(mids); err == nil && (k.Coefficient > 0) != (factor > 1) {
		f.dir, f.p, f.gap = 0, 1, wording.Say("gap.order")
	}
	return f
}

// spread bounds (max - min) / mean over an axis.
//
// The spread of single rounds contains their scatter and comes out too large.
// It may therefore only show that a spread is small. That it is large has to
// show in two given points, the largest and the smallest by the centres of all
// rounds, which keep their places in every round; having chosen them by looking
// costs a factor of the number of pairs (Bonferroni).
func (j judge) spread(op plan.Operand, axis string, bound plan.Bound) finding {
	points, bad := j.along(op, axis)
	if bad.fails() {
		return bad
	}
	bound.Unit = "1"
	phrase := wording.Say("phrase.spread", nil, axis, QuantityName(op.Quantity))
	judge := spreadRounds
	if points[0].fixed {
		judge = publishedSpread
	}
	f := judge(points, bound, phrase)
	f.evidence = append(evidenceAlong(points), f.evidence...)
	return f
}

func spreadRounds(points []point, bound plan.Bound, phrase wording.Message) finding {
	_, rows := grid(points)
	if len(rows) == 0 {
		return weak("no-round-of-all")
	}
	top, bottom := ends(rows)
	var whole, pair []float64
	for _, row := range rows {
		m, err := stats.Mean(row)
		if err != nil || m == 0 {
			return weak("mean-zero")
		}
		whole = append(whole, (slices.Max(row)-slices.Min(row))/math.Abs(m))
		pair = append(pair, (row[top]-row[bottom])/math.Abs(m))
	}
	f := judgeRounds(positiveScale.over(points[0].per), "1", pair, bound, phrase)
	if f.few || f.weak != "" {
		return f
	}
	sc, pairs := plainScale.over(points[0].per), float64(len(points)*(len(points)-1)/2)
	// That the spread is below end
	small := func(end float64) float64 {
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
	if f.p > family && (f.gap.IsZero() || f.dir < 0) {
		f.gap = wording.Say("gap.scatter")
	}
	single := wording.Span{Low: slices.Min(whole), High: slices.Max(whole), Unit: "1"}
	f.evidence = append(f.evidence, wording.Say("evidence.spread", single, wording.P(f.p)))
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
	return slices.Index(sums, slices.Max(sums)), slices.Index(sums, slices.Min(sums))
}

func publishedSpread(points []point, bound plan.Bound, phrase wording.Message) finding {
	var lows, highs, mids []float64
	for _, p := range points {
		w := p.widened()
		lows, highs, mids = append(lows, w.low), append(highs, w.high), append(mids, p.headline())
	}
	m, err := stats.Mean(mids)
	if err != nil || m == 0 || math.IsInf(slices.Max(highs), 0) {
		return weak("open-figures.spread")
	}
	low := max(0, slices.Max(lows)-slices.Min(highs)) / math.Abs(m)
	high := (slices.Max(highs) - slices.Min(lows)) / math.Abs(m)
	f := judgePublished(exactly(low, high), exactly(1, 1), bound, first, "1", phrase)
	nominal := (slices.Max(mids) - slices.Min(mids)) / math.Abs(m)
	isRange := func(p point) bool { return !p.about && p.low != p.high }
	if f.dir == 0 && holdsAbout(bound, nominal) && !slices.ContainsFunc(points, isRange) {
		f.dir, f.p, f.gap = 1, 0, wording.Message{}
	}
	return f
}
