// Package analysis turns a plan and the folded result of its run into
// summaries, fits, relations, departures, warnings and verdicts.
//
// [Analyse] is a pure function of the two: no clock, no files, no random
// numbers but those that internal/stats seeds from the data. The same input
// gives the same output, and a second call changes nothing.
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
// needs one is not_measured, and says why.
package analysis

import (
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// Analyse fills the summaries, fits, relations, claims and tables of r, and adds
// departures and warnings to what the runner recorded. p is the plan as
// executed.
func Analyse(p *plan.Plan, r *result.Result) error { return analyse(p, r, true) }

// Decide is [Analyse] without the [result.Robustness] of verdicts, which takes half of
// its time and changes none of them: for whoever judges thousands of runs.
func Decide(p *plan.Plan, r *result.Result) error { return analyse(p, r, false) }

func analyse(p *plan.Plan, r *result.Result, robust bool) error {
	s, err := newStudy(p, r)
	if err != nil {
		return err
	}
	s.robust = robust
	r.Departures = merged(r.Departures, s.departures())
	s.index(r.Departures)
	s.hostWarnings()
	r.Summaries = s.summaries()
	r.Fits = s.fits()
	r.Relations = s.relations()
	r.Claims = s.claims()
	withhold(r)
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
