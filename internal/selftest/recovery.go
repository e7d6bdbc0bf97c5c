package selftest

import (
	"context"
	"fmt"
	"math"

	"dmgbench/internal/result"
)

// fileEstimates are the estimates of one mount that have an interval over its
// files.
var fileEstimates = []string{"median", "theil-sen", "mean", "trimmed", "aggregate",
	"least-squares", "weighted", "latency"}

// nominal are the law's own values of the estimates that are recovered from
// noise.
var nominal = map[string]float64{"theil-sen": 5e9, "weighted": 5e9, "least-squares": 5e9, "latency": 200e-6}

// recovery: are rate and latency of the law found again?
func (x *exam) recovery(ctx context.Context, d *draft) error {
	d.fillHow(x.runs(300, 30))
	clean := Table{Title: "Without noise: farthest estimate from the law",
		Head: []string{"law", "estimate", "off by, parts in a million"}}
	dirty := Table{Title: "With noise: off the law's 5 GB/s and 200 µs, % " +
		"(mean ± Monte Carlo error; scatter of single runs in brackets)",
		Head: []string{"law", "theil-sen", "weighted", "least-squares", "latency"}}
	for _, l := range d.laws {
		name, m := l[1], l[2]
		if l[0] == "clean" {
			worst, estimate, err := x.offExact(ctx, m)
			if err != nil {
				return err
			}
			clean.Rows = append(clean.Rows, []string{name, estimate, plainNumber(worst)})
			d.bounds[0].take(name+", "+estimate, worst, 0, 1)
			continue
		}
		off, err := x.offNominal(ctx, name, m, dirty.Head[1:])
		if err != nil {
			return err
		}
		row := []string{name}
		for _, o := range off {
			row = append(row, fmt.Sprintf("%+.2f ± %.2f (%.2f)", o.mean(), o.err(), o.sd()))
		}
		dirty.Rows = append(dirty.Rows, row)
		if name != "noise 20 %" {
			d.bounds[1].take(name, off[0].mean(), off[0].err(), int(off[0].n))
		}
		if name == "noise 5 %" {
			d.bounds[2].take(name, off[3].mean(), off[3].err(), int(off[3].n))
		}
	}
	d.Tables = []Table{clean, dirty}
	return nil
}

// offExact is the farthest relative error of all estimates, in parts in a
// million.
func (x *exam) offExact(ctx context.Context, text string) (worst float64, name string, err error) {
	p, err := design{sizes: oneCall, sets: 3, rounds: 1}.plan()
	if err != nil {
		return 0, "", err
	}
	m := law(text)
	r, err := x.stage.play(ctx, p, m, 1, 1)
	if err != nil {
		return 0, "", err
	}
	truth := truths(m.Law, oneCall)
	for _, n := range fileEstimates {
		off := math.Inf(1)
		if e, ok := estimateOf(r, "", "write", n); ok {
			off = 1e6 * math.Abs(e.Value/truth[n]-1)
		}
		if off >= worst {
			worst, name = off, n
		}
	}
	return worst, name, nil
}

// offNominal are the relative errors of estimates over many runs, in per cent.
func (x *exam) offNominal(ctx context.Context, name, noise string, names []string) ([]moments, error) {
	t := trial{design: design{sizes: oneCall, sets: 10, rounds: 1}, runs: x.runs(300, 30), seed: []any{"dirty", name},
		law: law("write = 5 GB/s;read = 6 GB/s;latency = 200 us;" + noise)}
	all, err := observe(ctx, x, t, func(r *result.Result) (off []float64) {
		for _, n := range names {
			e, ok := estimateOf(r, "", "write", n)
			if !ok {
				e.Value = math.NaN()
			}
			off = append(off, 100*(e.Value/nominal[n]-1))
		}
		return off
	})
	if err != nil {
		return nil, err
	}
	out := make([]moments, len(names))
	for i, one := range all {
		for k, v := range one {
			if math.IsNaN(v) {
				return nil, fmt.Errorf("recovering the law: run %d gives no %s", i, names[k])
			}
			out[k].add(v)
		}
	}
	return out, nil
}
