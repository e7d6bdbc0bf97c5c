package analysis

import (
	"cmp"
	"math"
	"reflect"
	"slices"
	"strconv"

	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/plan"
	"dmgbench/internal/report/wording"
)

// judge evaluates the tests of claims, either on what was measured, under one
// estimator of rates, or on what the author printed.
type judge struct {
	s *runData
	// Of rates of files, where an operand names none
	est string
	// Every operand is the author's printed figure
	author bool
	// A claim is judged: only cases that were measured to the end count
	strict bool
}

// operandValues evaluates operands that are compared, and names them by what
// they differ in.
func (j judge) operandValues(ops ...plan.Operand) []operandValue {
	isConstant := func(op plan.Operand) bool { return op.Constant != nil }
	chosen := slices.DeleteFunc(slices.Clone(ops), isConstant)
	measured := slices.ContainsFunc(chosen, func(op plan.Operand) bool { return !op.Published })
	labels := wording.Labels(mapped(chosen, func(op plan.Operand) plan.Selector { return op.Where }))
	out := make([]operandValue, len(ops))
	for i, op := range ops {
		out[i] = j.operand(op)
		if op.Constant != nil {
			continue
		}
		out[i].label, labels = labels[0], labels[1:]
		if !j.author && op.Published {
			out[i].label = wording.Text("as-published", out[i].label)
			if measured {
				out[i].weak = wording.Join(out[i].weak, j.s.ofAnotherMachine(op))
			}
		}
	}
	return out
}

// operand is an operand with its values. Several cells count as their mean, in
// the rounds that all of them have.
func (j judge) operand(op plan.Operand) operandValue {
	switch {
	case op.Constant != nil:
		out := figureValue(*op.Constant)
		out.label = op.Constant.Text
		return out
	case j.author || op.Published:
		return j.s.publishedValue(op)
	}
	cells, missing := j.s.cells(op.Quantity, op.Where, j.strict)
	if missing != "" {
		return operandValue{q: op.Quantity, unit: op.Quantity.Unit(), missing: missing}
	}
	return gatherValues(op.Quantity, cells, cmp.Or(op.Statistic, j.est), filterOf(op.Where))
}

// pair tests left against right.
func (j judge) pair(a plan.Assert, test func(a, b operandValue, bound plan.Bound) finding) finding {
	x := j.operandValues(a.Left, a.Right)
	return test(x[0], x[1], a.Bound)
}

// equal wants left and right to differ by at most a share of the larger one.
func (j judge) equal(a plan.Assert) finding {
	share := float64(a.Within)
	a.Bound = plan.Bound{Low: 1 - share, High: 1 / (1 - share)}
	f := j.pair(a, judgeRatio)
	if !f.need.IsZero() {
		f.need = wording.Say("need.equal", wording.Percent(share), f.need)
	}
	return f
}

// bound bounds a value itself.
func (j judge) bound(a plan.Assert) finding {
	x := j.operandValues(a.Left)[0]
	f, bad := missingValues(x)
	a.Bound.Unit = x.unit
	phrase := wording.Say("phrase.value", nil, QuantityName(x.q), x.label)
	switch {
	case bad:
		return f
	case x.fixed:
		f = judgeFigure(x, a.Bound, phrase)
	default:
		f = judgeRounds(x.scale().absolute(x.unit), x.values, a.Bound, phrase)
	}
	f.evidence = slices.Concat(evidenceOf(x), f.evidence)
	return f
}

// order wants every operand further from the next than a share of the larger.
func (j judge) order(a plan.Assert) finding {
	x := j.operandValues(a.Of...)
	if a.Direction == "rising" {
		slices.Reverse(x)
	}
	above := plan.Bound{Low: 1 / (1 - float64(a.Within)), High: math.Inf(1), LowOpen: true}
	var parts []finding
	for i := range len(x) - 1 {
		parts = append(parts, judgeRatio(x[i], x[i+1], above))
	}
	return combine(parts, 1)
}

// judgeGreater tests a > b.
func judgeGreater(a, b operandValue) finding {
	return judgeRatio(a, b, plan.Bound{Low: 1, High: math.Inf(1), LowOpen: true})
}

// rank wants exactly Rank-1 of the others to be larger than the left one. Where
// it is the rank asked for, every comparison carries it; where it is another
// one, as many as it takes do.
func (j judge) rank(a plan.Assert) finding {
	ops := slices.DeleteFunc(slices.Clone(a.Of), func(op plan.Operand) bool { return reflect.DeepEqual(op, a.Left) })
	x := j.operandValues(append([]plan.Operand{a.Left}, ops...)...)
	if f, bad := missingValues(x...); bad {
		return f
	}
	others := mapped(x[1:], func(other operandValue) finding { return judgeGreater(other, x[0]) })
	seen := slices.Concat(mapped(others, func(f finding) []wording.Message { return f.evidence })...)
	if f, isOpen := find(others, func(f finding) bool { return f.dir == 0 }); isOpen {
		f.evidence = seen
		return f
	}
	above := slices.DeleteFunc(slices.Clone(others), func(f finding) bool { return f.dir < 0 })
	below := slices.DeleteFunc(slices.Clone(others), func(f finding) bool { return f.dir > 0 })
	rank := len(above) + 1
	f := finding{dir: 1, need: wording.Say("need.rank", a.Rank), evidence: seen,
		saw: wording.Say("seen.rank", QuantityName(x[0].q), x[0].label, rank, len(x))}
	carry := slices.Concat(above, below)
	if rank != a.Rank {
		f.dir = -1
		// So many above, or below, are one too many; the firmest carry it
		carry = above
		enough := a.Rank
		if rank < a.Rank {
			carry, enough = below, len(x)-a.Rank+1
		}
		slices.SortStableFunc(carry, compareFirmness)
		carry = carry[:min(enough, len(carry))]
	}
	for _, c := range carry {
		f.p, f.few, f.sampled = max(f.p, c.p), f.few || c.few, f.sampled || c.sampled
	}
	if f.dir < 0 {
		f.p = min(1, f.p*float64(len(x)-1))
	}
	if f.p > family || f.few {
		f.gap = wording.Say("gap.close")
	}
	return f
}

// outcome wants the steps to have ended as the claim states, in every round in
// which they ended. It is not a statistic, and one round is enough. On the
// author's side it is what the protocol expects of the steps.
func (j judge) outcome(a plan.Assert) finding {
	if j.author {
		return j.s.expected(a)
	}
	steps, gone := j.s.endedSteps(a.Step, a.Where)
	var wrong []wording.Message
	for _, st := range steps {
		if (st.Error != "") != (a.Outcome == "fail") {
			wrong = append(wrong, wording.Say("ended-wrong", st.id, st.Round, cmp.Or(st.Error, "no error")))
		}
	}
	slices.SortFunc(wrong, func(a, b wording.Message) int { return cmp.Compare(a.String(), b.String()) })
	f := finding{dir: 1, need: wording.Say("need.outcome", a.Step, a.Outcome), saw: wording.Say("seen.outcome",
		a.Step, a.Outcome, len(steps)-len(wrong), wording.Count{N: len(steps), Noun: "time"})}
	f.evidence = append([]wording.Message{f.saw}, wrong...)
	switch {
	case len(wrong) > 0:
		f.dir = -1
	case gone != "":
		return finding{missing: gone}
	case len(steps) == 0:
		return missing("no-step-run", a.Step, wording.Selector(a.Where))
	}
	return f
}

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
	for i, p := range points {
		points[i].label = cmp.Or(wording.ChoiceText(axis, p.at), wording.Text("no-axis-value", axis))
		bad.missing, bad.weak = wording.Join(bad.missing, p.missing), wording.Join(bad.weak, p.weak)
	}
	if !bad.fails() && len(points) < 2 {
		bad = missing("one-axis-value", axis)
	}
	return points, bad
}

// onAxis is a test of an operand over the values of an axis.
func onAxis(test func(judge, plan.Assert, []point) finding) func(judge, plan.Assert) finding {
	return func(j judge, a plan.Assert) finding {
		points, f := j.along(a.Left, a.Along)
		if f.fails() {
			return f
		}
		f = test(j, a, points)
		seen := mapped(points, func(p point) wording.Message {
			return wording.Say("evidence.point", p.label, p.describe())
		})
		f.evidence = append(seen, f.evidence...)
		return f
	}
}

// measuredAlong groups cells by their value of an axis, or files by their size
// or set.
func (j judge) measuredAlong(op plan.Operand, axis, est string) (out []point, bad finding) {
	cells, gone := j.s.cells(op.Quantity, op.Where, j.strict)
	filter, ofFiles := filterOf(op.Where), axis == "file_size" || axis == "set"
	groups := map[string][]cell{}
	var seen []string
	for _, c := range cells {
		at, ok := c.sub.value(axis)
		values := []string{at}
		switch axis {
		case "phase":
			values, ok = []string{c.key.phase}, true
		case "cycle":
			values, ok = []string{strconv.Itoa(c.key.cycle)}, true
		case "file_size", "set":
			values, ok = nil, true
			for _, st := range c.steps() {
				for _, sm := range filtered(st.Samples, filter) {
					values = appendUnique(values, sampleValue(sm, axis))
				}
			}
		}
		if !ok {
			return nil, weak("no-axis", axis)
		}
		for _, at := range values {
			if len(groups[at]) == 0 {
				seen = append(seen, at)
			}
			groups[at] = append(groups[at], c)
		}
	}
	for _, at := range j.s.inOrder(axis, seen) {
		group, part := groups[at], filter
		if ofFiles {
			group, part = cells, filterOf(withChoice(op.Where, axis, at))
		}
		out = append(out, point{at, gatherValues(op.Quantity, group, est, part)})
	}
	return out, finding{missing: gone}
}

// extreme wants the largest (smallest) value at one of the given points.
func (j judge) extreme(a plan.Assert, points []point) finding {
	better := func(x, y point) finding {
		if a.Direction == "smallest" {
			x, y = y, x
		}
		return judgeGreater(x.operandValue, y.operandValue)
	}
	isBetter := func(x, y point) int { return better(x, y).dir }
	isNamed := func(p point) bool { return hasValue(a.Along, a.At, p.at) }
	named := slices.DeleteFunc(slices.Clone(points), func(p point) bool { return !isNamed(p) })
	others := slices.DeleteFunc(slices.Clone(points), isNamed)
	if len(named) == 0 {
		return missing("not-measured-at", wording.ChoiceText(a.Along, a.At...))
	}
	best, bestNamed := slices.MaxFunc(points, isBetter), slices.MaxFunc(named, isBetter)
	f := combine(mapped(others, func(p point) finding { return better(bestNamed, p) }), 1)
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
	f.evidence = nil
	return f
}

// grid are the values of the rounds that all points have: grid[round][point].
// Printed figures are those of round 0.
func grid(points []point) (rounds []int, rows [][]float64) {
	if points[0].fixed {
		return []int{0}, [][]float64{mapped(points, point.headline)}
	}
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
func (j judge) trend(a plan.Assert, points []point) finding {
	bound := plan.Bound{Low: 1, High: math.Inf(1), LowOpen: true, Unit: "1"}
	switch a.Direction {
	case "constant":
		a.Bound = plan.Bound{Low: math.Inf(-1), High: float64(a.Within)}
		return j.spread(a, points)
	case "falling":
		bound = plan.Bound{Low: math.Inf(-1), High: 1, HighOpen: true, Unit: "1"}
	}
	phrase := wording.Say("phrase.trend", nil, a.Along, QuantityName(a.Left.Quantity))
	isOpen := func(p point) bool { return p.fixed && (math.IsInf(p.high, 1) || p.headline() <= 0) }
	if slices.ContainsFunc(points, isOpen) {
		return weak("open-figures.trend")
	}
	var factors []float64
	_, rows := grid(points)
	for _, row := range rows {
		if slices.Min(row) <= 0 {
			return weak("not-positive.factor")
		}
		mid, xy, xx := float64(len(row)-1)/2, 0.0, 0.0
		for i, y := range row {
			x := float64(i) - mid
			xy, xx = xy+x*math.Log(y), xx+x*x
		}
		factors = append(factors, math.Exp(xy/xx))
	}
	if len(factors) == 0 {
		return weak("no-round-of-all")
	}
	if points[0].fixed {
		return judgeFigure(exactly(factors[0], factors[0]), bound, phrase)
	}
	return judgeRounds(logScale.over(points[0].per), factors, bound, phrase)
}

// spread bounds (max - min) / mean over an axis.
//
// The spread of single rounds contains their scatter and comes out too large.
// It may therefore only show that a spread is small. That it is large has to
// show in two given points, the largest and the smallest by the centres of all
// rounds, which keep their places in every round; having chosen them by looking
// costs a factor of the number of pairs (Bonferroni).
func (j judge) spread(a plan.Assert, points []point) finding {
	a.Bound.Unit = "1"
	phrase := wording.Say("phrase.spread", nil, a.Along, QuantityName(a.Left.Quantity))
	if points[0].fixed {
		return publishedSpread(points, a.Bound, phrase)
	}
	return spreadRounds(points, a.Bound, phrase)
}

func spreadRounds(points []point, bound plan.Bound, phrase wording.Message) finding {
	_, rows := grid(points)
	if len(rows) == 0 {
		return weak("no-round-of-all")
	}
	sums := make([]float64, len(points))
	for _, row := range rows {
		for i, v := range row {
			sums[i] += v
		}
	}
	top, bottom := slices.Index(sums, slices.Max(sums)), slices.Index(sums, slices.Min(sums))
	var whole, pair []float64
	for _, row := range rows {
		m, err := stats.Mean(row)
		if err != nil || m == 0 {
			return weak("mean-zero")
		}
		whole = append(whole, (slices.Max(row)-slices.Min(row))/math.Abs(m))
		pair = append(pair, (row[top]-row[bottom])/math.Abs(m))
	}
	sc, pairs := plainScale.over(points[0].per), float64(len(points)*(len(points)-1)/2)
	positive := sc
	positive.from = func(x float64) float64 { return max(0, x) }
	f := judgeRounds(positive, pair, bound, phrase)
	if f.few || f.weak != "" {
		return f
	}
	// That the spread is below end
	small := func(end float64) float64 {
		if sc.centre(whole) >= end {
			return 1
		}
		return sc.pAt(whole, end)
	}
	large := func(end float64) float64 { return min(1, pairs*sc.pAt(pair, end)) }
	switch seen := sc.centre(pair); {
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

func publishedSpread(points []point, bound plan.Bound, phrase wording.Message) finding {
	var lows, highs, mids []float64
	isRange := false
	for _, p := range points {
		w := p.widened()
		lows, highs, mids = append(lows, w.low), append(highs, w.high), append(mids, p.headline())
		isRange = isRange || !p.about && p.low != p.high
	}
	m, err := stats.Mean(mids)
	if err != nil || m == 0 || math.IsInf(slices.Max(highs), 0) {
		return weak("open-figures.spread")
	}
	low := max(0, slices.Max(lows)-slices.Min(highs)) / math.Abs(m)
	high := (slices.Max(highs) - slices.Min(lows)) / math.Abs(m)
	f := judgeFigure(exactly(low, high), bound, phrase)
	nominal := (slices.Max(mids) - slices.Min(mids)) / math.Abs(m)
	if f.dir == 0 && holdsAbout(bound, nominal) && !isRange {
		f.dir, f.p, f.gap = 1, 0, wording.Message{}
	}
	return f
}
