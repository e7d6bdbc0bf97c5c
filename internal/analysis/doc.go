// Package analysis turns a plan and the folded result of its run into
// summaries, fits, relations, departures, warnings and verdicts.
//
// [Analyze] is a pure function of the two: no clock, no files, no random
// numbers but those that internal/stats seeds from the data. The same input
// gives the same output, and a second call makes no change.
//
// # What it rests on
//
// The round is the unit of replication. The files of one mount are not
// independent draws, so every comparison rests on one value a round and case,
// paired by round: ratios through logarithms, differences as they are, with
// Student's t interval, from three rounds on. With fewer rounds a verdict is
// cannot_tell, with the direction seen.
//
// # What it refuses to do
//
// It adds no rates of workers, removes no outlier, and gives no interval that
// the sample is too small for. It judges a claim about Apple's tools only
// where Apple's tools were measured. It hides no failed case: a claim that
// needs one is not_measured, with the reason.
package analysis

import (
	"math"
	"slices"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// Options of [Analyze].
type Options struct {
	// SkipRobustness leaves out the [result.Robustness] of verdicts. It takes half of the time of an analysis and
	// changes no verdict, so that studies of thousands of runs do without it.
	SkipRobustness bool
}

// Analyze fills the summaries, fits, relations, claims and tables of r, and adds
// departures and warnings to what the runner recorded. p is the plan as
// executed.
func Analyze(p *plan.Plan, r *result.Result, o Options) error {
	s, err := newRunData(p, r)
	if err != nil {
		return err
	}
	s.robust = !o.SkipRobustness
	r.Departures = mergeDepartures(r.Departures, s.departures())
	s.indexDepartures(r.Departures)
	s.hostWarnings()
	r.Summaries = s.summaries()
	r.Fits = s.fits()
	r.Relations = s.relations()
	r.Claims = s.claims()
	removeNonFinite(r)
	r.Tables = s.tables()
	return nil
}

// The level of every interval, and the family-wise error of all verdicts of a
// plan together.
const (
	level  = 0.95
	family = 0.05
)

// minRounds is the least number of rounds for an interval, and so for a verdict.
const minRounds = 3

// noNumber is why something is withheld that left the range of numbers, as a
// power law does at zero.
const noNumber = "the result is not a finite number"

func finite(vs ...float64) bool {
	return !slices.ContainsFunc(vs, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}

// removeNonFinite removes numbers that are not finite, which JSON does not have, and
// gives the reason.
func removeNonFinite(r *result.Result) {
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
		removeNonFiniteFit(&r.Fits[i])
	}
	for i := range r.Relations {
		rel := &r.Relations[i]
		rel.Points = slices.DeleteFunc(rel.Points, func(p result.RelationPoint) bool { return !finite(p.X, p.Y) })
		if !finite(rel.Spearman) {
			rel.Spearman, rel.Reason = 0, join(rel.Reason, noNumber)
		}
	}
}

func removeNonFiniteFit(f *result.Fit) {
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
