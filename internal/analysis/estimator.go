package analysis

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/stats"
)

// The estimators of a rate. All but the aggregate look at files one by one.
const (
	aggregate    = "aggregate"     // all bytes over gate to last done
	meanRate     = "mean"          // mean of the files' rates
	medianRate   = "median"        // median of the files' rates
	trimmedRate  = "trimmed"       // mean of the middle 60 % of the files' rates
	theilSen     = "theil-sen"     // 1 / median slope of time on size
	leastSquares = "least-squares" // 1 / slope of the least squares line of time on size
	weighted     = "weighted"      // the same with weights 1/size²
	minimum      = "minimum"
	maximum      = "maximum"
	latency      = "latency" // intercept of the weighted line, in seconds
)

// panel are the estimators that a verdict is given under where the source does
// not name the statistic of its figures.
var panel = []string{aggregate, meanRate, medianRate, trimmedRate, theilSen, leastSquares}

// trimShare is cut from each end of the ordered rates.
const trimShare = 0.2

// errWorkers refuses statistics of files that shared the machine.
var errWorkers = errors.New("several workers ran at once, and only all bytes over the whole time is a rate then")

// errSlope refuses a rate from a line that does not rise.
var errSlope = errors.New("time does not grow with size")

// sampleFilter picks files of a step by size and set; nil picks all.
type sampleFilter struct{ size, set *plan.Choice }

func filterOf(sel plan.Selector) *sampleFilter {
	var f sampleFilter
	if c, ok := choiceOf(sel, "file_size"); ok {
		f.size = &c
	}
	if c, ok := choiceOf(sel, "set"); ok {
		f.set = &c
	}
	if f.size == nil && f.set == nil {
		return nil
	}
	return &f
}

func (f *sampleFilter) apply(samples []result.Sample) []result.Sample {
	if f == nil {
		return samples
	}
	type part struct {
		size int64
		set  int
	}
	var out []result.Sample
	known := map[part]bool{}
	for _, s := range samples {
		k := part{s.Bytes, s.Set}
		if _, ok := known[k]; !ok {
			known[k] = (f.size == nil || accepts(*f.size, sizeText(s.Bytes))) && (f.set == nil || accepts(*f.set, fmt.Sprint(s.Set)))
		}
		if known[k] {
			out = append(out, s)
		}
	}
	return out
}

// files are the samples of steps as columns: size in bytes, time in seconds.
type files struct {
	size, time, rate []float64
	workers          int
}

func filesOf(steps []*result.Step, f *sampleFilter) files {
	var out files
	for _, st := range steps {
		out.workers = max(out.workers, workers(st))
		for _, s := range f.apply(st.Samples) {
			if s.DurationNS <= 0 || s.Bytes <= 0 {
				continue
			}
			t := float64(s.DurationNS) / 1e9
			out.size = append(out.size, float64(s.Bytes))
			out.time = append(out.time, t)
			out.rate = append(out.rate, float64(s.Bytes)/t)
		}
	}
	return out
}

// weights are 1/size²: the error of a transfer's time grows with its size.
func (f files) weights() []float64 {
	w := make([]float64, len(f.size))
	for i, s := range f.size {
		w[i] = 1 / (s * s)
	}
	return w
}

// stepRate is the rate of the steps of one round under an estimator, in bytes
// per second (the latency in seconds), with the number of files it rests on.
func stepRate(est string, steps []*result.Step, f *sampleFilter) (v float64, n int, err error) {
	fs := filesOf(steps, f)
	n = len(fs.rate)
	if est == aggregate {
		v, err = aggregateRate(steps, f, fs)
		return v, n, err
	}
	if n == 0 {
		return 0, 0, errors.New("no file was timed")
	}
	switch est {
	case meanRate:
		v, err = stats.Mean(fs.rate)
	case medianRate:
		v, err = stats.Median(fs.rate)
	case trimmedRate:
		v, err = stats.TrimmedMean(fs.rate, trimShare)
	case minimum:
		v = slices.Min(fs.rate)
	case maximum:
		v = slices.Max(fs.rate)
	default:
		v, err = fs.fitted(est)
	}
	return v, n, err
}

// aggregateRate is all bytes over gate to last done. Of a part of the files it
// is their bytes over the sum of their times, which only one worker allows.
func aggregateRate(steps []*result.Step, f *sampleFilter, fs files) (float64, error) {
	var bytes, seconds float64
	if f == nil {
		for _, st := range steps {
			bytes += float64(spanBytes(st))
			seconds += float64(spanNS(st)) / 1e9
		}
	} else {
		if fs.workers > 1 {
			return 0, errWorkers
		}
		for i := range fs.size {
			bytes += fs.size[i]
			seconds += fs.time[i]
		}
	}
	if bytes <= 0 || seconds <= 0 {
		return 0, errors.New("nothing was transferred")
	}
	return bytes / seconds, nil
}

// fitted is a rate, or the latency, from a line of time on size.
func (f files) fitted(est string) (float64, error) {
	if f.workers > 1 {
		return 0, errWorkers
	}
	var slope float64
	switch est {
	case theilSen:
		l, err := stats.FitTheilSen(f.size, f.time)
		if err != nil {
			return 0, err
		}
		slope = l.Slope
	case leastSquares, weighted, latency:
		l, err := f.line(est)
		if err != nil {
			return 0, err
		}
		if est == latency {
			return l.Intercept, nil
		}
		slope = l.Slope
	default:
		return 0, fmt.Errorf("%q is not an estimator", est)
	}
	if !(slope > 0) {
		return 0, errSlope
	}
	return 1 / slope, nil
}

func (f files) line(est string) (stats.Line, error) {
	if est == leastSquares {
		return stats.FitLine(f.size, f.time)
	}
	return stats.FitWeightedLine(f.size, f.time, f.weights())
}

// value is the quantity in the steps of one round: a rate under the
// estimator, anything else as the mean of the steps.
func value(q plan.Quantity, est string, steps []*result.Step, f *sampleFilter) (v float64, n int, err error) {
	if perFile(q) {
		return stepRate(est, steps, f)
	}
	if f != nil && fileTime(q) {
		fs := filesOf(steps, f)
		v, err = stats.Mean(fs.time)
		return v, len(fs.time), err
	}
	var xs []float64
	for _, st := range steps {
		if x := stepValue(q, st); !math.IsNaN(x) {
			xs = append(xs, x)
		}
	}
	if len(xs) == 0 && quantityRows[q].overLive && !slices.ContainsFunc(steps, func(st *result.Step) bool { return st.Live > 0 }) {
		return 0, 0, errors.New("no files were on the volume")
	}
	if len(xs) == 0 {
		return 0, 0, fmt.Errorf("the step does not record its %s", nameOf(q))
	}
	if v, err = stats.Mean(xs); err != nil {
		return 0, 0, err
	}
	switch est {
	case minimum:
		v = slices.Min(xs)
	case maximum:
		v = slices.Max(xs)
	}
	return v, len(xs), nil
}
