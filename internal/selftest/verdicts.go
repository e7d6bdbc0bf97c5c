package selftest

import (
	"context"
	"fmt"

	"dmgbench/internal/result"
)

// decidedClaims reports whether any claim of a plan whose truths are on their
// bounds was decided, and whether any that compares rates of one session with
// each other was.
func decidedClaims(r *result.Result) []bool {
	out := make([]bool, 2)
	for _, c := range r.Claims {
		if c.Verdict == result.Holds || c.Verdict == result.DoesNotHold {
			out[0] = true
			out[1] = out[1] || !absoluteClaims[c.ID]
		}
	}
	return out
}

// nullDesign is a plan with all claims whose truths are on their bounds.
func nullDesign(rounds int) design {
	return design{formats: fourFormats, sizes: fewSizes, sets: 1, rounds: rounds, claims: nullClaims}
}

// falseVerdicts counts plans in which a verdict is given that is not so.
func (x *exam) falseVerdicts(ctx context.Context, d *draft) error {
	d.fillHow(x.runs(600, 60), countClaims(nullClaims))
	g := newGrid("Plans with any false verdict, %", "what differs")
	for _, noise := range choose(x, d.laws, d.laws[2:3]) {
		for _, n := range choose(x, []int{3, 8}, []int{3}) {
			t := trial{design: nullDesign(n), law: nullLaw("file_noise = 3%;" + noise[1]), runs: x.runs(600, 60),
				seed: []any{"verdicts", noise[0], n}, varied: true}
			all, ratios := g.at(noise[0], roundsText(n)), g.at(noise[0], "of them ratios, "+roundsText(n))
			if err := x.count(ctx, t, decidedClaims, all, ratios); err != nil {
				return err
			}
			d.bounds[0].share(noise[0]+", "+roundsText(n), *all)
		}
	}
	d.add(g)
	return x.ownNoise(ctx, d)
}

// ownNoise counts false verdicts where each session favors kinds of images of
// its own.
func (x *exam) ownNoise(ctx context.Context, d *draft) error {
	g := newGrid("The same where a session favours kinds of images, 3 rounds a session, %", "scatter")
	for _, own := range choose(x, []string{"0", "1", "3", "10"}, []string{"3"}) {
		for _, n := range choose(x, []int{1, 3, 5}, []int{1, 3}) {
			t := trial{design: nullDesign(3), law: nullLaw("file_noise = 3%;mount_noise = 2%;own_noise = " + own + "%"),
				runs: x.runs(400, 40), seed: []any{"own", own, n}, pooled: n}
			column := fmt.Sprintf("%d sessions pooled", n)
			if n == 1 {
				column = "1 session"
			}
			if err := x.count(ctx, t, decidedClaims, g.at(own+" % between kinds and sessions", column)); err != nil {
				return err
			}
		}
	}
	d.add(g)
	return nil
}

// fasterRates are the rates in GB/s that are 5 and 10 % above 5 GB/s.
var fasterRates = [][2]string{{"5", "5.25"}, {"10", "5.5"}}

// power: how often is a true difference found?
func (x *exam) power(ctx context.Context, d *draft) error {
	d.fillHow(x.runs(400, 40))
	g := newGrid("Runs with the verdict \"holds\", %", "effect and scatter")
	verdict := func(r *result.Result) []bool {
		return []bool{r.Claims[0].Verdict == result.Holds, r.Claims[0].Verdict == result.DoesNotHold}
	}
	for _, faster := range fasterRates {
		for _, noise := range choose(x, []string{"1", "3", "10"}, []string{"1"}) {
			row := fmt.Sprintf("%s %% faster, mounts %s %%", faster[0], noise)
			for _, n := range choose(x, []int{3, 5, 10, 20}, []int{5}) {
				own := design{formats: fourFormats[:2], sizes: fewSizes, sets: 1, rounds: n, claims: fasterClaim}
				m := udsbLaw("file_noise = 5%;session_noise = 3%;mount_noise = "+noise+"%", faster[1])
				t := trial{design: own, law: m, runs: x.runs(400, 40), seed: []any{"power", faster[0], noise, n},
					varied: true}
				column, opposite := roundsText(n), share{}
				if err := x.count(ctx, t, verdict, g.at(row, column), &opposite); err != nil {
					return err
				}
				d.bounds[1].share(row+", "+column, opposite)
				if faster[0] == "10" && noise == "1" && n == 5 {
					d.bounds[0].share(row+", "+column, *g.at(row, column))
				}
			}
		}
	}
	d.add(g)
	return nil
}
