package analysis

import (
	"math"
	"slices"

	"dmgbench/internal/result"
)

// noNumber is why something is withheld that left the range of numbers, as a
// power law does at zero.
const noNumber = "the result is no finite number"

func finite(vs ...float64) bool {
	return !slices.ContainsFunc(vs, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}

// withhold takes out what is no finite number, which JSON does not have, and
// says so.
func withhold(r *result.Result) {
	for i := range r.Summaries {
		s := &r.Summaries[i]
		s.Estimates = slices.DeleteFunc(s.Estimates, func(e result.Estimate) bool { return !finite(e.Value) })
		for k := range s.Estimates {
			if e := &s.Estimates[k]; e.CI != nil && !finite(e.CI.Low, e.CI.High) {
				e.CI, e.Why = nil, noNumber
			}
		}
		for k := range s.Published {
			if v := &s.Published[k]; !finite(v.Ratio) {
				v.Ratio, v.Comparable = 0, false
			}
		}
	}
	for i := range r.Fits {
		withholdFit(&r.Fits[i])
	}
	for i := range r.Relations {
		rel := &r.Relations[i]
		rel.Points = slices.DeleteFunc(rel.Points, func(p result.RelationPoint) bool { return !finite(p.X, p.Y) })
		if !finite(rel.Spearman) {
			rel.Spearman, rel.Reason = 0, join(rel.Reason, noNumber)
		}
	}
}

func withholdFit(f *result.Fit) {
	pair := func(p [2]float64) bool { return !finite(p[0], p[1]) }
	f.Points = slices.DeleteFunc(f.Points, pair)
	f.Predictions = slices.DeleteFunc(f.Predictions, pair)
	for k := range f.Coefficients {
		c := &f.Coefficients[k]
		if !finite(c.Value) {
			c.Value, c.CI, f.Reason = 0, nil, noNumber
		}
		if c.CI != nil && !finite(c.CI.Low, c.CI.High) {
			c.CI = nil
		}
	}
}
