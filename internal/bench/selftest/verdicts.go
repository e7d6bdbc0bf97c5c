package selftest

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/analysis"
	"dmgbench/internal/bench/engine/simulated"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/units"
)

// nullClaims are claims with a truth exactly on their bound under [nullLaw], so
// that a verdict either way is a false alarm.
//
//go:embed nullclaims.toml
var nullClaims string

func countClaims(toml string) int { return strings.Count(toml, "[[claim]]") }

// absoluteClaims compare rates of this session with a constant, where what the
// session was like does not cancel.
var absoluteClaims = map[string]bool{"difference": true, "bound-1": true, "bound-2": true}

// fasterClaim holds where UDSB is written faster than UDRW.
const fasterClaim = `[[claim]]
id = "faster"
says = "Claim faster"
by = "us"
scope = "any"
left = { write = { format = "UDSB" } }
right = { write = { format = "UDRW" } }
ratio = "> 1"
`

// nullLaw is the law under which [nullClaims] are exactly true; noise is more
// of it.
func nullLaw(noise string) simulated.Machine {
	return law(noLatency + noise + ";[UDSP];write = 2.5 GB/s;[ASIF];write = 4.5 GB/s")
}

// udsbLaw is a law under which UDSB is written at a rate in GB/s, UDRW at 5.
func udsbLaw(noise, rate string) simulated.Machine {
	return law(noLatency + noise + ";[UDSB];write = " + rate + " GB/s")
}

// claimDesign is a plan that judges claims.
func claimDesign(rounds int, claims string) design {
	return design{Formats: fourFormats, Sizes: fewSizes, Sets: 1, Rounds: rounds, Claims: claims}
}

// decidedClaims reports whether any claim of a plan whose truths are on their
// bounds was decided, and whether any that compares rates of one session with
// each other was.
func decidedClaims(r *result.Result) (decided, ratios bool) {
	for _, c := range r.Claims {
		if c.Verdict == result.Holds || c.Verdict == result.DoesNotHold {
			decided, ratios = true, ratios || !absoluteClaims[c.ID]
		}
	}
	return decided, ratios
}

// falseVerdicts counts plans in which a verdict is given that is not so.
func (x *exam) falseVerdicts(s *Study) {
	runs := choose(x, 600, 60)
	s.fillHow(runs, countClaims(nullClaims))
	g := newGrid("Plans with any false verdict, %", "what differs")
	for _, noise := range choose(x, s.Laws, s.Laws[2:3]) {
		for _, n := range choose(x, []int{3, 8}, []int{3}) {
			row, column := noise[0], units.Count(n, "round")
			for _, r := range x.play(trial{design: claimDesign(n, nullClaims), runs: runs, varied: true,
				law: nullLaw("file_noise = 3%;" + noise[1]), seed: []any{"verdicts", row, n}}) {
				decided, ratios := decidedClaims(r)
				g.at(row, column).add(decided)
				g.at(row, "of them ratios, "+column).add(ratios)
			}
			g.check(&s.Promises[0], row, column)
		}
	}
	// Sessions that favor kinds of images
	own := newGrid("The same where a session favours kinds of images, 3 rounds a session, %", "scatter")
	for _, scatter := range choose(x, []string{"0", "1", "3", "10"}, []string{"3"}) {
		for _, n := range choose(x, []int{1, 3, 5}, []int{1, 3}) {
			column := fmt.Sprintf("%d sessions pooled", n)
			if n == 1 {
				column = "1 session"
			}
			for _, r := range x.play(trial{design: claimDesign(3, nullClaims), runs: choose(x, 400, 40), pooled: n,
				law:  nullLaw("file_noise = 3%;mount_noise = 2%;own_noise = " + scatter + "%"),
				seed: []any{"own", scatter, n}}) {
				decided, _ := decidedClaims(r)
				own.at(scatter+" % between kinds and sessions", column).add(decided)
			}
		}
	}
	s.add(g, own)
}

// power: how often is a true difference found?
func (x *exam) power(s *Study) {
	runs := choose(x, 400, 40)
	s.fillHow(runs)
	g := newGrid("Runs with the verdict \"holds\", %", "effect and scatter")
	for _, faster := range [][2]string{{"5", "5.25"}, {"10", "5.5"}} { // by per cent: a rate in GB/s
		for _, noise := range choose(x, []string{"1", "3", "10"}, []string{"1"}) {
			row := fmt.Sprintf("%s %% faster, mounts %s %%", faster[0], noise)
			for _, n := range choose(x, []int{3, 5, 10, 20}, []int{5}) {
				m := udsbLaw("file_noise = 5%;session_noise = 3%;mount_noise = "+noise+"%", faster[1])
				t := trial{design: claimDesign(n, fasterClaim), law: m, runs: runs,
					seed: []any{"power", faster[0], noise, n}, varied: true}
				t.design.Formats = fourFormats[:2]
				column, opposite := units.Count(n, "round"), share{}
				for _, r := range x.play(t) {
					g.at(row, column).add(r.Claims[0].Verdict == result.Holds)
					opposite.add(r.Claims[0].Verdict == result.DoesNotHold)
				}
				s.Promises[1].takeShare(row+", "+column, opposite)
				if faster[0] == "10" && noise == "1" && n == 5 {
					g.check(&s.Promises[0], row, column)
				}
			}
		}
	}
	s.add(g)
}

// uses: how often is the right candidate of a use chosen, how often is the best
// one left out, and how often is one of equals preferred?
func (x *exam) uses(s *Study) {
	runs := choose(x, 500, 40)
	s.fillHow(runs)
	right := newGrid("Runs that choose the right candidate, %", "what is true")
	undecided := newGrid("Undecided runs, %", right.corner)
	equal := newGrid("Runs that prefer one of equal candidates, %", right.corner)
	for _, l := range choose(x, s.Laws, [][]string{s.Laws[1], s.Laws[4]}) {
		name, formats, best := l[0], strings.Fields(l[1]), l[3]
		for _, noise := range choose(x, strings.Fields(l[4]), []string{"1"}) {
			// Where mounts scatter much, candidates that differ by less than 10 % are
			// seldom compared to the end; 1 % lets every error through
			matters := map[bool]string{true: "1%", false: "10%"}[noise == "10" && best == ""]
			column, out := fmt.Sprintf("mounts %s %%", noise), share{}
			if best == "" {
				column += ", " + matters + " matters"
			}
			m := law(noLatency + "file_noise = 10%;session_noise = 3%;mount_noise = " + noise + "%;" + l[2])
			d := design{Formats: formats, Sizes: []int64{100e6}, Sets: 40, Rounds: 5, Read: true, Matters: matters}
			seed := []any{"uses", l, noise}
			for _, r := range x.play(trial{design: d, law: m, runs: runs, seed: seed, varied: true}) {
				u := r.Uses[0]
				// Of equal candidates each is the best, and the first represents all
				out.add(!slices.Contains(u.Chosen, cmp.Or(best, formats[0])))
				if best == "" {
					equal.at(name, column).add(u.Choice == result.ChosenOne)
					continue
				}
				right.at(name, column).add(u.Choice == result.ChosenOne && u.Chosen[0] == best)
				undecided.at(name, column).add(u.Choice == result.Undecided)
			}
			s.Promises[2].takeShare(name+", "+column, out)
			if best == "" {
				equal.check(&s.Promises[1], name, column)
			} else if noise == "1" {
				right.check(&s.Promises[0], name, column)
			}
		}
	}
	s.add(right, undecided, equal)
}

// fileKinds are the warnings that look at the files of one step.
var fileKinds = []string{"two-modes", "bimodal", "slow-first", "outliers"}

// fileWarnings: how often are troubles within a step found, and how often
// without cause?
func (x *exam) fileWarnings(s *Study) {
	runs := choose(x, 200, 30)
	s.fillHow(runs)
	g := newGrid("Steps with the warning, %", "what happens", fileKinds...)
	for _, l := range choose(x, s.Laws, [][]string{s.Laws[0], s.Laws[5], s.Laws[8], s.Laws[12]}) {
		// Kind is the warning to be given; sure: nine of ten have to be found
		name, kind, sure := l[0], l[2], l[3] != ""
		var some, broken share // with any warning, and with one of a change of speed
		for _, r := range x.play(trial{design: design{Sizes: goldSizes, Sets: 10, Rounds: 1}, runs: runs,
			law: law(withLatency + l[1]), seed: []any{"warnings", name}}) {
			given := map[string]bool{}
			for _, s := range r.Summaries {
				for _, w := range s.Warnings {
					if s.Op == "write" && slices.Contains(fileKinds, w.Kind) {
						given[w.Kind] = true
					}
				}
			}
			some.add(len(given) > 0)
			// What throttles may by chance look like one break; a step has one
			// of the two.
			broken.add(given["two-modes"] || given["bimodal"])
			for _, k := range fileKinds {
				g.at(name, k).add(given[k])
			}
		}
		switch {
		case kind == "":
			s.Promises[0].takeShare(name, some)
		case kind == "bimodal" && sure:
			s.Promises[1].takeShare(name, broken)
		case sure:
			s.Promises[1].takeShare(name, *g.at(name, kind))
		}
	}
	s.add(g)
}

// drift: does the canary show a machine that changes?
func (x *exam) drift(s *Study) {
	runs := choose(x, 300, 20)
	s.fillHow(runs)
	g := newGrid("Runs with the warning \"drift\", %", "times grow by")
	isDrift := func(w result.Warning) bool { return w.Kind == "drift" }
	// Per case: two steps of the canary's mount and three of the image's.
	own := design{Formats: fourFormats, Sizes: fewSizes[:1], Sets: 1, Rounds: 5, Canary: true}
	for _, drift := range choose(x, []string{"0", "5", "10", "20", "40"}, []string{"0", "20"}) {
		for _, noise := range choose(x, []string{"1", "3", "10"}, []string{"3"}) {
			m := law("write = 5 GB/s;read = 5 GB/s;step = 30 s;file_noise = 3%;" +
				"mount_noise = " + noise + "%;drift = " + drift + "%")
			row, column := drift+" % in an hour", "mounts "+noise+" %"
			for _, r := range x.play(trial{design: own, law: m, runs: runs, seed: []any{"drift", drift, noise}}) {
				g.at(row, column).add(slices.ContainsFunc(r.Warnings, isDrift))
			}
			switch {
			case drift == "0":
				g.check(&s.Promises[0], row, column)
			case drift == "20" && noise != "10":
				g.check(&s.Promises[1], row, column)
			}
		}
	}
	s.add(g)
}

// compareOutcome is what compare reports of two versions.
type compareOutcome struct{ changed, regressed, claimChanged share }

// compare plays the sessions of two versions of a system, as many of each as
// the trial pools: one under the law of the trial, a later one under after. It
// counts what compare reports of them.
func (x *exam) compare(t trial, after simulated.Machine) (out compareOutcome) {
	all := make([]analysis.Comparison, t.runs)
	x.repeat(t.design, t.runs, t.seed, func(ctx context.Context, p *plan.Plan, seed uint64, i int) error {
		var sessions []*result.Result
		for k := range 2 * t.pooled {
			law, build := t.law, "build 1"
			if k >= t.pooled {
				law, build = after, "build 2"
			}
			r, err := x.measure(ctx, p, law, seed, 1+k)
			if err == nil && len(p.Claims) > 0 {
				err = analysis.Analyze(p, r, analysis.Options{})
			}
			if err != nil {
				return err
			}
			for s := range r.Sessions {
				r.Sessions[s].Host.OSBuild = build
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

func aSide(sessions int) string { return units.Count(sessions, "session") + " a side" }

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
		for _, n := range choose(x, []int{1, 3, 5}, []int{1, 3}) {
			compare := func(rate string) compareOutcome { // of 5 GB/s with another rate
				m := func(rate string) simulated.Machine {
					return law("write = " + rate + " GB/s;read = " + rate +
						" GB/s;step = 20 ms;file_noise = 3%;mount_noise = 2%;session_noise = " + scatter + "%")
				}
				return x.compare(trial{design: own, law: m("5"), pooled: n, runs: runs,
					seed: []any{"compare", scatter, rate, n}}, m(rate))
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
		for _, n := range choose(x, []int{1, 3, 5}, []int{1, 3}) {
			compare := func(claims string, runs int, before, after simulated.Machine) compareOutcome {
				required := strings.ReplaceAll(claims, "[[claim]]\n", "[[claim]]\nrequire = true\n")
				return x.compare(trial{design: claimDesign(3, required), law: before, pooled: n, runs: runs,
					seed: []any{"require", own, countClaims(claims), n}}, after)
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
