package analysis

import (
	"cmp"
	"math"
	"reflect"
	"slices"

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

// tests are the kinds of tests of claims, by their names in plans.
var tests map[string]func(judge, plan.Assert) finding

// tests of tests refer to the table
func init() {
	tests = map[string]func(judge, plan.Assert) finding{
		"ratio":       func(j judge, a plan.Assert) finding { return j.pair(a, judgeRatio) },
		"difference":  func(j judge, a plan.Assert) finding { return j.pair(a, judgeDifference) },
		"equal":       judge.equal,
		"bound":       judge.bound,
		"order":       judge.order,
		"rank":        judge.rank,
		"extreme":     judge.extreme,
		"trend":       judge.trend,
		"spread":      func(j judge, a plan.Assert) finding { return j.spread(a.Left, a.Along, a.Bound) },
		"coefficient": judge.coefficient,
		"prediction":  judge.prediction,
		"outcome":     judge.outcome,
		"all":         func(j judge, a plan.Assert) finding { return combineAll(j.parts(a)) },
		"any":         func(j judge, a plan.Assert) finding { return combineAny(j.parts(a)) },
	}
}

// assert evaluates one test.
func (j judge) assert(a plan.Assert) finding {
	if test, ok := tests[a.Kind]; ok {
		return test(j, a)
	}
	return weak("no-test", a.Kind)
}

func (j judge) parts(a plan.Assert) []finding {
	out := make([]finding, len(a.Parts))
	for i, p := range a.Parts {
		out[i] = j.assert(p)
	}
	return out
}

// operandValues evaluates operands that are compared, and names them by what
// they differ in.
func (j judge) operandValues(ops ...plan.Operand) []operandValue {
	var sels []plan.Selector
	measured := false
	for _, op := range ops {
		if op.Constant == nil {
			sels = append(sels, op.Where)
			measured = measured || !op.Published
		}
	}
	labels := wording.Labels(sels)
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

func (j judge) operand(op plan.Operand) operandValue {
	switch {
	case op.Constant != nil:
		out := figureValue(*op.Constant)
		out.label = op.Constant.Text
		return out
	case j.author || op.Published:
		return j.s.publishedValue(op)
	}
	return j.s.measured(op.Quantity, op.Where, cmp.Or(op.Statistic, j.est), j.strict)
}

// pair tests left against right.
func (j judge) pair(a plan.Assert, test func(a, b operandValue, bound plan.Bound) finding) finding {
	x := j.operandValues(a.Left, a.Right)
	return test(x[0], x[1], a.Bound)
}

// equal wants left and right to differ by at most a share of the larger one.
func (j judge) equal(a plan.Assert) finding {
	x, share := j.operandValues(a.Left, a.Right), float64(a.Within)
	f := judgeRatio(x[0], x[1], plan.Bound{Low: 1 - share, High: 1 / (1 - share), Unit: "1"})
	if !f.need.IsZero() {
		f.need = wording.Say("need.equal", wording.Percent(share), f.need)
	}
	return f
}

// bound bounds a value itself.
func (j judge) bound(a plan.Assert) finding {
	x := j.operandValues(a.Left)[0]
	if f, bad := missingValues(x); bad {
		return f
	}
	a.Bound.Unit = x.unit
	phrase := wording.Say("phrase.value", nil, QuantityName(x.q), x.label)
	var f finding
	if x.fixed {
		f = judgePublished(x, exactly(1, 1), a.Bound, first, x.unit, phrase)
	} else {
		f = judgeRounds(x.scale().absolute(x.unit), x.unit, x.values, a.Bound, phrase)
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
	above := plan.Bound{Low: 1 / (1 - float64(a.Within)), High: math.Inf(1), LowOpen: true, Unit: "1"}
	var parts []finding
	for i := range len(x) - 1 {
		parts = append(parts, judgeRatio(x[i], x[i+1], above))
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
		if !reflect.DeepEqual(op, a.Left) {
			ops = append(ops, op)
		}
	}
	x := j.operandValues(ops...)
	if f, bad := missingValues(x...); bad {
		return f
	}
	var above, below []finding
	var seen []wording.Message
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
	f := rankFinding(above, below, a.Rank)
	f.evidence = seen
	f.saw = wording.Say("seen.rank", QuantityName(x[0].q), x[0].label, len(above)+1, len(x))
	return f
}

// rankFinding is the finding of a rank. Where it is the rank asked for, every
// comparison carries it; where it is another one, as many as it takes do.
func rankFinding(above, below []finding, want int) finding {
	f := finding{dir: 1, need: wording.Say("need.rank", want)}
	carry, rank, of := slices.Concat(above, below), len(above)+1, len(above)+len(below)+1
	if rank != want {
		f.dir = -1
		// So many above are one too many
		carry = firmest(above, want)
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
	var wrong []string
	for _, st := range steps {
		if (st.Error != "") != (a.Outcome == "fail") {
			wrong = append(wrong, wording.Text("ended-wrong", st.id, st.Round, cmp.Or(st.Error, "no error")))
		}
	}
	f := finding{dir: 1, need: wording.Say("need.outcome", a.Step, a.Outcome), saw: wording.Say("seen.outcome",
		a.Step, a.Outcome, len(steps)-len(wrong), wording.Count{N: len(steps), Noun: "time"})}
	f.evidence = []wording.Message{f.saw}
	slices.Sort(wrong)
	for _, text := range wrong {
		f.evidence = append(f.evidence, wording.Say("text", text))
	}
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
