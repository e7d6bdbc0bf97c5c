package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// judge evaluates the tests of claims, either on what was measured, under one
// estimator of rates, or on what the author printed.
type judge struct {
	s      *runData
	est    string // of rates of files, where an operand names none
	author bool   // every operand is the author's printed figure
	strict bool   // what is judged is a claim: it rests on cases that were measured to the end alone
}

// assert evaluates one test.
func (j judge) assert(a plan.Assert) finding {
	switch a.Kind {
	case "ratio", "difference", "equal":
		x := j.operandValues(a.Left, a.Right)
		switch a.Kind {
		case "ratio":
			return judgeRatio(x[0], x[1], a.Bound)
		case "difference":
			return judgeDifference(x[0], x[1], a.Bound)
		}
		return judgeEqual(x[0], x[1], float64(a.Within))
	case "bound":
		return judgeBound(j.operandValues(a.Left)[0], a.Bound)
	case "order":
		return j.order(a)
	case "rank":
		return j.rank(a)
	case "extreme":
		return j.extreme(a)
	case "trend":
		return j.trend(a)
	case "spread":
		return j.spread(a.Left, a.Along, a.Bound)
	case "coefficient":
		return j.coefficient(a)
	case "prediction":
		return j.prediction(a)
	case "outcome":
		return j.outcome(a)
	case "all", "any":
		parts := make([]finding, len(a.Parts))
		for i, p := range a.Parts {
			parts[i] = j.assert(p)
		}
		if a.Kind == "all" {
			return combineAll(parts)
		}
		return combineAny(parts)
	}
	return finding{weak: fmt.Sprintf("%q is not a test of this program", a.Kind)}
}

// unmeasured reports which cases of an operand were not measured to the end: their values decide no claim
// by it.
func (j judge) unmeasured(op plan.Operand) string {
	if !j.strict {
		return ""
	}
	var gone []string
	for _, sub := range j.s.cases {
		if !sub.matches(op.Where) {
			continue
		}
		if why := j.s.absent(sub, doOf(op.Quantity), op.Where); why != "" {
			gone = append(gone, why)
		}
	}
	slices.Sort(gone)
	return strings.Join(gone, "; ")
}

// operandValues evaluates operands that are compared, and names them by what
// they differ in.
func (j judge) operandValues(ops ...plan.Operand) []operandValue {
	sels := make([]plan.Selector, 0, len(ops))
	for _, op := range ops {
		if op.Constant == nil {
			sels = append(sels, op.Where)
		}
	}
	own, _ := labels(sels)
	beside := slices.ContainsFunc(ops, func(op plan.Operand) bool { return op.Constant == nil && !op.Published })
	out := make([]operandValue, len(ops))
	next := 0
	for i, op := range ops {
		out[i] = j.operand(op)
		if op.Constant != nil {
			continue
		}
		out[i].label = own[next]
		next++
		if !j.author && op.Published {
			out[i].label += " as published"
			if beside {
				out[i].weak = join(out[i].weak, j.s.ofAnotherMachine(op))
			}
		}
	}
	return out
}

func (j judge) operand(op plan.Operand) operandValue {
	switch {
	case op.Constant != nil:
		return constant(*op.Constant)
	case j.author || op.Published:
		return j.s.printedOperand(op)
	}
	if missing := j.unmeasured(op); missing != "" {
		return operandValue{q: op.Quantity, unit: op.Quantity.Unit(), missing: missing}
	}
	est := j.est
	if op.Statistic != "" {
		est = op.Statistic
	}
	return j.s.measured(op.Quantity, op.Where, est)
}

// order wants every operand further from the next than a share of the larger.
func (j judge) order(a plan.Assert) finding {
	x := j.operandValues(a.Of...)
	if a.Direction == "rising" {
		slices.Reverse(x)
	}
	var parts []finding
	for i := range len(x) - 1 {
		parts = append(parts, judgeApart(x[i], x[i+1], float64(a.Within)))
	}
	return combineAll(parts)
}

// judgeGreater tests a > b.
func judgeGreater(a, b operandValue) finding {
	return judgeRatio(a, b, plan.Bound{Low: 1, High: math.Inf(1), LowOpen: true, Unit: "1"})
}

// rank wants exactly Rank-1 of the others to be larger than the left one.
func (j judge) rank(a plan.Assert) finding {
	ops := []plan.Operand{a.Left}
	for _, op := range a.Of {
		if !sameOperand(op, a.Left) {
			ops = append(ops, op)
		}
	}
	x := j.operandValues(ops...)
	if f, bad := missingValues(x...); bad {
		return f
	}
	var above, below []finding
	var seen []string
	for _, other := range x[1:] {
		f := judgeGreater(other, x[0])
		seen = append(seen, f.evidence...)
		switch f.dir {
		case 1:
			above = append(above, f)
		case -1:
			below = append(below, f)
		default:
			f.evidence = seen
			return f
		}
	}
	return rankFinding(len(above)+1, a.Rank, len(x), above, below, x[0], seen)
}

// rankFinding is the finding of a rank. Where it is the rank asked for, every
// comparison carries it; where it is another one, as many as it takes do.
func rankFinding(rank, want, of int, above, below []finding, left operandValue, seen []string) finding {
	f := finding{evidence: seen, need: fmt.Sprintf("rank %d", want)}
	f.saw = fmt.Sprintf("by %s, %s is number %d of %d", nameOf(left.q), left.label, rank, of)
	f.dir = 1
	carry := slices.Concat(above, below)
	if rank != want {
		f.dir = -1
		carry = firmest(above, want) // so many above are one too many
		if rank < want {
			carry = firmest(below, of-want+1)
		}
	}
	for _, c := range carry {
		f.p, f.few, f.sampled = max(f.p, c.p), f.few || c.few, f.sampled || c.sampled
	}
	if f.dir < 0 {
		f.p = min(1, f.p*float64(of-1))
	}
	if f.p > family || f.few {
		f.gap = "and its neighbours are too close to tell"
	}
	return f
}

// firmest are the n findings that decide most firmly.
func firmest(fs []finding, n int) []finding {
	fs = slices.Clone(fs)
	slices.SortStableFunc(fs, func(a, b finding) int {
		switch {
		case isFirmer(a, b):
			return -1
		case isFirmer(b, a):
			return 1
		}
		return 0
	})
	return fs[:min(n, len(fs))]
}

func sameOperand(a, b plan.Operand) bool {
	same := a.Quantity == b.Quantity && a.Statistic == b.Statistic && a.Published == b.Published && len(a.Where) == len(b.Where)
	for i := range a.Where {
		same = same && a.Where[i].Key == b.Where[i].Key && slices.Equal(a.Where[i].Values, b.Where[i].Values)
	}
	return same && a.Constant == nil && b.Constant == nil
}

// outcome wants the steps to have ended as the claim states, in every round in which they
// ended. It is not a statistic, and one round is enough. On the author's side
// it is what the protocol expects of the steps.
func (j judge) outcome(a plan.Assert) finding {
	if j.author {
		return j.s.expected(a)
	}
	ok, bad, missing := 0, 0, ""
	var wrong []string
	for _, sub := range j.s.cases {
		if !sub.matches(a.Where) {
			continue
		}
		steps := sub.endedSteps(a.Step, a.Where)
		for _, st := range steps {
			if failed := st.Error != ""; failed == (a.Outcome == "fail") {
				ok++
				continue
			}
			bad++
			wrong = append(wrong, fmt.Sprintf("%s, round %d: %s", sub.c.ID, st.Round, cmp.Or(st.Error, "no error")))
		}
		if len(steps) == 0 || sub.c.Status != result.Done {
			missing = join(missing, j.s.absent(sub, a.Step, a.Where))
		}
	}
	slices.Sort(wrong)
	f := finding{dir: 1, need: fmt.Sprintf("%s to end as %q", a.Step, a.Outcome),
		saw: fmt.Sprintf("%s ended as %q %d of %s", a.Step, a.Outcome, ok, plural(ok+bad, "time"))}
	f.evidence = append([]string{f.saw}, wrong...)
	switch {
	case bad > 0:
		f.dir = -1
	case missing != "":
		return finding{missing: missing}
	case ok == 0:
		return finding{missing: fmt.Sprintf("no step %s was run with %s", a.Step, selectorText(a.Where))}
	}
	return f
}

// endedSteps are the steps of a kind that the selector picks, of the rounds that were run to an end, good or bad: a step
// of an interrupted round does not count.
func (sub *caseData) endedSteps(do string, sel plan.Selector) (out []*result.Step) {
	ended := map[int]bool{}
	for _, r := range sub.c.Rounds {
		ended[r.Round] = r.Status == result.Done || r.Status == result.Failed
	}
	for i := range sub.c.Steps {
		st := &sub.c.Steps[i]
		if st.Do == do && ended[st.Round] && (stepKey{st.Do, st.Phase, st.Cycle}).matches(sel) {
			out = append(out, st)
		}
	}
	return out
}
