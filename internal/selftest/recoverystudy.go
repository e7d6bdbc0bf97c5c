package selftest

import (
	"context"
	"fmt"
	"math"

	"dmgbench/internal/plan"
)

// exactly is what noise-free data may be off by, in parts in a million: the laws
// take whole nanoseconds for every file, and what is left is rounding.
const exactly = 0.01

// cleanLaws are machines without noise.
func cleanLaws() []struct{ name, law string } {
	return []struct{ name, law string }{
		{"500 MB/s, 5 ms", "write = 500 MB/s;read = 1 GB/s;latency = 5 ms"},
		{"5 GB/s, 200 µs", "write = 5 GB/s;read = 6 GB/s;latency = 200 us"},
		{"10 GB/s, 20 µs", "write = 10 GB/s;read = 12 GB/s;latency = 20 us"},
	}
}

// recovery: are rate and latency of the law found again?
func (x *Exam) recovery(ctx context.Context) (Study, error) {
	s := Study{ID: "recovery", Title: "Rate and latency recovered",
		Asks: "The device has a rate and a latency. What do the estimators make of its files, without noise and with it?"}
	exact := within("without noise, every estimate is that of the law", "parts in a million", -none, exactly)
	t := Table{Title: "Without noise: farthest estimate from the law", Head: []string{"law", "estimate", "off by, parts in a million"}}
	for _, l := range cleanLaws() {
		worst, name, err := x.offExact(ctx, l.law)
		if err != nil {
			return s, err
		}
		t.Rows = append(t.Rows, []string{l.name, name, plainNumber(worst)})
		exact.take(l.name+", "+name, worst, 0, 1)
	}
	robust := within("with noise of 5 %, 2 % of files × 8 and a slow first file, the Theil–Sen rate is off by at most 1 % on average", "%", -1, 1)
	lat := within("with noise of 5 %, the latency of the weighted line is off by at most 5 % on average", "%", -5, 5)
	dirty, err := x.dirty(ctx, robust, lat)
	s.Tables = []Table{t, dirty}
	s.How = fmt.Sprintf("Files of the fifteen sizes up to 1 GB, which one call moves; %d runs of ten sets a row where there is noise. The law is 5 GB/s and 200 µs.", x.runs(300, 30))
	s.Promises = []Promise{exact.promise(), robust.promise(), lat.promise()}
	s.Says = []string{
		"A file of 2 GB takes two calls of at most 1 GiB, and so the latency twice: lines through it have a bend of their own.",
		"Outliers move mean, aggregate and both least squares lines as far as they move the time that a user waits; Theil–Sen, median and trimmed mean show the rate of the other files.",
	}
	return s, err
}

// oneCall are the gold standard's sizes that one call moves.
var oneCall = goldSizes[:15]

// offExact is the farthest relative error of all estimates, in parts in a million.
func (x *Exam) offExact(ctx context.Context, law string) (worst float64, name string, err error) {
	p, err := design{formats: []string{"UDRW"}, sizes: oneCall, sets: 3, rounds: 1}.plan()
	if err != nil {
		return 0, "", err
	}
	m := lawOf(law)
	r, err := x.stage.play(ctx, p, m, 1, 1)
	if err != nil {
		return 0, "", err
	}
	truth := truths(m.Law, oneCall)
	for _, n := range fileEstimates {
		e, ok := estimateOf(r, "", "write", n)
		off := math.Inf(1)
		if ok {
			off = 1e6 * math.Abs(e.Value/truth[n]-1)
		}
		if off >= worst {
			worst, name = off, n
		}
	}
	return worst, name, nil
}

// dirty tabulates bias and scatter against the law's own rate and latency.
func (x *Exam) dirty(ctx context.Context, robust, lat *bound) (Table, error) {
	t := Table{Title: "With noise: off the law's 5 GB/s and 200 µs, % (mean ± Monte Carlo error; scatter of single runs in brackets)",
		Head: append([]string{"law"}, "theil-sen", "weighted", "least-squares", "latency")}
	p, err := design{formats: []string{"UDRW"}, sizes: oneCall, sets: 10, rounds: 1}.plan()
	if err != nil {
		return t, err
	}
	for _, l := range []struct{ name, law string }{
		{"noise 5 %", "file_noise = 5%"}, {"noise 20 %", "file_noise = 20%"},
		{"noise 5 %, 2 % of files × 8, first × 3", "file_noise = 5%;outliers = 2% x 8;first = x 3"},
	} {
		off, err := x.offs(ctx, p, l.name, "write = 5 GB/s;read = 6 GB/s;latency = 200 us;"+l.law, t.Head[1:])
		if err != nil {
			return t, err
		}
		row := []string{l.name}
		for k, name := range t.Head[1:] {
			row = append(row, fmt.Sprintf("%+.2f ± %.2f (%.2f)", off[k].mean(), off[k].err(), off[k].sd()))
			if name == "theil-sen" && l.name != "noise 20 %" {
				robust.take(l.name, off[k].mean(), off[k].err(), int(off[k].n))
			}
			if name == "latency" && l.name == "noise 5 %" {
				lat.take(l.name, off[k].mean(), off[k].err(), int(off[k].n))
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}

// offs are the relative errors of estimates over many runs, in per cent.
func (x *Exam) offs(ctx context.Context, p *plan.Plan, name, law string, names []string) ([]moments, error) {
	m := lawOf(law)
	all := make([][]float64, x.runs(300, 30))
	err := each(ctx, len(all), func(ctx context.Context, i int) error {
		r, err := x.stage.play(ctx, p, m, x.seed("dirty", name, i), 1)
		if err != nil {
			return err
		}
		for _, n := range names {
			e, ok := estimateOf(r, "", "write", n)
			if !ok {
				return fmt.Errorf("recovering the law: run %d gives no %s", i, n)
			}
			all[i] = append(all[i], 100*(e.Value/nominal(n)-1))
		}
		return nil
	})
	out := make([]moments, len(names))
	if err == nil {
		for _, one := range all {
			for k, v := range one {
				out[k].add(v)
			}
		}
	}
	return out, err
}

// nominal is the law's own value of an estimate in [Exam.dirty].
func nominal(name string) float64 {
	if name == "latency" {
		return 200e-6
	}
	return 5e9
}

// roundRow is where an interval over rounds is tried.
type roundRow struct {
	name, law        string
	rounds, sessions int
}

func roundRows(full bool) (out []roundRow) {
	head := "write = 5 GB/s;read = 6 GB/s;latency = 200 us;step = 20 ms;file_noise = 3%;"
	if !full {
		return []roundRow{{"5 rounds, mounts 3 %", head + "mount_noise = 3%", 5, 1}}
	}
	for _, n := range []int{3, 5, 10} {
		for _, m := range []string{"1", "10"} {
			out = append(out, roundRow{fmt.Sprintf("%d rounds, mounts %s %%", n, m), head + "mount_noise = " + m + "%", n, 1})
		}
	}
	for _, n := range []int{3, 5} {
		for _, m := range []string{"3", "10"} {
			out = append(out, roundRow{fmt.Sprintf("%d sessions of 3 rounds, sessions %s %%", n, m), head + "mount_noise = 2%;session_noise = " + m + "%", 3, n})
		}
	}
	return out
}

// roundIntervals: do the intervals over rounds and sessions cover the truth?
func (x *Exam) roundIntervals(ctx context.Context) (Study, error) {
	s := Study{ID: "rounds", Title: "Intervals over rounds and sessions",
		Asks: "From 3 rounds on an estimate has an interval over rounds, from 3 pooled sessions on over sessions. How often does it hold the truth?"}
	b := within("intervals over rounds and over sessions cover 93 to 97 %, from 3 on", "%", 93, 97)
	columns := fileEstimates
	table := keyed{}
	var rows []string
	for _, row := range roundRows(x.Full) {
		rows = append(rows, row.name)
		if err := x.coverRounds(ctx, row, table); err != nil {
			return s, err
		}
		for _, c := range columns {
			b.share(row.name+", "+c, *table.at(row.name, c))
		}
	}
	s.How = fmt.Sprintf("%d repetitions a row, 48 files of 16 sizes a mount, which scatter by 3 %%. Rounds are tried in one session that is as others are; "+
		"sessions differ by the scatter that the row names.", x.runs(1000, 60))
	s.Tables = []Table{table.table("Coverage in %", "design", rows, columns)}
	s.Promises = []Promise{b.promise()}
	s.Says = []string{"Fewer than 3 rounds have no interval over rounds: two of them, or of pooled runs, show their scatter by a single difference.",
		"An interval over rounds says what another round of this session would show, not what another session would."}
	return s, nil
}

func (x *Exam) coverRounds(ctx context.Context, row roundRow, table keyed) error {
	d := design{formats: []string{"UDRW"}, sizes: goldSizes, sets: 3, rounds: row.rounds}
	p, err := d.plan()
	if err != nil {
		return err
	}
	m := lawOf(row.law)
	truth := truths(m.Law, d.sizes)
	type seen struct{ given, holds bool }
	all := make([][8]seen, x.runs(1000, 60))
	err = each(ctx, len(all), func(ctx context.Context, i int) error {
		r, err := x.sessions(ctx, p, m, row.sessions, "rounds", row.name, i)
		if err != nil {
			return err
		}
		for k, name := range fileEstimates {
			e, ok := estimateOf(r, "", "write", name)
			all[i][k].given = ok && e.CI != nil && e.CI.Unit != "file within one mount"
			all[i][k].holds = all[i][k].given && e.CI.Low <= truth[name] && truth[name] <= e.CI.High
		}
		return nil
	})
	for _, one := range all {
		for k, name := range fileEstimates {
			if one[k].given {
				table.at(row.name, name).add(one[k].holds)
			}
		}
	}
	return err
}
