package analysis

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/plan"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
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
	errWorkers = because("several-workers")
	errSlope   = because("time-falls")
	errNoFile  = because("no-file")
)

// because is a sentence as an error.
func because(key string, args ...any) error { return errors.New(wording.Text(key, args...)) }

// sampleKeys are the selector keys that pick files of a step.
var sampleKeys = []string{"file_size", "set"}

// filterOf is the part of a selector that picks files of a step; an empty one
// picks all.
func filterOf(sel plan.Selector) plan.Selector {
	return slices.DeleteFunc(slices.Clone(sel), func(c plan.Choice) bool { return !slices.Contains(sampleKeys, c.Key) })
}

// filterText names the part of the files: "2 GB", "set 1".
func filterText(f plan.Selector) string {
	parts := make([]string, len(f))
	for i, c := range f {
		if parts[i] = strings.Join(c.Values, " or "); c.Key == "set" {
			parts[i] = "set " + parts[i]
		}
	}
	return wording.NonEmpty(parts...)
}

// filtered are the samples that a filter picks.
func filtered(samples []result.Sample, f plan.Selector) []result.Sample {
	if len(f) == 0 {
		return samples
	}
	type part struct {
		size int64
		set  int
	}
	// A step has far more files than sizes, and a comparison parses texts
	known := map[part]bool{}
	var out []result.Sample
	for _, s := range samples {
		k := part{s.Bytes, s.Set}
		if _, ok := known[k]; !ok {
			known[k] = f.Match(func(key string) (string, bool) {
				if key == "set" {
					return strconv.Itoa(s.Set), true
				}
				return wording.Size(s.Bytes).String(), true
			})
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
func filesOf(steps []*result.Step, f plan.Selector) (out files) {
	for _, st := range steps {
		out.workers = max(out.workers, workers(st))
		for _, s := range filtered(st.Samples, f) {
			if isTimed(s) {
				out.add(s)
			}
		}
	}
	return out
}

func isTimed(s result.Sample) bool { return s.Bytes > 0 && s.DurationNS > 0 }

func (f *files) add(s result.Sample) {
	t := float64(s.DurationNS) / 1e9
	f.size, f.time = append(f.size, float64(s.Bytes)), append(f.time, t)
	f.rate = append(f.rate, float64(s.Bytes)/t)
}

// weightedLine is the line of time on size with weights 1/size², since the
// error of a transfer's time grows with its size.
func (f files) weightedLine() (stats.Line, error) {
	w := make([]float64, len(f.size))
	for i, s := range f.size {
		w[i] = 1 / (s * s)
	}
	return stats.FitWeightedLine(f.size, f.time, w)
}

// ofFiles are the estimators of files one by one.
var ofFiles = map[string]func(f files) (float64, error){
	meanRate:     func(f files) (float64, error) { return stats.Mean(f.rate) },
	medianRate:   func(f files) (float64, error) { return stats.Median(f.rate) },
	trimmedRate:  func(f files) (float64, error) { return stats.TrimmedMean(f.rate, trimShare) },
	minimum:      func(f files) (float64, error) { return slices.Min(f.rate), nil },
	maximum:      func(f files) (float64, error) { return slices.Max(f.rate), nil },
	theilSen:     func(f files) (float64, error) { return f.fitted(theilSen) },
	leastSquares: func(f files) (float64, error) { return f.fitted(leastSquares) },
	weighted:     func(f files) (float64, error) { return f.fitted(weighted) },
	latency:      func(f files) (float64, error) { return f.fitted(latency) },
}

// fitted is a rate, or the latency, from a line of time on size.
func (f files) fitted(est string) (float64, error) {
	if f.workers > 1 {
		return 0, errWorkers
	}
	var l stats.Line
	var err error
	switch est {
	case theilSen:
		var t stats.TheilSen
		t, err = stats.FitTheilSen(f.size, f.time)
		l.Slope = t.Slope
	case leastSquares:
		l, err = stats.FitLine(f.size, f.time)
	default:
		l, err = f.weightedLine()
	}
	switch {
	case err != nil:
		return 0, err
	case est == latency:
		return l.Intercept, nil
	case !(l.Slope > 0):
		return 0, errSlope
	}
	return 1 / l.Slope, nil
}

// stepRate is the rate of the steps of one round under an estimator, in bytes
// per second (the latency in seconds), with the number of its files.
func stepRate(est string, steps []*result.Step, f plan.Selector) (x stepsResult) {
	fs := filesOf(steps, f)
	x.n = len(fs.rate)
	of, known := ofFiles[est]
	switch {
	case est == aggregate:
		x.v, x.err = aggregateRate(steps, f, fs)
	case !known:
		x.err = because("no-estimator", est)
	case x.n == 0:
		x.err = errNoFile
	default:
		x.v, x.err = of(fs)
	}
	return x
}

// aggregateRate is all bytes over gate to last done. Of a part of the files it
// is their bytes over the sum of their times, which only one worker allows.
func aggregateRate(steps []*result.Step, f plan.Selector, fs files) (float64, error) {
	var bytes, seconds float64
	switch {
	case len(f) == 0:
		for _, st := range steps {
			bytes += float64(spanBytes(st))
			seconds += float64(spanNS(st)) / 1e9
		}
	case fs.workers > 1:
		return 0, errWorkers
	default:
		bytes, seconds = sum(fs.size), sum(fs.time)
	}
	if bytes <= 0 || seconds <= 0 {
		return 0, because("nothing-transferred")
	}
	return bytes / seconds, nil
}

// stepsValue is the quantity in the steps of one round: a rate under the
// estimator, anything else as the mean of the steps.
func stepsValue(q plan.Quantity, est string, steps []*result.Step, f plan.Selector) (x stepsResult) {
	if isPerFile(q) {
		x = stepRate(est, steps, f)
	} else {
		x = stepMean(q, est, steps, f)
	}
	if x.err == nil && !finite(x.v) {
		x.err = because("not-finite")
	}
	return x
}

// stepMean is the mean of the values of steps, or their smallest or largest.
func stepMean(q plan.Quantity, est string, steps []*result.Step, f plan.Selector) (x stepsResult) {
	var values []float64
	isLive := false
	if len(f) > 0 && isFileTime(q) {
		values = filesOf(steps, f).time
	} else {
		for _, st := range steps {
			isLive = isLive || st.Live > 0
			if v := stepValue(q, st); !math.IsNaN(v) {
				values = append(values, v)
			}
		}
	}
	x.n = len(values)
	switch {
	case x.n == 0 && quantityRows[q].overLive && !isLive:
		x.err = because("no-live-files")
	case x.n == 0:
		x.err = because("not-recorded", QuantityName(q))
	case est == minimum:
		x.v = slices.Min(values)
	case est == maximum:
		x.v = slices.Max(values)
	default:
		x.v, x.err = stats.Mean(values)
	}
	return x
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
	iv, err := f.interval(e.Name, steps)
	switch {
	case errors.Is(err, stats.ErrTooFew):
		e.Why = wording.Text("one-round.too-few", minRounds, stats.MinInGroup)
		return
	case err != nil:
		e.Why = wording.Text("one-round.files", minRounds, err)
		return
	}
	if (e.Name == medianRate || e.Name == theilSen) && slices.ContainsFunc(steps, hasTwoSpeeds) {
		iv.Method = wording.Text("method.two-speeds", iv.Method)
	}
	e.CI = ciOf(iv, fileUnit, iv.Method)
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

// jackknifed is an estimator of files of chosen sizes with scattering times,
// as stats.JackknifeByGroup takes it.
type jackknifed struct {
	statistic func(size, time []float64) float64
	// The statistic is a slope, the inverse of the rate
	isSlope bool
}

var jackknifes = map[string]jackknifed{
	aggregate: {statistic: func(size, time []float64) float64 { return sum(size) / sum(time) }},
	meanRate:  {statistic: func(size, time []float64) float64 { return mean(rates(size, time)) }},
	trimmedRate: {statistic: func(size, time []float64) float64 {
		return orNaN(stats.TrimmedMean(rates(size, time), trimShare))
	}},
	latency:  {statistic: relativeIntercept},
	weighted: {statistic: relativeSlope, isSlope: true},
	leastSquares: {isSlope: true, statistic: func(size, time []float64) float64 {
		l, err := stats.FitLine(size, time)
		return orNaN(l.Slope, err)
	}},
}

// interval is that of an estimator over the files of one round.
func (f files) interval(name string, steps []*result.Step) (iv stats.Interval, err error) {
	own, keep := jackknifes[name], 1.0
	switch name {
	case medianRate:
		return stats.MedianInterval(f.rate, level)
	case theilSen:
		l, err := stats.FitTheilSen(f.size, f.time)
		if err != nil {
			return iv, err
		}
		return invertInterval(l.SlopeIntervalByGroup(f.size, f.time, level))
	case trimmedRate:
		if keep = 1 - 2*trimShare; len(f.size) < minTrimmed {
			return iv, because("too-few-trimmed", wording.Count{N: len(f.size), Noun: "file"}, minTrimmed)
		}
	case aggregate:
		if f.workers > 1 {
			return iv, errWorkers
		}
		f.spreadIdle(steps)
	}
	// Far outliers are rare, so that a sample that has some does not show how
	// many there are.
	if keep == 1 && f.hasOutliers() {
		return iv, because("far-files")
	}
	iv, err = stats.JackknifeByGroup(f.size, f.time, own.statistic, keep, level)
	if own.isSlope {
		return invertInterval(iv, err)
	}
	return iv, err
}

// spreadIdle spreads the idle time between files over all in proportion, so
// that bytes over the sum of the times is the aggregate itself.
func (f *files) spreadIdle(steps []*result.Step) {
	span := 0.0
	for _, st := range steps {
		span += float64(spanNS(st)) / 1e9
	}
	busy, times := sum(f.time), make([]float64, len(f.time))
	for i, t := range f.time {
		times[i] = t * span / busy
	}
	f.time = times
}

func rates(size, time []float64) []float64 {
	out := make([]float64, len(size))
	for i := range size {
		out[i] = size[i] / time[i]
	}
	return out
}

func relativeSlope(size, time []float64) float64 {
	slope, _ := relativeLine(size, time)
	return slope
}

func relativeIntercept(size, time []float64) float64 {
	_, intercept := relativeLine(size, time)
	return intercept
}

// relativeLine is [files.weightedLine] in closed form, for the many calls of a
// jackknife: with u = 1/size the sums of the weighted products are those of u²,
// u, 1, u²·time and u·time. It is not finite where all files have one size.
func relativeLine(size, time []float64) (slope, intercept float64) {
	n, largest := float64(len(size)), slices.Max(size)
	var u1, u2, u1t, u2t float64
	for i, s := range size {
		u := largest / s
		u1, u2 = u1+u, u2+u*u
		u1t, u2t = u1t+u*time[i], u2t+u*u*time[i]
	}
	below := u2*n - u1*u1
	slope = (u2*u1t - u1*u2t) / below
	return slope / largest, (n*u2t - u1*u1t) / below
}

func sum(xs []float64) (total float64) {
	for _, x := range xs {
		total += x
	}
	return total
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

// ciOf is an interval as results have it, made by a method over a unit of
// replication; nil where it is not finite, which JSON does not have.
func ciOf(iv stats.Interval, unit, method string) *result.CI {
	if !finite(iv.Low, iv.High) {
		return nil
	}
	return &result.CI{Low: iv.Low, High: iv.High, Level: iv.Level, Method: method, Unit: unit}
}
