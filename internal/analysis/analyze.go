// Package analysis turns a plan and the folded result of its run into
// summaries, fits, relations, deviations, warnings and verdicts.
//
// [Analyze] is a pure function of the two: no clock, no files, no random
// numbers but those that internal/analysis/stats seeds from the data. The same input
// gives the same output, and a second call makes no change.
//
// # From a sample to a verdict
//
// runData indexes the steps of each case (rundata.go). A quantity has one value
// a round ([plan.Quantities]; rates of files under an estimator,
// files.go), and an operand of a claim has the rounds of its cells.
// A scale averages rounds and tests their centre against a bound (scale.go);
// what that shows is a finding (finding.go), and findings become verdicts after
// Holm's correction over the claims of the plan (claims.go). The candidates of a
// use are compared in the same way (uses.go). Comparisons,
// histories and ledgers of several runs use the same values (compare.go,
// history.go, ledger.go). The sentences are in internal/report/wording.
//
// # Principles
//
// The round is the unit of replication. The files of one mount are not
// independent draws, so every comparison uses one value a round and case,
// paired by round: ratios through logarithms, differences as they are, with
// Student's t interval, from three rounds on. With fewer rounds a verdict is
// cannot_tell, with the direction seen.
//
// # Limits
//
// It adds no rates of workers, removes no outlier, and gives no interval for
// which the sample is too small. It judges a claim about Apple's tools only
// where Apple's tools were measured. It hides no failed case: a claim that
// needs one is not_measured, with the reason.
package analysis

import (
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// Options of [Analyze].
type Options struct {
	// SkipWarnings leaves out the warnings of summaries, for screens that do not
	// show them: those about single files take seconds for 100,000 files.
	SkipWarnings bool
}

// Analyze fills the summaries, fits, relations, claims, tables and uses of r, and
// adds deviations and warnings to what the runner recorded. p is the plan as
// executed.
func Analyze(p *plan.Plan, r *result.Result, o Options) error {
	s, err := newRunData(p, r)
	if err != nil {
		return err
	}
	s.skipWarnings = o.SkipWarnings
	if !o.SkipWarnings {
		keepFileWarnings(r)
	}
	r.Departures = s.departures()
	s.runWarnings()
	r.Summaries = s.summaries()
	j := judge{s: s, est: s.headlineName()}
	r.Fits = mapped(p.Fits, func(f plan.Fit) result.Fit { return fitResult(f, j.fit(f)) })
	r.Relations = mapped(p.Relations, j.relation)
	r.Claims = s.claims()
	r.Tables = s.tables()
	r.Uses = s.uses()
	r.Verbs = s.verbs()
	return nil
}
