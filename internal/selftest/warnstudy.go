package selftest

import (
	"context"
	"fmt"
	"strings"

	"dmgbench/internal/result"
)

// trouble is a law with the warning that it should give, "" for none.
type trouble struct {
	name, law string
	kind      string
	sure      bool // large enough that nine of ten have to be found
}

// fileKinds are the warnings that look at the files of one step.
var fileKinds = []string{"two-modes", "bimodal", "slow-first", "outliers"}

func troubles() []trouble {
	return []trouble{
		{"noise 3 %", "file_noise = 3%", "", false},
		{"noise 10 %", "file_noise = 10%", "", false},
		{"noise 20 %", "file_noise = 20%", "", false},
		{"full cache after 10 GB, × 1.5", "file_noise = 5%;cliff = 10 GB x 1.5", "two-modes", true},
		{"full cache after 20 GB, × 1.25", "file_noise = 5%;cliff = 20 GB x 1.25", "two-modes", false},
		{"full cache after 20 GB, × 2", "file_noise = 5%;cliff = 20 GB x 2", "two-modes", true},
		{"full cache after 45 GB, × 4", "file_noise = 5%;cliff = 45 GB x 4", "two-modes", true},
		{"throttled 30 % of the time, × 1.5, 10 files each", "file_noise = 5%;slow = 30% x 1.5 in 10 files", "bimodal", false},
		{"throttled 30 % of the time, × 2, 10 files each", "file_noise = 5%;slow = 30% x 2 in 10 files", "bimodal", true},
		{"every fifth file × 1.5", "file_noise = 5%;slow = 20% x 1.5 in 1 files", "bimodal", true},
		{"every second file × 2", "file_noise = 10%;slow = 50% x 2 in 1 files", "bimodal", true},
		{"first file × 1.5", "file_noise = 3%;first = x 1.5", "slow-first", false},
		{"first file × 3", "file_noise = 5%;first = x 3", "slow-first", true},
		{"1 % of files × 8", "file_noise = 5%;outliers = 1% x 8", "outliers", false},
		{"5 % of files × 4", "file_noise = 5%;outliers = 5% x 4", "outliers", true},
	}
}

// fileWarnings studies the warnings of steps with troubles and without.
func (x *Exam) fileWarnings(ctx context.Context) (Study, error) {
	s := Study{ID: "warnings", Title: "Troubles within a step",
		Asks: "A cache fills, a drive throttles, a first file is slow, files lie far off. How often is that said, and how often without cause?"}
	alarm := within("of steps with nothing but noise (up to 20 %), at most 5 % are said to have a trouble", "%", -none, 5)
	hit := within("a change by a factor of 2 or more is found in 9 of 10 steps", "%", 90, none)
	table := keyed{}
	var rows []string
	list := troubles()
	if !x.Full {
		list = []trouble{list[0], list[5], list[8], list[12]}
	}
	for _, t := range list {
		rows = append(rows, t.name)
		seen, any, err := x.warned(ctx, t)
		if err != nil {
			return s, err
		}
		for k, kind := range fileKinds {
			table.at(t.name, kind).join(seen[k])
		}
		switch {
		case t.kind == "":
			alarm.share(t.name, any)
		case t.kind == "bimodal" && t.sure: // stretches may by chance look like one break
			hit.share(t.name, anyOf(seen[0], seen[1]))
		case t.sure:
			hit.share(t.name, *table.at(t.name, t.kind))
		}
	}
	s.How = fmt.Sprintf("%d steps a row, each 160 files of the gold standard set (53.3 GB) at 5 GB/s and 200 µs a call.", x.runs(200, 30))
	s.Tables = []Table{table.table("Steps with the warning, %", "what happens", rows, fileKinds)}
	s.Promises = []Promise{alarm.promise(), hit.promise()}
	return s, nil
}

// anyOf adds two warnings that exclude each other in a step.
func anyOf(a, b share) share { return share{min(a.hits+b.hits, a.n), a.n} }

// warned counts the steps with each warning, and with any.
func (x *Exam) warned(ctx context.Context, t trouble) (seen [4]share, any share, err error) {
	p, err := design{formats: []string{"UDRW"}, sizes: goldSizes, sets: 10, rounds: 1}.plan()
	if err != nil {
		return seen, any, err
	}
	m := lawOf("write = 5 GB/s;read = 6 GB/s;latency = 200 us;step = 20 ms;" + t.law)
	kinds := make([]map[string]bool, x.runs(200, 30))
	err = each(ctx, len(kinds), func(ctx context.Context, i int) error {
		r, err := x.stage.play(ctx, p, m, x.seed("warnings", t.name, i), 1)
		if err == nil {
			kinds[i] = kindsOf(r, "write")
		}
		return err
	})
	for _, one := range kinds {
		some := false
		for k, kind := range fileKinds {
			seen[k].add(one[kind])
			some = some || one[kind]
		}
		any.add(some)
	}
	return seen, any, err
}

// kindsOf are the kinds of warnings of the summaries of an operation.
func kindsOf(r *result.Result, op string) map[string]bool {
	out := map[string]bool{}
	for _, s := range r.Summaries {
		for _, w := range s.Warnings {
			if s.Op == op {
				out[w.Kind] = true
			}
		}
	}
	return out
}

// drift: does the canary show a machine that changes?
func (x *Exam) drift(ctx context.Context) (Study, error) {
	s := Study{ID: "drift", Title: "Drift along a run",
		Asks: "Times grow in the course of a run. How often does the canary, a short native write and read before each case, say so?"}
	alarm := within("a machine that does not change is said to drift in at most 5 % of runs", "%", -none, 5)
	hit := within("a drift of 20 % over a run of 20 cases is found in 9 of 10 runs where mounts scatter by 3 % or less", "%", 90, none)
	table := keyed{}
	drifts, noises := []string{"0", "5", "10", "20", "40"}, []string{"1", "3", "10"}
	if !x.Full {
		drifts, noises = []string{"0", "20"}, []string{"3"}
	}
	var rows, columns []string
	for _, n := range noises {
		columns = append(columns, "mounts "+n+" %")
	}
	for _, d := range drifts {
		row := d + " % in an hour"
		rows = append(rows, row)
		for k, n := range noises {
			got, err := x.drifting(ctx, d, n)
			if err != nil {
				return s, err
			}
			table.at(row, columns[k]).join(got)
			where := row + ", " + columns[k]
			switch {
			case d == "0":
				alarm.share(where, got)
			case d == "20" && n != "10":
				hit.share(where, got)
			}
		}
	}
	s.How = fmt.Sprintf("%d runs a figure, each of an hour: 5 rounds of four formats, so that there are 20 canaries; files scatter by 3 %%.", x.runs(300, 20))
	s.Tables = []Table{table.table("Runs with the warning \"drift\", %", "times grow by", rows, columns)}
	s.Promises = []Promise{alarm.promise(), hit.promise()}
	return s, nil
}

func (x *Exam) drifting(ctx context.Context, drift, noise string) (out share, err error) {
	p, err := design{formats: fourFormats, sizes: fewSizes[:1], sets: 1, rounds: 5, canary: true}.plan()
	if err != nil {
		return out, err
	}
	// Per case: two steps of the canary's mount and three of the image's.
	m := lawOf(strings.Join([]string{"write = 5 GB/s", "read = 5 GB/s", "step = 30 s", "file_noise = 3%", "mount_noise = " + noise + "%", "drift = " + drift + "%"}, ";"))
	found := make([]bool, x.runs(300, 20))
	err = each(ctx, len(found), func(ctx context.Context, i int) error {
		r, err := x.stage.play(ctx, p, m, x.seed("drift", drift, noise, i), 1)
		if err != nil {
			return err
		}
		for _, w := range r.Warnings {
			found[i] = found[i] || w.Kind == "drift"
		}
		return nil
	})
	for _, f := range found {
		out.add(f)
	}
	return out, err
}
