package analysis

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/stats"
	"dmgbench/internal/wording"
)

// The estimators of a rate. All but the aggregate look at files one by one.
const (
	// All bytes over gate to last done
	aggregate = "aggregate"
	// Mean of the files' rates
	meanRate = "mean"
	// Median of the files' rates
	medianRate = "median"
	// Mean of the middle 60 % of the files' rates
	trimmedRate = "trimmed"
	// 1 / median slope of time on size
	theilSen = "theil-sen"
	// 1 / slope of the least squares line of time on size
	leastSquares = "least-squares"
	// The same with weights 1/size²
	weighted = "weighted"
	minimum  = "minimum"
	maximum  = "maximum"
	// Intercept of the weighted line, in seconds
	latency = "latency"
)

// panel are the estimators that a verdict is given under where the source does
// not name the statistic of its figures.
var panel = []string{aggregate, meanRate, medianRate, trimmedRate, theilSen, leastSquares}

// Estimators are the names of estimators of a rate that can be quoted.
func Estimators() []string { return append(slices.Clone(panel), weighted) }

// trimShare is cut from each end of the ordered rates.
const trimShare = 0.2

// The reasons for which files have no statistic.
var (
	errWorkers     = because("several-workers")
	errSlope       = because("time-falls")
	errOutliers    = because("far-files")
	errNoFile      = because("no-file")
	errNothing     = because("nothing-transferred")
	errNoLiveFiles = because("no-live-files")
)

// because is a sentence as an error.
func because(key string, args ...any) error { return errors.New(wording.Text(key, args...)) }

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
	if f == (sampleFilter{}) {
		return nil
	}
	return &f
}

// text names the part of the files: "2 GB", "set 1".
func (f *sampleFilter) text() string {
	var size, set string
	if f.size != nil {
		size = strings.Join(f.size.Values, " or ")
	}
	if f.set != nil {
		set = "set " + strings.Join(f.set.Values, " or ")
	}
	return wording.NonEmpty(size, set)
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
			known[k] = (f.size == nil || accepts(*f.size, wording.Size(s.Bytes).String())) &&
				(f.set == nil || accepts(*f.set, fmt.Sprint(s.Set)))
		}
		if known[k] {
			out = append(out, s)
		}
	}
	return out
}

// files are the samples of steps as columns: size in bytes, time in seconds,
// rate in bytes per second.
type files struct {
	size, time, rate []float64
	workers          int
}

// filesOf are the samples of steps that the filter picks and that took a time.
func filesOf(steps []*result.Step, f *sampleFilter) (out files) {
	for _, st := range steps {
		out.workers = max(out.workers, workers(st))
		out.add(f.apply(st.Samples))
	}
	return out
}

func (f *files) add(samples []result.Sample) {
	for _, s := range samples {
		if s.DurationNS > 0 && s.Bytes > 0 {
			t := float64(s.DurationNS) / 1e9
			f.size = append(f.size, float64(s.Bytes))
			f.time = append(f.time, t)
			f.rate = append(f.rate, float64(s.Bytes)/t)
		}
	}
}

// line is the line of time on size of an estimator.
func (f files) line(est string) (stats.Line, error) {
	if est == leastSquares {
		return stats.FitLine(f.size, f.time)
	}
	w := make([]float64, len(f.size))
	for i, s := range f.size {
		// The error of a transfer's time grows with its size
		w[i] = 1 / (s * s)
	}
	return stats.FitWeightedLine(f.size, f.time, w)
}

// stepRate is the rate of the steps of one round under an estimator, in bytes
// per second (the latency in seconds), with the number of its files.
func stepRate(est string, steps []*result.Step, f *sampleFilter) (v float64, n int, err error) {
	fs := filesOf(steps, f)
	n = len(fs.rate)
	switch {
	case est == aggregate:
		v, err = aggregateRate(steps, f, fs)
	case n == 0:
		return 0, 0, errNoFile
	case est == meanRate:
		v, err = stats.Mean(fs.rate)
	case est == medianRate:
		v, err = stats.Median(fs.rate)
	case est == trimmedRate:
		v, err = stats.TrimmedMean(fs.rate, trimShare)
	case est == minimum:
		v = slices.Min(fs.rate)
	case est == maximum:
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
	switch {
	case f == nil:
		for _, st := range steps {
			bytes += float64(spanBytes(st))
			seconds += float64(spanNS(st)) / 1e9
		}
	case fs.workers > 1:
		return 0, errWorkers
	default:
		for i := range fs.size {
			bytes += fs.size[i]
			seconds += fs.time[i]
		}
	}
	if bytes <= 0 || seconds <= 0 {
		return 0, errNothing
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
		return 0, because("no-estimator", est)
	}
	if !(slope > 0) {
		return 0, errSlope
	}
	return 1 / slope, nil
}

// stepsValue is the quantity in the steps of one round: a rate under the
// estimator, anything else as the mean of the steps. n is the number of files
// or steps.
func stepsValue(q plan.Quantity, est string, steps []*result.Step, f *sampleFilter) (v float64, n int, err error) {
	if isPerFile(q) {
		return stepRate(est, steps, f)
	}
	if f != nil && isFileTime(q) {
		fs := filesOf(steps, f)
		v, err = stats.Mean(fs.time)
		return v, len(fs.time), err
	}
	var xs []float64
	live := false
	for _, st := range steps {
		live = live || st.Live > 0
		if x := stepValue(q, st); !math.IsNaN(x) {
			xs = append(xs, x)
		}
	}
	switch {
	case len(xs) == 0 && quantityRows[q].overLive && !live:
		return 0, 0, errNoLiveFiles
	case len(xs) == 0:
		return 0, 0, because("not-recorded", nameOf(q))
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

// fileUnit is the unit of replication of an interval over the files of one
// mount.
const fileUnit = "file within one mount"

// minTrimmed is the least number of files for the interval of a trimmed mean:
// that of fewer is too wide for its level (docs/accuracy.md).
const minTrimmed = 6

// fileInterval gives an estimate of a single round an interval over its files.
// It shows how the files of this mount scatter, not what another mount would
// show.
func fileInterval(e *result.Estimate, f files, steps []*result.Step) {
	iv, err := intervalOfFiles(e.Name, f, steps)
	switch {
	case errors.Is(err, stats.ErrTooFew):
		e.Why = wording.Text("one-round.too-few", minRounds, stats.MinInGroup)
		return
	case err != nil:
		e.Why = wording.Text("one-round.files", minRounds, err)
		return
	}
	e.CI = ciOf(iv, fileUnit)
	if (e.Name == medianRate || e.Name == theilSen) && slices.ContainsFunc(steps, hasTwoSpeeds) {
		e.CI.Method = wording.Text("method.two-speeds", e.CI.Method)
	}
}

// hasTwoSpeeds reports whether the files of a step are of two speeds. Files
// that follow each other share theirs, so that the exact intervals, which take
// files to be independent, contain the rate of a long run less often than their
// level.
func hasTwoSpeeds(st *result.Step) bool {
	return slices.ContainsFunc(StepWarnings(st), func(w result.Warning) bool {
		return w.Kind == "bimodal" || w.Kind == "two-modes"
	})
}

func intervalOfFiles(name string, f files, steps []*result.Step) (stats.Interval, error) {
	switch name {
	case aggregate:
		return f.aggregateInterval(steps)
	case meanRate:
		return f.bySize(1, func(size, time []float64) float64 { return average(rates(size, time)) })
	case medianRate:
		return stats.MedianInterval(f.rate, level)
	case trimmedRate:
		return f.bySize(1-2*trimShare, func(size, time []float64) float64 {
			return orNaN(stats.TrimmedMean(rates(size, time), trimShare))
		})
	case theilSen:
		l, err := stats.FitTheilSen(f.size, f.time)
		if err != nil {
			return stats.Interval{}, err
		}
		return invertInterval(l.SlopeIntervalByGroup(f.size, f.time, level))
	case weighted, latency:
		return f.weightedInterval(name)
	}
	return invertInterval(f.bySize(1, func(size, time []float64) float64 {
		l, err := stats.FitLine(size, time)
		return orNaN(l.Slope, err)
	}))
}

// bySize is the interval of a statistic of files of chosen sizes, the times of
// which scatter, the more the larger they are. keep is the share of the files
// that decide it. Far outliers are rare, so that a sample that has some does
// not show how many there are: no interval then.
func (f files) bySize(keep float64, statistic func(size, time []float64) float64) (stats.Interval, error) {
	if keep == 1 && f.hasOutliers() {
		return stats.Interval{}, errOutliers
	}
	if keep < 1 && len(f.size) < minTrimmed {
		return stats.Interval{}, because("too-few-trimmed", wording.Count{N: len(f.size), Noun: "file"}, minTrimmed)
	}
	return stats.JackknifeByGroup(f.size, f.time, statistic, keep, level)
}

func rates(size, time []float64) []float64 {
	out := make([]float64, len(size))
	for i := range size {
		out[i] = size[i] / time[i]
	}
	return out
}

func (f files) weightedInterval(name string) (stats.Interval, error) {
	if _, err := f.line(name); err != nil {
		return stats.Interval{}, err
	}
	if name == latency {
		return f.bySize(1, func(x, y []float64) float64 {
			_, intercept := relativeLine(x, y)
			return intercept
		})
	}
	return invertInterval(f.bySize(1, func(x, y []float64) float64 {
		slope, _ := relativeLine(x, y)
		return slope
	}))
}

// relativeLine is the line of [stats.FitWeightedLine] with weights 1/size² in
// closed form: with u = 1/size the sums of the weighted products are those of
// u², u, 1, u²·time and u·time. It is not finite, and so no interval, where all
// files have one size.
func relativeLine(size, time []float64) (slope, intercept float64) {
	n, largest := float64(len(size)), slices.Max(size)
	var u1, u2, u1t, u2t float64
	same := true
	for i, s := range size {
		u := largest / s
		u1, u2 = u1+u, u2+u*u
		u1t, u2t = u1t+u*time[i], u2t+u*u*time[i]
		same = same && s == size[0]
	}
	if same {
		return math.NaN(), math.NaN()
	}
	below := u2*n - u1*u1
	slope = (u2*u1t - u1*u2t) / below
	return slope / largest, (n*u2t - u1*u1t) / below
}

func average(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

// aggregateInterval is over files; the idle time between them is spread over
// all in proportion, so that the statistic is the aggregate itself.
func (f files) aggregateInterval(steps []*result.Step) (stats.Interval, error) {
	if f.workers > 1 {
		return stats.Interval{}, errWorkers
	}
	span, busy := 0.0, 0.0
	for _, st := range steps {
		span += float64(spanNS(st)) / 1e9
	}
	for _, t := range f.time {
		busy += t
	}
	if busy <= 0 {
		return stats.Interval{}, errNoFile
	}
	stretched := make([]float64, len(f.time))
	for i, t := range f.time {
		stretched[i] = t * span / busy
	}
	f.time = stretched
	return f.bySize(1, func(x, y []float64) float64 { return average(x) / average(y) })
}

// invertInterval turns the interval of a slope (seconds a byte) into that of a
// rate.
func invertInterval(iv stats.Interval, err error) (stats.Interval, error) {
	if err == nil && !(iv.Low > 0) {
		err = errSlope
	}
	iv.Low, iv.High = 1/iv.High, 1/iv.Low
	return iv, err
}

// ciOf is an interval as results have it; unit is what was replicated.
func ciOf(iv stats.Interval, unit string) *result.CI {
	return &result.CI{Low: iv.Low, High: iv.High, Level: iv.Level, Method: iv.Method, Unit: unit}
}
