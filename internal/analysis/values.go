package analysis

import (
	"math"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/wording"
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

	fixed             bool
	low, high         float64
	lowOpen, highOpen bool
	// "about": counts as any value within the rounding
	about bool
	// As printed
	text string

	// Why there is nothing: not measured, or not published
	missing string
	// Why the measured rounds or published figures give no number
	weak string
}

// without is an operand that has no value.
func without(q plan.Quantity, missing, weak string) operandValue {
	return operandValue{q: q, unit: q.Unit(), missing: missing, weak: weak}
}

// measured is a quantity of a selection, one value a round. Several cells count
// as their mean, in the rounds that all of them have.
func (s *runData) measured(q plan.Quantity, sel plan.Selector, est string, strict bool) operandValue {
	cells, missing := s.cells(q, sel, strict)
	if missing != "" {
		return without(q, missing, "")
	}
	return gatherValues(q, cells, est, filterOf(sel))
}

// stepsValue is a quantity of the steps of one round, kept where that is a single
// step.
func (sub *caseData) stepsValue(q plan.Quantity, est string, steps []*result.Step, f plan.Selector) stepsResult {
	if len(steps) != 1 || len(f) > 0 {
		return stepsValue(q, est, steps, f)
	}
	k := stepValueKey{steps[0], q, est}
	x, ok := sub.stepValues[k]
	if !ok {
		x = stepsValue(q, est, steps, f)
		sub.stepValues[k] = x
	}
	return x
}

// gatherValues is the mean of cells in the rounds that all of them have.
func gatherValues(q plan.Quantity, cells []cell, est string, f plan.Selector) operandValue {
	out := operandValue{q: q, unit: q.Unit(), est: est}
	sum, have := map[int]float64{}, map[int]int{}
	for _, c := range cells {
		out.per = c.sub.per
		rounds, steps := c.replicates()
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
	out := operandValue{fixed: true, unit: f.Unit, low: f.Low, high: f.High, text: f.Text}
	switch f.Kind {
	case "about":
		out.about = true
	case "below":
		out.low, out.highOpen = math.Inf(-1), true
		if f.Unit != "1" || f.High > 0 {
			// No rate, time or size is negative
			out.low = 0
		}
	case "above":
		out.high, out.lowOpen = math.Inf(1), true
	}
	return out
}

// exactly is a fixed pure number, or an interval of them.
func exactly(low, high float64) operandValue {
	return operandValue{fixed: true, low: low, high: high, unit: "1"}
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
