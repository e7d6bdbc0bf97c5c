package analysis

import (
	"math"
	"slices"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// waited are the quantities whose intervals rounds = "auto" waits for: the rates, and
// whatever else a published figure, a claim, a fit or a relation of the plan speaks of.
// What no one asked about, such as how long a detach takes, is not worth a round.
func (s *study) waited(q plan.Quantity) bool {
	if rate(q) {
		return true
	}
	for _, p := range s.p.Published {
		if p.Quantity == q {
			return true
		}
	}
	for _, f := range s.p.Fits {
		if f.Quantity == q {
			return true
		}
	}
	for _, r := range s.p.Relations {
		if r.X.Quantity == q || r.Y.Quantity == q {
			return true
		}
	}
	return slices.ContainsFunc(s.p.Claims, func(c plan.Claim) bool {
		return slices.ContainsFunc(s.operands(c.Assert), func(op plan.Operand) bool { return op.Quantity == q })
	})
}

// Widths says which headlines that the plan is about are not yet as certain as rounds = "auto" wants them,
// and how many can have an interval at all. r is what was measured so far and is
// left alone. The intervals are those that [Analyse] gives, at the level that they
// have at every look.
//
// A headline waits for its interval below [minRounds] rounds that count; one that
// has none although there are so many never will, and is not judged. Neither is a
// value of exactly zero that does not vary.
func Widths(p *plan.Plan, r *result.Result) (judged int, wide []result.WideInterval, err error) {
	own := *r
	own.Cases = append([]result.Case{}, r.Cases...) // warnings are added to cases
	s, err := newStudy(p, &own)
	if err != nil {
		return 0, nil, err
	}
	wide = []result.WideInterval{}
	for _, sum := range s.summaries() {
		e, ok := estimate(sum.Estimates, sum.Headline)
		if i := slices.IndexFunc(own.Cases, func(c result.Case) bool { return c.ID == sum.Case }); !own.Cases[i].Measured() {
			continue // more rounds of it will not help
		}
		if !ok || !s.waited(plan.Quantity(sum.Op)) || e.CI == nil && sum.Rounds >= minRounds {
			continue
		}
		judged++
		half := -1.0
		if e.CI != nil && sum.Rounds >= minRounds {
			if half = halfWidth(e); half <= float64(p.Run.Precision) {
				continue
			}
			if math.IsInf(half, 0) || math.IsNaN(half) {
				half = -1
			}
		}
		wide = append(wide, result.WideInterval{Case: sum.Case, Phase: sum.Phase, Op: sum.Op, Cycle: sum.Cycle, Half: half})
	}
	return judged, wide, nil
}

// halfWidth is half the width of an estimate's interval as a share of its value:
// 0 where nothing varies, infinite about zero.
func halfWidth(e result.Estimate) float64 {
	if e.CI.High == e.CI.Low {
		return 0
	}
	return (e.CI.High - e.CI.Low) / 2 / math.Abs(e.Value)
}

// narrower says what would narrow an interval.
func (s *study) narrower() string {
	if a := s.r.Auto; a != nil && len(a.Decisions) > 0 {
		switch a.Decisions[len(a.Decisions)-1].Stop {
		case result.StopTime:
			return "the run ended at its limit of time"
		case result.StopWritten:
			return "the run ended at its limit of bytes written"
		case result.StopRounds:
			return "the run ended at its limit of rounds"
		}
	}
	return "more rounds would narrow it"
}
