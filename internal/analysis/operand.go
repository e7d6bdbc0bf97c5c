package analysis

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// operand is one operand of a claim with its value: one number a round where it was
// measured, or an interval that no round changes where it was published.
type operandValue struct {
	label string
	q     plan.Quantity
	unit  string

	rounds []int
	values []float64
	n      int // files or steps behind the values
	est    string
	per    replica // what is replicated: round or session

	fixed             bool
	low, high         float64
	lowOpen, highOpen bool
	about             bool   // "about": counts as any value within the rounding
	text              string // as printed

	missing string // why there is nothing: not measured, or not published
	weak    string // why what is there gives no such number
}

// cell is the steps of one case under one phase and cycle.
type cell struct {
	sub *caseData
	key stepKey
}

func (c cell) steps() []*result.Step { return c.sub.steps[c.key] }

// byRound groups the steps of a cell by the unit of replication, ascending: the
// round, or the session where enough were pooled.
func (c cell) byRound() (rounds []int, steps map[int][]*result.Step) {
	steps = map[int][]*result.Step{}
	for _, st := range c.steps() {
		r := c.sub.replicate(st.Round)
		if _, ok := steps[r]; !ok {
			rounds = append(rounds, r)
		}
		steps[r] = append(steps[r], st)
	}
	slices.Sort(rounds)
	return rounds, steps
}

// cells finds what a selector picks for a quantity. missing is why that is
// not all of it, or why there are none.
func (s *runData) cells(q plan.Quantity, sel plan.Selector) (cells []cell, missing string) {
	var gone []string
	any := false
	for _, sub := range s.cases {
		if !sub.matches(sel) {
			continue
		}
		any = true
		found := false
		for _, k := range sub.order {
			if k.do == doOf(q) && k.matches(sel) {
				cells = append(cells, cell{sub, k})
				found = true
			}
		}
		if !found {
			if why := s.absent(sub, doOf(q), sel); why != "" {
				gone = append(gone, why)
			}
		}
	}
	slices.Sort(gone)
	switch {
	case len(gone) > 0:
		return nil, strings.Join(gone, "; ")
	case !any:
		return nil, fmt.Sprintf("this run has no case with %s", selectorText(sel))
	case len(cells) == 0:
		return nil, fmt.Sprintf("no %s was measured with %s", nameOf(q), selectorText(sel))
	}
	return cells, ""
}

// absent reports why a case that the selector picks has no such steps; "" where the
// plan does not ask for any.
func (s *runData) absent(sub *caseData, do string, sel plan.Selector) string {
	if pc, ok := s.planned[sub.c.ID]; ok && !hasStep(pc.Steps, do, sel) {
		return ""
	}
	switch sub.c.Status {
	case result.Done:
		return ""
	case result.Skipped, result.Failed, result.Discarded:
		return strings.TrimSuffix(fmt.Sprintf("case %s was %s: %s", sub.c.ID, sub.c.Status, sub.c.Reason), ": ")
	}
	return fmt.Sprintf("case %s was not finished", sub.c.ID)
}

// hasStep reports whether a protocol has a step of a kind that the selector picks.
func hasStep(steps []plan.Step, do string, sel plan.Selector) bool {
	return slices.ContainsFunc(steps, func(st plan.Step) bool {
		return st.Do == do && stepKey{do: st.Do, phase: st.Phase}.matches(withoutKey(sel, "cycle")) || hasStep(st.Steps, do, sel)
	})
}

// measured is a quantity of a selection, one value a round. Several cells count
// as their mean, in the rounds that all of them have.
func (s *runData) measured(q plan.Quantity, sel plan.Selector, est string) operandValue {
	cells, missing := s.cells(q, sel)
	if missing != "" {
		return operandValue{q: q, unit: q.Unit(), missing: missing}
	}
	return gatherValues(q, cells, est, filterOf(sel))
}

// roundValue is a quantity in one round of a cell.
type roundValue struct {
	round int
	v     float64
	n     int
	err   error
}

// memoKey names values of a subject that do not change.
type memoKey struct {
	key stepKey
	q   plan.Quantity
	est string
}

// perRound are the values of the rounds of a cell, ascending. Those of whole
// steps are kept, as every claim asks for them again.
func (c cell) perRound(q plan.Quantity, est string, f *sampleFilter) []roundValue {
	k := memoKey{c.key, q, est}
	if known, ok := c.sub.memo[k]; ok && f == nil {
		return known
	}
	var out []roundValue
	rounds, steps := c.byRound()
	for _, r := range rounds {
		out = append(out, c.sub.ofRound(q, est, r, steps[r], f))
	}
	if f == nil {
		c.sub.memo[k] = out
	}
	return out
}

// stepValueKey names the value of a single step, which no choice of rounds changes.
type stepValueKey struct {
	st  *result.Step
	q   plan.Quantity
	est string
}

// ofRound is the value of the steps of one round, kept where that is a single step:
// the estimators from lines take long, and every analysis asks for them again.
func (sub *caseData) ofRound(q plan.Quantity, est string, round int, steps []*result.Step, f *sampleFilter) roundValue {
	if len(steps) != 1 || f != nil || sub.known == nil {
		v, n, err := value(q, est, steps, f)
		return roundValue{round, v, n, err}
	}
	k := stepValueKey{steps[0], q, est}
	x, ok := sub.known[k]
	if !ok {
		x.v, x.n, x.err = value(q, est, steps, f)
		sub.known[k] = x
	}
	x.round = round
	return x
}

func gatherValues(q plan.Quantity, cells []cell, est string, f *sampleFilter) operandValue {
	out := operandValue{q: q, unit: q.Unit(), est: est}
	for _, c := range cells {
		out.per = c.sub.per
	}
	sum, have := map[int]float64{}, map[int]int{}
	for _, c := range cells {
		for _, x := range c.perRound(q, est, f) {
			if x.err != nil {
				out.weak = fmt.Sprintf("%s: %v", c.sub.c.ID, x.err)
				continue
			}
			sum[x.round] += x.v
			have[x.round]++
			out.n += x.n
		}
	}
	for r, n := range have {
		if n == len(cells) {
			out.rounds = append(out.rounds, r)
		}
	}
	slices.Sort(out.rounds)
	for _, r := range out.rounds {
		out.values = append(out.values, sum[r]/float64(len(cells)))
	}
	switch {
	case perFile(q) && out.weak != "":
		// A line that rises in some rounds only: to keep those would be to choose by the outcome.
		out.rounds, out.values = nil, nil
	case len(out.rounds) > 0:
		out.weak = ""
	case out.weak == "":
		out.weak = "no round measured all of it"
	}
	return out
}

// constant is an operand that the plan gives as a number.
func constant(f plan.Figure) operandValue {
	out := figureSide(f)
	out.label = f.Text
	return out
}

// figureSide is a printed figure as the interval that it means.
func figureSide(f plan.Figure) operandValue {
	out := operandValue{fixed: true, unit: f.Unit, low: f.Low, high: f.High, text: f.Text}
	switch f.Kind {
	case "about":
		out.about = true
	case "below":
		out.low, out.highOpen = math.Inf(-1), true
		if f.Unit != "1" || f.High > 0 {
			out.low = 0 // no rate, time or size is negative
		}
	case "above":
		out.high, out.lowOpen = math.Inf(1), true
	}
	return out
}

// headline is the central value of a side: geometric mean of the rounds for
// rates and times, the mean otherwise; the middle of a printed interval.
func (a operandValue) headline() float64 {
	if a.fixed {
		switch {
		case math.IsInf(a.high, 1):
			return a.low
		case a.highOpen:
			return a.high
		}
		return (a.low + a.high) / 2
	}
	return centre(a.unit, a.values)
}
