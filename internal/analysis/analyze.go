package analysis

import (
	"cmp"
	"maps"
	"slices"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/wording"
)

// Options of [Analyze].
type Options struct {
	// SkipRobustness leaves out the [result.Robustness] of verdicts. It takes half of the time of an analysis and
	// changes no verdict, so that studies of thousands of runs do without it.
	SkipRobustness bool
}

// Analyze fills the summaries, fits, relations, claims and tables of r, and adds
// deviations and warnings to what the runner recorded. p is the plan as
// executed.
func Analyze(p *plan.Plan, r *result.Result, o Options) error {
	s, err := newRunData(p, r)
	if err != nil {
		return err
	}
	r.Departures = mergeDepartures(r.Departures, s.departures())
	s.indexDepartures(r.Departures)
	s.runWarnings()
	r.Summaries = s.summaries()
	r.Fits = s.fits()
	r.Relations = s.relations()
	r.Claims = s.claims(!o.SkipRobustness)
	removeNonFinite(r)
	r.Tables = s.tables()
	return nil
}

// removeNonFinite removes numbers that are not finite, which JSON does not have, and
// gives the reason: a power law, for instance, has no number at zero.
func removeNonFinite(r *result.Result) {
	for i := range r.Summaries {
		s := &r.Summaries[i]
		s.Estimates = slices.DeleteFunc(s.Estimates, func(e result.Estimate) bool { return !finite(e.Value) })
		for k := range s.Estimates {
			removeNonFiniteCI(&s.Estimates[k])
		}
		for k := range s.Published {
			if v := &s.Published[k]; !finite(v.Ratio) {
				v.Ratio, v.Comparable = 0, false
			}
		}
	}
	isInfinite := func(p [2]float64) bool { return !finite(p[0], p[1]) }
	for i := range r.Fits {
		f := &r.Fits[i]
		f.Points = slices.DeleteFunc(f.Points, isInfinite)
		f.Predictions = slices.DeleteFunc(f.Predictions, isInfinite)
		for k := range f.Coefficients {
			c := &f.Coefficients[k]
			if !finite(c.Value) {
				c.Value, c.CI, f.Reason = 0, nil, wording.Text("not-finite")
			}
			if c.CI != nil && !finite(c.CI.Low, c.CI.High) {
				c.CI = nil
			}
		}
	}
	for i := range r.Relations {
		rel := &r.Relations[i]
		rel.Points = slices.DeleteFunc(rel.Points, func(p result.RelationPoint) bool { return !finite(p.X, p.Y) })
		if !finite(rel.Spearman) {
			rel.Spearman, rel.Reason = 0, wording.Join(rel.Reason, wording.Text("not-finite"))
		}
	}
}

// removeNonFiniteCI removes an interval that is not finite.
func removeNonFiniteCI(e *result.Estimate) {
	if e.CI != nil && !finite(e.CI.Low, e.CI.High) {
		e.CI, e.Why = nil, wording.Text("not-finite")
	}
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
