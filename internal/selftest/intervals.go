package selftest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/result"
)

// orderEstimates have intervals of order statistics: their printed level is a
// lower bound.
var orderEstimates = []string{"median", "theil-sen"}

// robustEstimates resist outliers, and have an interval where a mount has some.
var robustEstimates = []string{"median", "theil-sen", "trimmed"}

// fileDesigns are the samples: of one size, and of the sixteen of the gold
// standard.
func (x *exam) fileDesigns() (out []design) {
	for _, n := range choose(x, []int{2, 3, 6, 20, 40}, []int{2, 20}) {
		out = append(out, design{sizes: []int64{100e6}, sets: n, rounds: 1})
	}
	for _, n := range choose(x, []int{2, 3, 5, 10}, []int{3}) {
		out = append(out, design{sizes: goldSizes, sets: n, rounds: 1})
	}
	return out
}

// fileIntervals: do the intervals over the files of one mount cover the truth?
func (x *exam) fileIntervals(ctx context.Context, d *draft) error {
	d.fillHow(x.runs(1000, 60))
	for _, l := range d.laws {
		covered := newGrid("Coverage in %: "+l[0], "estimate")
		given := newGrid("Mounts in which the interval is given, %: "+l[0], "estimate")
		levels := map[[2]string]float64{}
		for _, sample := range x.fileDesigns() {
			if err := x.coverFiles(ctx, l[0], l[1], l[2], sample, covered, given, levels); err != nil {
				return err
			}
		}
		d.add(covered)
		if l[2] != "" {
			d.add(given)
		}
		for _, c := range covered.columns {
			for _, e := range fileEstimates {
				k, where := covered.at(e, c), fmt.Sprintf("%s, %s, %s", e, c, l[0])
				if isTooFew(e, c) {
					d.bounds[2].take("intervals of "+where, given.at(e, c).rate(), 0, given.at(e, c).n)
				}
				switch {
				case k.n == 0:
				case slices.Contains(orderEstimates, e):
					d.bounds[0].take(where, k.rate()-100*levels[[2]string{e, c}], k.err(), k.n)
				default:
					d.bounds[1].share(where, *k)
				}
			}
		}
	}
	return nil
}

// isTooFew reports whether an estimate must not have an interval over files of
// a sample.
func isTooFew(estimate, sample string) bool {
	switch sample {
	case "2 of one size":
		return true
	case "3 of one size":
		return estimate == "trimmed" || estimate == "median"
	case "32 of 16 sizes":
		return estimate != "median"
	}
	return false
}

// coverFiles plays runs of one sample under a law, and counts the intervals
// that contain the truth. Estimates that do not resist outliers are compared
// with the calm law, which has none.
func (x *exam) coverFiles(ctx context.Context, name, calmLaw, outliers string, sample design, covered, given *grid,
	levels map[[2]string]float64,
) error {
	m := law(withLatency + calmLaw + ";" + outliers)
	truth, calm := truths(m.Law, sample.sizes), truths(law(withLatency+calmLaw).Law, sample.sizes)
	for _, name := range fileEstimates {
		if !slices.Contains(robustEstimates, name) {
			truth[name] = calm[name]
		}
	}
	column := sample.sizesText()
	t := trial{design: sample, law: m, runs: x.runs(1000, 60), seed: []any{"files", name, column}}
	all, err := observe(ctx, x, t, func(r *result.Result) []cover { return coversOf(r, "", fileEstimates, truth) })
	if err != nil {
		return err
	}
	for _, one := range all {
		for k, name := range fileEstimates {
			given.at(name, column).add(one[k].given)
			if share := covered.at(name, column); one[k].given {
				share.add(one[k].holds)
				key := [2]string{name, column}
				levels[key] = max(levels[key], one[k].ci.Level)
			}
		}
	}
	return nil
}

// roundRow is where an interval over rounds is tried.
type roundRow struct {
	name, noise      string
	rounds, sessions int
}

func (x *exam) roundRows() (out []roundRow) {
	for _, n := range []int{3, 5, 10} {
		for _, m := range []string{"1", "10"} {
			out = append(out, roundRow{fmt.Sprintf("%d rounds, mounts %s %%", n, m), "mount_noise = " + m + "%", n, 1})
		}
	}
	for _, n := range []int{3, 5} {
		for _, m := range []string{"3", "10"} {
			out = append(out, roundRow{fmt.Sprintf("%d sessions of 3 rounds, sessions %s %%", n, m),
				"mount_noise = 2%;session_noise = " + m + "%", 3, n})
		}
	}
	return choose(x, out, []roundRow{{"5 rounds, mounts 3 %", "mount_noise = 3%", 5, 1}})
}

// roundIntervals: do the intervals over rounds and sessions cover the truth?
func (x *exam) roundIntervals(ctx context.Context, d *draft) error {
	d.fillHow(x.runs(1000, 60))
	g := newGrid("Coverage in %", "design", fileEstimates...)
	for _, row := range x.roundRows() {
		m := law(withLatency + "file_noise = 3%;" + row.noise)
		truth := truths(m.Law, goldSizes)
		t := trial{design: design{sizes: goldSizes, sets: 3, rounds: row.rounds}, law: m, runs: x.runs(1000, 60),
			seed: []any{"rounds", row.name}, pooled: row.sessions}
		all, err := observe(ctx, x, t, func(r *result.Result) []cover { return coversOf(r, "", fileEstimates, truth) })
		if err != nil {
			return err
		}
		for k, name := range fileEstimates {
			share := g.at(row.name, name)
			for _, one := range all {
				if one[k].given && one[k].ci.Unit != "file within one mount" {
					share.add(one[k].holds)
				}
			}
			d.bounds[0].share(row.name+", "+name, *share)
		}
	}
	d.add(g)
	return nil
}

// tooNarrow ends the method of an interval over files that change between two
// speeds (docs/metrics.md).
const tooNarrow = "too narrow: files at two speeds"

// twoSpeedIntervals: what are the intervals of median and Theil–Sen worth where
// files are at two speeds?
func (x *exam) twoSpeedIntervals(ctx context.Context, d *draft) error {
	d.fillHow(x.runs(1000, 60))
	rounds := choose(x, []int{1, 3, 5, 10}, []int{1, 3})
	g := newGrid("Runs of 1 round with the label, and coverage of the intervals, in %", "estimate and law",
		"labelled", "1 round, labelled", "1 round, not labelled")
	for _, l := range choose(x, d.laws, d.laws[:1]) {
		for _, n := range rounds {
			if err := x.coverSpeeds(ctx, l[0], l[1], n, g); err != nil {
				return err
			}
		}
		for _, e := range orderEstimates {
			row := e + ", " + l[0]
			if strings.Contains(l[0], "× 2") {
				d.bounds[0].share(row, *g.at(row, "labelled"))
			}
			for _, n := range rounds[1:] {
				d.bounds[1].share(row+", "+roundsText(n), *g.at(row, roundsText(n)))
			}
		}
	}
	d.add(g)
	return nil
}

func roundsText(n int) string { return fmt.Sprintf("%d rounds", n) }

// coverSpeeds plays runs of n rounds under a law, and counts labels and the
// intervals that contain the truth.
func (x *exam) coverSpeeds(ctx context.Context, name, slow string, n int, g *grid) error {
	m := law(withLatency + "file_noise = 5%;" + slow)
	truth := truths(m.Law, goldSizes)
	t := trial{design: design{sizes: goldSizes, sets: 10, rounds: n}, law: m, runs: x.runs(1000, 60),
		seed: []any{"speeds", name, n}}
	all, err := observe(ctx, x, t, func(r *result.Result) []cover { return coversOf(r, "", orderEstimates, truth) })
	for _, one := range all {
		for k, estimate := range orderEstimates {
			row, column := estimate+", "+name, roundsText(n)
			if n == 1 {
				label := strings.HasSuffix(one[k].ci.Method, tooNarrow)
				if column = "1 round, not labelled"; label {
					column = "1 round, labelled"
				}
				g.at(row, "labelled").add(label)
			}
			if one[k].given {
				g.at(row, column).add(one[k].holds)
			}
		}
	}
	return err
}
