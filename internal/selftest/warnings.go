package selftest

import (
	"context"
	"slices"

	"dmgbench/internal/result"
)

// fileKinds are the warnings that look at the files of one step.
var fileKinds = []string{"two-modes", "bimodal", "slow-first", "outliers"}

// fileWarnings: how often are troubles within a step found, and how often
// without cause?
func (x *exam) fileWarnings(ctx context.Context, d *draft) error {
	d.fillHow(x.runs(200, 30))
	g := newGrid("Steps with the warning, %", "what happens", fileKinds...)
	for _, l := range choose(x, d.laws, [][]string{d.laws[0], d.laws[5], d.laws[8], d.laws[12]}) {
		// Kind is the warning to be given; sure: nine of ten have to be found
		name, kind, sure := l[0], l[2], l[3] != ""
		t := trial{design: design{sizes: goldSizes, sets: 10, rounds: 1}, law: law(withLatency + l[1]),
			runs: x.runs(200, 30), seed: []any{"warnings", name}}
		var some share
		shares := []*share{&some}
		for _, k := range fileKinds {
			shares = append(shares, g.at(name, k))
		}
		if err := x.count(ctx, t, writeWarnings, shares...); err != nil {
			return err
		}
		switch a, b := shares[1], shares[2]; {
		case kind == "":
			d.bounds[0].share(name, some)
		case kind == "bimodal" && sure: // may by chance look like one break; a step has one of the two
			d.bounds[1].share(name, share{min(a.hits+b.hits, a.n), a.n})
		case sure:
			d.bounds[1].share(name, *g.at(name, kind))
		}
	}
	d.add(g)
	return nil
}

// writeWarnings reports whether summaries of writing have any of [fileKinds],
// and which.
func writeWarnings(r *result.Result) []bool {
	out := make([]bool, 1+len(fileKinds))
	for _, s := range r.Summaries {
		for _, w := range s.Warnings {
			if k := slices.Index(fileKinds, w.Kind); k >= 0 && s.Op == "write" {
				out[0], out[1+k] = true, true
			}
		}
	}
	return out
}

// drift: does the canary show a machine that changes?
func (x *exam) drift(ctx context.Context, d *draft) error {
	d.fillHow(x.runs(300, 20))
	g := newGrid("Runs with the warning \"drift\", %", "times grow by")
	hasDrift := func(r *result.Result) []bool {
		return []bool{slices.ContainsFunc(r.Warnings, func(w result.Warning) bool { return w.Kind == "drift" })}
	}
	for _, drift := range choose(x, []string{"0", "5", "10", "20", "40"}, []string{"0", "20"}) {
		for _, noise := range choose(x, []string{"1", "3", "10"}, []string{"3"}) {
			// Per case: two steps of the canary's mount and three of the
			// image's.
			own := design{formats: fourFormats, sizes: fewSizes[:1], sets: 1, rounds: 5, canary: true}
			m := law("write = 5 GB/s;read = 5 GB/s;step = 30 s;file_noise = 3%;" +
				"mount_noise = " + noise + "%;drift = " + drift + "%")
			t := trial{design: own, law: m, runs: x.runs(300, 20), seed: []any{"drift", drift, noise}}
			row, column := drift+" % in an hour", "mounts "+noise+" %"
			share := g.at(row, column)
			if err := x.count(ctx, t, hasDrift, share); err != nil {
				return err
			}
			switch {
			case drift == "0":
				d.bounds[0].share(row+", "+column, *share)
			case drift == "20" && noise != "10":
				d.bounds[1].share(row+", "+column, *share)
			}
		}
	}
	d.add(g)
	return nil
}
