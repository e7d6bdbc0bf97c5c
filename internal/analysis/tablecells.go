package analysis

import (
	"fmt"
	"math"
	"slices"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// coefficientCell is a coefficient of a fit of the plan, as the fit has it.
func (s *study) coefficientCell(l plan.TableLine) result.TableCell {
	out := result.TableCell{Fit: l.Fit}
	f, ok := s.fitNamed(l.Fit)
	if !ok {
		return result.TableCell{Why: orElse(l.Fit, "nothing") + " is no fit of the plan"}
	}
	unit, inverse := plan.CoefficientUnit(f, l.Coefficient)
	out.Why = "not fitted"
	if i := slices.IndexFunc(s.r.Fits, func(f result.Fit) bool { return f.Name == l.Fit }); i >= 0 {
		fit := &s.r.Fits[i]
		k := slices.IndexFunc(fit.Coefficients, func(c result.Coefficient) bool { return c.Name == l.Coefficient })
		switch {
		case fit.Reason != "":
			out.Why = fit.Reason
		case k >= 0:
			out.Estimate, out.Why = coefficientEstimate(&fit.Coefficients[k], unit, inverse)
		}
	}
	if i := slices.IndexFunc(f.Published, func(c plan.Coefficient) bool { return c.Name == l.Coefficient }); i >= 0 {
		out.Published = s.printedCoefficient(f, f.Published[i], unit, inverse, out.Estimate)
	}
	return out
}

// coefficientEstimate puts a coefficient into the form of any figure. Of one that
// is told by its inverse the ends of the interval change places, and one that is
// not above 0 has none.
func coefficientEstimate(c *result.Coefficient, unit string, inverse bool) (*result.Estimate, string) {
	e := &result.Estimate{Name: c.Name, Value: c.Value, Unit: unit, CI: c.CI}
	if c.Name == "r2" {
		e.Why = "R² is told without one"
	} else if c.CI == nil {
		e.Why = fmt.Sprintf("too few rounds: an interval of a coefficient needs %d, or the files of one round", minRounds)
	}
	if !inverse {
		return e, ""
	}
	if c.Value <= 0 || !finite(1/c.Value) {
		return nil, "the fitted time does not grow with the size"
	}
	e.Value = 1 / c.Value
	if ci := c.CI; ci != nil {
		turned := *ci
		turned.Low, turned.High = 1/ci.High, 1/ci.Low
		if e.CI = &turned; ci.Low <= 0 || !finite(turned.Low, turned.High) {
			e.CI, e.Why = nil, "the interval of the slope has no inverse: it reaches 0"
		}
	}
	return e, ""
}

func (s *study) printedCoefficient(f plan.Fit, c plan.Coefficient, unit string, inverse bool, e *result.Estimate) *result.PublishedValue {
	if inverse && !finite(1/c.Value) {
		return nil // a printed slope of nothing is no rate
	}
	out := &result.PublishedValue{Text: c.Text, Kind: "is", Low: c.Value, High: c.Value, Unit: unit, On: onText(s.where(plan.Published{}))}
	if inverse {
		out.Text, out.Low = "", 1/c.Value
		out.High = out.Low
	}
	if e == nil || out.Low == 0 || !finite(out.Low) {
		return out
	}
	if r := e.Value / out.Low; finite(r) && !math.Signbit(r) {
		out.Ratio, out.Estimate = r, e.Name
	}
	for _, sub := range s.cases {
		if sub.matches(f.Where) {
			if out.Comparable = s.comparable(sub.c.ID); !out.Comparable {
				break
			}
		}
	}
	return out
}

// outcomeCell is how the steps of one kind ended, in all rounds that were run to
// an end.
func (s *study) outcomeCell(l plan.TableLine) result.TableCell {
	var out result.TableCell
	o := result.TableOutcome{Do: l.Step}
	why := ""
	rounds := map[int]bool{}
	test := plan.Assert{Step: l.Step, Where: l.Where}
	for _, sub := range s.cases {
		if !sub.matches(l.Where) {
			continue
		}
		for i := range sub.c.Steps {
			st := &sub.c.Steps[i]
			k := stepKey{st.Do, st.Phase, st.Cycle}
			if st.Do != l.Step || !k.matches(l.Where) || !ended(sub.c, st.Round) {
				continue
			}
			out.Case, out.Phase, out.Cycle = sub.c.ID, st.Phase, st.Cycle
			rounds[st.Round] = true
			if st.Error != "" {
				o.Failed++
			} else {
				o.OK++
			}
		}
		why = join(why, s.notReached(sub, test))
	}
	n := o.OK + o.Failed
	if n == 0 {
		out.Why = orElse(s.notPlanned(l.Step, l.Where), orElse(why, "the step was not reached"))
		return out
	}
	ok, fail := orElse(l.OK, "ok"), orElse(l.Fail, "fails")
	switch n {
	case o.OK:
		o.Text = ok
	case o.Failed:
		o.Text = fail
	default:
		o.Text = fmt.Sprintf("%s %d of %d times, %s %d", ok, o.OK, n, fail, o.Failed)
	}
	out.Outcome, out.Rounds = &o, len(rounds)
	return out
}
