package analysis

import (
	"errors"
	"math"
	"slices"

	"dmgbench/internal/result"
	"dmgbench/internal/stats"
)

// fileWarnings looks at the files of each round on their own: idle workers,
// files too small for the clock, outliers, a slow first file, two modes.
func (s *runData) fileWarnings(w *warningList, c cell) {
	for _, st := range c.steps() {
		stepFiles(w, st)
	}
}

// StepWarnings are what weakens the timed files of one step: what was recorded with
// it, and what its files alone show. Summaries carry the same, shortened
// where there are many of a kind; this is for charts that mark where it happened.
func StepWarnings(st *result.Step) []result.Warning {
	w := warningList{list: slices.Clone(st.Warnings)}
	if st.Error == "" {
		stepFiles(&w, st)
	}
	return w.list
}

func stepFiles(w *warningList, st *result.Step) {
	idleWarning(w, st)
	if workers(st) > 1 {
		return // files that share the machine differ by right
	}
	samples := slices.DeleteFunc(slices.Clone(st.Samples), func(x result.Sample) bool { return x.Bytes <= 0 || x.DurationNS <= 0 })
	slices.SortFunc(samples, func(a, b result.Sample) int { return a.Order - b.Order })
	if excess := excessTimes(samples); excess != nil {
		outlierWarnings(w, st, samples, excess)
		before := len(w.list)
		modeWarnings(w, st, samples, excess)
		if len(w.list) == before { // a break says more than a trend
			batchTransient(w, st, excess)
		}
	}
}

// idleWarning reports how much of the workers' time was between files, and which
// files are too short for the overhead around them.
func idleWarning(w *warningList, st *result.Step) {
	span := spanNS(st)
	if st.Span == nil || span <= 0 || len(st.Samples) == 0 {
		return
	}
	total := float64(span) * float64(workers(st))
	if share := float64(st.Span.IdleNS) / total; share > idleShare {
		w.add("idle", "round %d: for %s of the time between gate and last done the workers were between files", st.Round, percent(share))
	}
	if workers(st) > 1 {
		return
	}
	overhead := max(clockCost, float64(st.Span.IdleNS)/float64(len(st.Samples)))
	small := 0
	for _, x := range st.Samples {
		if float64(x.DurationNS) < smallFile*overhead {
			small++
		}
	}
	if small > 0 {
		w.add("small-files", "round %d: %d of %d files took less than %d times the %s that clock and calls cost a file, which shows in their rate",
			st.Round, small, len(st.Samples), smallFile, show(overhead/1e9, "s"))
	}
}

// excessTimes is the logarithm of each file's time over what its size lets expect:
// the median of its size where three files or more share it, else the weighted
// line through all. It is nil where no time can be expected.
func excessTimes(samples []result.Sample) []float64 {
	if len(samples) < 6 {
		return nil
	}
	f := files{}
	for _, x := range samples {
		f.size, f.time = append(f.size, float64(x.Bytes)), append(f.time, float64(x.DurationNS)/1e9)
	}
	return f.excess()
}

// excess is [excessTimes] for columns.
func (f files) excess() []float64 {
	bySize := map[float64][]float64{}
	for i, x := range f.size {
		bySize[x] = append(bySize[x], f.time[i])
	}
	line, err := f.line(weighted)
	out := make([]float64, len(f.size))
	for i, x := range f.size {
		expect := 0.0
		if same := bySize[x]; len(same) >= 3 {
			expect, _ = stats.Median(same) // three finite values have one
		} else if err == nil {
			expect = line.At(f.size[i])
		}
		if !(expect > 0) {
			return nil
		}
		out[i] = math.Log(f.time[i] / expect)
	}
	return out
}

// errOutliers refuses an interval to what single far values decide.
var errOutliers = errors.New("some files lie far off the rest, and a single mount does not show how often such files come")

// outlying reports whether some file is so far off that no plausible scatter explains it.
func (f files) outlying() bool {
	if len(f.size) < 6 {
		return false
	}
	excess := f.excess()
	found, err := stats.Outliers(excess)
	if err != nil || excess == nil {
		return false
	}
	mid, err := stats.Median(excess)
	return err == nil && slices.ContainsFunc(found, func(i int) bool { return math.Abs(excess[i]-mid) >= math.Log(worthSaying) })
}

// outlierWarnings names files that no plausible scatter explains, by the rule of
// hyperfine on the logarithm of time over expected time, and that matter: by a
// factor of [worthSaying]. The first file is judged separately, as it may pay for what
// all others find ready.
func outlierWarnings(w *warningList, st *result.Step, samples []result.Sample, excess []float64) {
	rest := excess[1:]
	mid, errMid := stats.Median(rest)
	mad, errMAD := stats.MAD(rest)
	if errMid == nil && errMAD == nil && mad > 0 && excess[0]-mid > max(stats.OutlierThreshold*mad, math.Log(worthSaying)) {
		w.add("slow-first", "round %d: the first file took %s times as long as its size lets expect", st.Round, show(math.Exp(excess[0]-mid), "1"))
	}
	if !(mad > 0) {
		return
	}
	found, err := stats.Outliers(rest)
	found = slices.DeleteFunc(found, func(i int) bool { return math.Abs(rest[i]-mid) < math.Log(worthSaying) })
	if err != nil || len(found) == 0 {
		return
	}
	worst := found[0]
	for _, i := range found {
		if math.Abs(rest[i]-mid) > math.Abs(rest[worst]-mid) {
			worst = i
		}
	}
	w.add("outliers", "round %d: %d of %d files took far more or less time than the rest; the most extreme, %s of %s, was %s than expected",
		st.Round, len(found), len(samples), samples[worst+1].File, sizeText(samples[worst+1].Bytes), timesFaster(rest[worst]-mid))
}

// timesFaster words the logarithm of a time over the expected one.
func timesFaster(log float64) string {
	if log < 0 {
		return show(math.Exp(-log), "1") + " times faster"
	}
	return show(math.Exp(log), "1") + " times slower"
}
