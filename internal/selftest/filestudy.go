package selftest

import (
	"context"
	"fmt"
	"slices"

	"dmgbench/internal/engine/simulated"
)

// fileEstimates are the estimates of one mount that have an interval over its files.
var fileEstimates = []string{"median", "theil-sen", "mean", "trimmed", "aggregate", "least-squares", "weighted", "latency"}

// exactOnes have intervals of order statistics: their printed level is a lower bound.
var exactOnes = []string{"median", "theil-sen"}

// robustOnes resist outliers, and have an interval where there are some.
var robustOnes = []string{"median", "theil-sen", "trimmed"}

// fileLaw is a law under which the intervals over files are tried.
type fileLaw struct {
	name string
	m    simulated.Machine
	calm simulated.Machine // the law without its outliers
}

func fileLaws() []fileLaw {
	const head = "write = 5 GB/s;read = 6 GB/s;latency = 200 us;step = 20 ms;"
	return []fileLaw{
		{"noise 3 %", lawOf(head + "file_noise = 3%"), lawOf(head + "file_noise = 3%")},
		{"noise 20 %", lawOf(head + "file_noise = 20%"), lawOf(head + "file_noise = 20%")},
		{"noise 3 %, 2 % outliers × 8", lawOf(head + "file_noise = 3%;outliers = 2% x 8"), lawOf(head + "file_noise = 3%")},
	}
}

// fileDesigns are the samples: of one size, and of the sixteen of the gold standard.
func fileDesigns(full bool) []design {
	one := func(n int) design {
		return design{formats: []string{"UDRW"}, sizes: []int64{100e6}, sets: n, rounds: 1}
	}
	all := func(sets int) design {
		return design{formats: []string{"UDRW"}, sizes: goldSizes, sets: sets, rounds: 1}
	}
	if !full {
		return []design{one(2), one(20), all(3)}
	}
	return []design{one(2), one(3), one(6), one(20), one(40), all(2), all(3), all(5), all(10)}
}

func (d design) title() string {
	if len(d.sizes) == 1 {
		return fmt.Sprintf("%d of one size", d.files())
	}
	return fmt.Sprintf("%d of 16 sizes", d.files())
}

// fileIntervals: do the intervals over the files of one mount cover the truth?
func (x *Exam) fileIntervals(ctx context.Context) (Study, error) {
	s := Study{ID: "files", Title: "Intervals over the files of one mount",
		Asks: "A single round gives intervals over its files. How often do they contain what ever more files of that mount would show?"}
	exact := within("exact intervals cover at least the level they print", "points over the printed level", 0, none)
	rest := within("t and jackknife intervals over files cover 93 to 97 %, from 3 files a size on (the trimmed mean: 6 in all)", "%", 93, 97)
	below := within("below that, and of the median below 6 files, no interval is printed", "%", -none, 0)
	for _, l := range fileLaws() {
		cover, given, level := keyed{}, keyed{}, map[[2]string]float64{}
		var columns []string
		for _, d := range fileDesigns(x.Full) {
			columns = append(columns, d.title())
			if err := x.coverFiles(ctx, l, d, cover, given, level); err != nil {
				return s, err
			}
		}
		s.Tables = append(s.Tables, cover.table("Coverage in %: "+l.name, "estimate", fileEstimates, columns))
		if l.m.Outliers > 0 {
			s.Tables = append(s.Tables, given.table("Mounts in which the interval is given, %: "+l.name, "estimate", fileEstimates, columns))
		}
		for _, c := range columns {
			for _, e := range fileEstimates {
				k, where := cover.at(e, c), fmt.Sprintf("%s, %s, %s", e, c, l.name)
				if tooFew(e, c) {
					below.take("intervals of "+where, given.at(e, c).rate(), 0, given.at(e, c).n)
				}
				switch {
				case k.n == 0:
				case slices.Contains(exactOnes, e):
					exact.take(where, k.rate()-100*level[[2]string{e, c}], k.err(), k.n)
				default:
					rest.share(where, *k)
				}
			}
		}
	}
	s.How = fmt.Sprintf("%d runs for each law and sample; 5 GB/s, 200 µs a call, noise log-normal with mean 1.", x.runs(1000, 60))
	s.Promises = []Promise{exact.promise(), rest.promise(), below.promise()}
	s.Says = []string{
		"A dash is where no interval is printed: below 3 files of each size but for the median, below 6 files for the median and the trimmed mean. No bootstrap interval is left: resampling files of chosen sizes took the choice for scatter.",
		"Shortfall: where far outliers are rare, a mount may have none. The intervals of mean, aggregate, least-squares, weighted and latency then speak of the files " +
			"without outliers, and do not contain what many mounts with theirs would show; where a mount has some, they are withheld. The figures of these rows are set against the law without its outliers.",
		"The interval of the median takes the sixteen sizes for scatter, and so is wider than it need be.",
	}
	return s, nil
}

// tooFew reports whether an estimate must not have an interval over files of a design, by its title.
func tooFew(estimate, title string) bool {
	switch title {
	case "2 of one size":
		return true
	case "3 of one size":
		return estimate == "trimmed" || estimate == "median"
	case "32 of 16 sizes":
		return estimate != "median"
	}
	return false
}

// coverFiles plays runs of one law and sample, and counts the intervals that hold the truth.
func (x *Exam) coverFiles(ctx context.Context, l fileLaw, d design, cover, given keyed, level map[[2]string]float64) error {
	p, err := d.plan()
	if err != nil {
		return err
	}
	truth, calm := truths(l.m.Law, d.sizes), truths(l.calm.Law, d.sizes)
	for _, name := range fileEstimates { // the others speak of the files without outliers
		if !slices.Contains(robustOnes, name) {
			truth[name] = calm[name]
		}
	}
	type seen struct{ given, holds [8]bool }
	all := make([]seen, x.runs(1000, 60))
	levels := make([][8]float64, len(all))
	err = each(ctx, len(all), func(ctx context.Context, i int) error {
		r, err := x.stage.play(ctx, p, l.m, x.seed("files", l.name, d.title(), i), 1)
		if err != nil {
			return err
		}
		for k, name := range fileEstimates {
			e, ok := estimateOf(r, "", "write", name)
			if !ok || e.CI == nil {
				continue
			}
			all[i].given[k], all[i].holds[k] = true, e.CI.Low <= truth[name] && truth[name] <= e.CI.High
			levels[i][k] = e.CI.Level
		}
		return nil
	})
	for i, one := range all {
		for k, name := range fileEstimates {
			given.at(name, d.title()).add(one.given[k])
			if one.given[k] {
				cover.at(name, d.title()).add(one.holds[k])
				level[[2]string{name, d.title()}] = max(level[[2]string{name, d.title()}], levels[i][k])
			}
		}
	}
	return err
}
