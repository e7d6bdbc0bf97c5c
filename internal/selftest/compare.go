package selftest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/analysis"
	"dmgbench/internal/engine/simulated"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// versions are two versions of a system that are compared with each other.
type versions struct {
	design design
	// Before and after
	laws [2]simulated.Machine
	// Of each
	sessions int
	runs     int
	seed     []any
}

// compareOutcome is what compare reports of two versions.
type compareOutcome struct{ changed, regressed, claimChanged share }

// compare plays the sessions of both versions, and counts what compare reports
// of them.
func (x *exam) compare(v versions) (out compareOutcome) {
	all := make([]analysis.Comparison, v.runs)
	x.repeat(v.design, v.runs, v.seed, func(ctx context.Context, p *plan.Plan, seed uint64, i int) error {
		var sessions []*result.Result
		for k := range 2 * v.sessions {
			version := k / v.sessions
			r, err := x.measure(ctx, p, v.laws[version], seed, 1+k)
			if err == nil && len(p.Claims) > 0 {
				err = analysis.Analyze(p, r, analysis.Options{SkipRobustness: true})
			}
			if err != nil {
				return err
			}
			for s := range r.Sessions {
				r.Sessions[s].Host.OSBuild = fmt.Sprintf("build %d", version+1)
			}
			sessions = append(sessions, r)
		}
		c, err := analysis.Compare(sessions, analysis.CompareOptions{By: []string{"os_build"},
			Plans: map[string]*plan.Plan{sessions[0].Plan.Digest: p}})
		if err == nil {
			all[i] = *c
		}
		return err
	})
	for _, c := range all {
		isChanged := func(r analysis.CompareRow) bool { return r.Status == analysis.RowChanged }
		out.changed.add(slices.ContainsFunc(c.Rows, isChanged))
		out.claimChanged.add(slices.ContainsFunc(c.Claims, func(k analysis.ClaimChange) bool { return k.Changed }))
		out.regressed.add(c.Regression)
	}
	return out
}

// comparedSessions are the numbers of sessions on each side.
func (x *exam) comparedSessions() []int { return choose(x, []int{1, 3, 5}, []int{1, 3}) }

func aSide(sessions int) string {
	if sessions == 1 {
		return "1 session a side"
	}
	return fmt.Sprintf("%d sessions a side", sessions)
}

// comparisons: what does compare report of two sides that are alike, and of two
// that are not?
func (x *exam) comparisons(s *Study) {
	runs := choose(x, 200, 20)
	s.fillHow(runs)
	alike := newGrid("Comparisons of equal sides with any row called changed, %", "scatter")
	slower := newGrid("Comparisons in which the later side is 10 % slower, with any row called changed, %", "scatter")
	exits := newGrid("Of the same comparisons, those that end with 5 (slower by more than 5 %), %", "scatter")
	own := design{Formats: fourFormats[:2], Sizes: fewSizes, Sets: 1, Rounds: 3, Read: true}
	for _, scatter := range choose(x, []string{"0", "1", "3", "10"}, []string{"3"}) {
		for _, n := range x.comparedSessions() {
			compare := func(rate string) compareOutcome { // of 5 GB/s with another rate
				m := func(rate string) simulated.Machine {
					return law("write = " + rate + " GB/s;read = " + rate +
						" GB/s;step = 20 ms;file_noise = 3%;mount_noise = 2%;session_noise = " + scatter + "%")
				}
				return x.compare(versions{design: own, laws: [2]simulated.Machine{m("5"), m(rate)}, sessions: n,
					runs: runs, seed: []any{"compare", scatter, rate, n}})
			}
			same, changed := compare("5"), compare("4.5")
			row, column := "sessions "+scatter+" %", aSide(n)
			*alike.at(row, column), *slower.at(row, column) = same.changed, changed.changed
			*exits.at(row, column) = changed.regressed
			alike.check(&s.Promises[0], row, column)
			if n == 1 {
				worst := max(same.changed.rate(), changed.changed.rate(), changed.regressed.rate())
				s.Promises[1].take(row+", both ways", worst, 0, runs)
			}
		}
	}
	s.add(alike, slower, exits)
}

// requiredClaims: how often does compare end with 5 for a claim with require =
// true?
func (x *exam) requiredClaims(s *Study) {
	many, few := choose(x, 600, 20), choose(x, 200, 20)
	s.fillHow(many, countClaims(nullClaims), few)
	same := newGrid("Comparisons of equal sides that end with 5, %", "scatter")
	turned := newGrid("Comparisons that find that a required claim no longer holds, %", "scatter")
	for _, own := range choose(x, []string{"0", "3", "10"}, []string{"10"}) {
		noise := "file_noise = 3%;mount_noise = 2%;own_noise = " + own + "%"
		for _, n := range x.comparedSessions() {
			compare := func(claims string, runs int, before, after simulated.Machine) compareOutcome {
				required := strings.ReplaceAll(claims, "[[claim]]\n", "[[claim]]\nrequire = true\n")
				return x.compare(versions{design: claimDesign(3, required), laws: [2]simulated.Machine{before, after},
					sessions: n, runs: runs, seed: []any{"require", own, countClaims(claims), n}})
			}
			row, column := own+" % between kinds and sessions", aSide(n)
			*same.at(row, column) = compare(nullClaims, many, nullLaw(noise), nullLaw(noise)).regressed
			changed := compare(fasterClaim, few, udsbLaw(noise, "5.5"), udsbLaw(noise, "4.5"))
			*turned.at(row, column) = changed.claimChanged
			same.check(&s.Promises[0], row, column)
		}
	}
	s.add(same, turned)
}
