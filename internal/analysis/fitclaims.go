package analysis

import (
	"fmt"
	"math"
	"slices"

	"dmgbench/internal/plan"
)

func (s *study) fitNamed(name string) (plan.Fit, bool) {
	i := slices.IndexFunc(s.p.Fits, func(f plan.Fit) bool { return f.Name == name })
	if i < 0 {
		return plan.Fit{}, false
	}
	return s.p.Fits[i], true
}

// fit is a fit of the plan on the side that is judged.
func (j judge) fit(name string) (plan.Fit, fitted) {
	f, ok := j.s.fitNamed(name)
	if !ok {
		return f, fitted{reason: fmt.Sprintf("the plan has no fit %q", name)}
	}
	if j.author {
		return f, j.s.printedFit(f)
	}
	if missing := j.unmeasured(plan.Operand{Quantity: f.Quantity, Where: f.Where}); missing != "" {
		return f, fitted{reason: missing}
	}
	return f, j.s.measuredFit(f, j.est)
}

// coefficient bounds a coefficient of a fit, fitted in each round by itself. On
// the author's side it is fitted to his points, or, where he prints none, taken
// as he prints it.
func (j judge) coefficient(a plan.Assert) finding {
	f, x := j.fit(a.Fit)
	phrase := func(v string) string { return fmt.Sprintf("the %s of fit %s is %s", a.Coefficient, a.Fit, v) }
	unit := orElse(a.Bound.Unit, "1")
	if j.author {
		v, ok := x.whole.values[a.Coefficient]
		if x.reason != "" {
			i := slices.IndexFunc(f.Published, func(c plan.Coefficient) bool { return c.Name == a.Coefficient })
			if i < 0 {
				return finding{missing: x.reason}
			}
			v, ok = f.Published[i].Value, true
		}
		if !ok {
			return finding{missing: fmt.Sprintf("a %s has no coefficient %q", f.Model, a.Coefficient)}
		}
		one := side{fixed: true, low: 1, high: 1}
		return printed(side{fixed: true, low: v, high: v}, one, a.Bound, func(x, _ float64) float64 { return x }, unit, phrase)
	}
	if x.reason != "" {
		return finding{missing: x.reason}
	}
	var vs []float64
	for _, c := range x.curves {
		v, ok := c.values[a.Coefficient]
		if !ok {
			return finding{missing: fmt.Sprintf("a %s has no coefficient %q", f.Model, a.Coefficient)}
		}
		vs = append(vs, v)
	}
	a.Bound.Unit = unit
	sc := plainScale.over(j.s.per).absolute(unit)
	if a.Coefficient != "r2" {
		return judgeRounds(sc, unit, vs, a.Bound, phrase)
	}
	sc.from = asShare
	out := judgeRounds(sc, unit, vs, beyondShares(a.Bound), phrase)
	if out.need != "" {
		out.need = boundText(a.Bound)
	}
	return out
}

// asShare keeps the ends of an interval of shares, such as that of R², among the shares.
func asShare(x float64) float64 { return min(max(x, 0), 1) }

// beyondShares opens the ends of a bound that no share can pass: there is nothing
// to test at them, where the t distribution would still see something beyond.
func beyondShares(b plan.Bound) plan.Bound {
	if b.Low <= 0 && !b.LowOpen {
		b.Low = math.Inf(-1)
	}
	if b.High >= 1 && !b.HighOpen {
		b.High = math.Inf(1)
	}
	return b
}

// prediction sets a value against what the fit says for it: left / predicted.
func (j judge) prediction(a plan.Assert) finding {
	f, x := j.fit(a.Fit)
	if x.reason != "" {
		return finding{missing: x.reason}
	}
	if len(a.At) == 0 {
		return finding{weak: "the claim names no point of the prediction"}
	}
	at, ok := number(a.At[0])
	if !ok {
		return finding{weak: fmt.Sprintf("%q is no number", a.At[0])}
	}
	left := j.sides(a.Left)[0]
	said := side{q: f.Quantity, unit: left.unit, label: fmt.Sprintf("what fit %s predicts at %s", a.Fit, a.At[0])}
	if j.author {
		said.fixed = true
		said.low = x.whole.at(at)
		said.high, said.text = said.low, show(said.low, said.unit)
	}
	for i, c := range x.curves {
		said.rounds, said.values = append(said.rounds, x.rounds[i]), append(said.values, c.at(at))
	}
	return ratio(left, said, a.Bound)
}

// operands lists every operand inside a test, those of its fits included.
func (s *study) operands(a plan.Assert) []plan.Operand {
	var out []plan.Operand
	for _, op := range append([]plan.Operand{a.Left, a.Right}, a.Of...) {
		if op.Quantity != "" && op.Constant == nil {
			out = append(out, op)
		}
	}
	if f, ok := s.fitNamed(a.Fit); ok && a.Fit != "" {
		out = append(out, plan.Operand{Quantity: f.Quantity, Where: f.Where})
	}
	for _, p := range a.Parts {
		out = append(out, s.operands(p)...)
	}
	return out
}
