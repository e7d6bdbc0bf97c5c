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
func (x *exam) compare(ctx context.Context, v versions) (out compareOutcome, err error) {
	p, err := v.design.plan()
	if err != nil {
		return out, err
	}
	all := make([]*analysis.Comparison, v.runs)
	err = each(ctx, v.runs, func(ctx context.Context, i int) error {
		seed := x.runSeed(append(v.seed[:len(v.seed):len(v.seed)], i)...)
		var err error
		all[i], err = x.compareOnce(ctx, p, v, seed)
		return err
	})
	if err != nil {
		return out, err
	}
	for _, c := range all {
		isChanged := func(r analysis.CompareRow) bool { return r.Status == analysis.RowChanged }
		out.changed.add(slices.ContainsFunc(c.Rows, isChanged))
		out.claimChanged.add(slices.ContainsFunc(c.Claims, func(k analysis.ClaimChange) bool { return k.Changed }))
		out.regressed.add(c.Regression)
	}
	return out, nil
}

func (x *exam) compareOnce(ctx context.Context, p *plan.Plan, v versions, seed uint64) (*analysis.Comparison, error) {
	var runs []*result.Result
	for version, m := range v.laws {
		for k := range v.sessions {
			r, err := x.stage.measured(ctx, p, m, seed, 1+version*v.sessions+k)
			if err == nil && len(p.Claims) > 0 {
				err = analysis.Analyze(p, r, analysis.Options{SkipRobustness: true})
			}
			if err != nil {
				return nil, err
			}
			for i := range r.Sessions {
				r.Sessions[i].Host.OSBuild = fmt.Sprintf("build %d", version+1)
			}
			runs = append(runs, r)
		}
	}
	o := analysis.CompareOptions{By: []string{"os_build"}, Plans: map[string]*plan.Plan{runs[0].Plan.Digest: p}}
	return analysis.Compare(runs, o)
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
func (x *exam) comparisons(ctx context.Context, d *draft) error {
	d.fillHow(x.runs(200, 20))
	alike := newGrid("Comparisons of equal sides with any row called changed, %", "scatter")
	slower := newGrid("Comparisons in which the later side is 10 % slower, with any row called changed, %", "scatter")
	exits := newGrid("Of the same comparisons, those that end with 5 (slower by more than 5 %), %", "scatter")
	for _, scatter := range choose(x, []string{"0", "1", "3", "10"}, []string{"3"}) {
		row := "sessions " + scatter + " %"
		for _, n := range x.comparedSessions() {
			compare := func(rate string) (compareOutcome, error) {
				m := func(rate string) simulated.Machine {
					return law("write = " + rate + " GB/s;read = " + rate +
						" GB/s;step = 20 ms;file_noise = 3%;mount_noise = 2%;session_noise = " + scatter + "%")
				}
				own := design{formats: fourFormats[:2], sizes: fewSizes, sets: 1, rounds: 3, read: true}
				return x.compare(ctx, versions{design: own, laws: [2]simulated.Machine{m("5"), m(rate)}, sessions: n,
					runs: x.runs(200, 20), seed: []any{"compare", scatter, rate, n}})
			}
			same, err := compare("5")
			if err != nil {
				return err
			}
			changed, err := compare("4.5")
			if err != nil {
				return err
			}
			column := aSide(n)
			*alike.at(row, column), *slower.at(row, column) = same.changed, changed.changed
			*exits.at(row, column) = changed.regressed
			d.bounds[0].share(row+", "+column, same.changed)
			if n == 1 {
				worst := max(same.changed.rate(), changed.changed.rate(), changed.regressed.rate())
				d.bounds[1].take(row+", both ways", worst, 0, changed.changed.n)
			}
		}
	}
	d.add(alike, slower, exits)
	return nil
}

// requiredClaims: how often does compare end with 5 for a claim with require =
// true?
func (x *exam) requiredClaims(ctx context.Context, d *draft) error {
	d.fillHow(x.runs(600, 20), countClaims(nullClaims), x.runs(200, 20))
	same := newGrid("Comparisons of equal sides that end with 5, %", "scatter")
	turned := newGrid("Comparisons that find that a required claim no longer holds, %", "scatter")
	for _, own := range choose(x, []string{"0", "3", "10"}, []string{"10"}) {
		noise := "file_noise = 3%;mount_noise = 2%;own_noise = " + own + "%"
		row := own + " % between kinds and sessions"
		for _, n := range x.comparedSessions() {
			compare := func(claims string, runs int, before, after simulated.Machine) (compareOutcome, error) {
				count := countClaims(claims)
				claims = strings.ReplaceAll(claims, "[[claim]]\n", "[[claim]]\nrequire = true\n")
				return x.compare(ctx, versions{laws: [2]simulated.Machine{before, after}, sessions: n, runs: runs,
					seed:   []any{"require", own, count, n},
					design: design{formats: fourFormats, sizes: fewSizes, sets: 1, rounds: 3, claims: claims}})
			}
			null, err := compare(nullClaims, x.runs(600, 20), nullLaw(noise), nullLaw(noise))
			if err != nil {
				return err
			}
			changed, err := compare(fasterClaim, x.runs(200, 20), udsbLaw(noise, "5.5"), udsbLaw(noise, "4.5"))
			if err != nil {
				return err
			}
			column := aSide(n)
			*same.at(row, column), *turned.at(row, column) = null.regressed, changed.claimChanged
			d.bounds[0].share(row+", "+column, null.regressed)
		}
	}
	d.add(same, turned)
	return nil
}
