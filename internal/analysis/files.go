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

// workers is how many workers did the step's file I/O.
func workers(st *result.Step) int {
	n := max(st.Workers, 1)
	for _, s := range st.Samples {
		n = max(n, s.Worker+1)
	}
	return n
}

// spanNS is the time from gate to last done in nanoseconds; without a span it
// is first start to last end of the samples, without samples the whole step.
func spanNS(st *result.Step) int64 {
	if st.Span != nil {
		return st.Span.LastDoneNS - st.Span.GateNS
	}
	if len(st.Samples) == 0 {
		return st.DurationNS
	}
	first, last := st.Samples[0].StartNS, int64(0)
	for _, s := range st.Samples {
		first, last = min(first, s.StartNS), max(last, s.StartNS+s.DurationNS)
	}
	return last - first
}

// spanBytes is what was transferred in that time.
func spanBytes(st *result.Step) int64 {
	if st.Span != nil {
		return st.Span.Bytes
	}
	return sampleBytes(st.Samples)
}

func sampleBytes(samples []result.Sample) (n int64) {
	for _, s := range samples {
		n += s.Bytes
	}
	return n
}

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

// filterOf is the part of a selector that picks files of a step; an empty one
// picks all.
func filterOf(sel plan.Selector) plan.Selector {
	isOfCase := func(c plan.Choice) bool { return c.Key != "file_size" && c.Key != "set" }
	return slices.DeleteFunc(slices.Clone(sel), isOfCase)
}

// filterText names the part of the files: "2 GB", "set 1".
func filterText(f plan.Selector) string {
	return wording.JoinFacts(mapped(f, func(c plan.Choice) string {
		return map[string]string{"set": "set "}[c.Key] + strings.Join(c.Values, " or ")
	})...)
}

// filtered are the samples that a filter picks.
func filtered(samples []result.Sample, f plan.Selector) []result.Sample {
	if len(f) == 0 {
		return samples
	}
	// A step has far more files than sizes, and a comparison parses texts
	known := map[[2]int64]bool{}
	return slices.DeleteFunc(slices.Clone(samples), func(s result.Sample) bool {
		k := [2]int64{s.Bytes, int64(s.Set)}
		if _, ok := known[k]; !ok {
			known[k] = f.Match(func(key string) (string, bool) { return sampleValue(s, key), true })
		}
		return !known[k]
	})
}

// sampleValue is the set, or the size, of a file as selectors have it.
func sampleValue(s result.Sample, key string) string {
	if key == "set" {
		return strconv.Itoa(s.Set)
	}
	return wording.Size(s.Bytes).String()
}

// files are the samples of steps as columns: size in bytes, time in seconds,
// rate in bytes per second.
type files struct {
	size, time, rate []float64
	workers          int
}

// filesOf are the samples of steps that the filter picks and that count.
func filesOf(steps []*result.Step, f plan.Selector) (out files) {
	for _, st := range steps {
		out.workers = max(out.workers, workers(st))
		picked := filtered(st.Samples, f)
		out.grow(len(picked))
		for _, s := range picked {
			if s.IsTimed() {
				out.add(float64(s.Bytes), float64(s.DurationNS)/1e9)
			}
		}
	}
	return out
}

// grow makes room for n more files.
func (f *files) grow(n int) {
	f.size, f.time, f.rate = slices.Grow(f.size, n), slices.Grow(f.time, n), slices.Grow(f.rate, n)
}

func (f *files) add(size, time float64) {
	f.size, f.time, f.rate = append(f.size, size), append(f.time, time), append(f.rate, size/time)
}

// weightedLine is the line of time on size with weights 1/size², since the
// error of a transfer's time grows with its size.
func (f files) weightedLine() (stats.Line, error) {
	return stats.FitWeightedLine(f.size, f.time, mapped(f.size, func(s float64) float64 { return 1 / (s * s) }))
}

// estimator is a statistic of files one by one.
type estimator struct {
	of func(f files) (float64, error)
	// From a line of time on size, which several workers do not have
	isLine bool
	// A slope, the inverse of the rate
	isSlope bool
}

var estimators = map[string]estimator{
	aggregate:   {of: func(f files) (float64, error) { return stats.Sum(f.size) / stats.Sum(f.time), nil }},
	meanRate:    {of: func(f files) (float64, error) { return stats.Mean(f.rate) }},
	medianRate:  {of: func(f files) (float64, error) { return stats.Median(f.rate) }},
	trimmedRate: {of: func(f files) (float64, error) { return stats.TrimmedMean(f.rate, trimShare) }},
	minimum:     {of: func(f files) (float64, error) { return slices.Min(f.rate), nil }},
	maximum:     {of: func(f files) (float64, error) { return slices.Max(f.rate), nil }},
	theilSen: {isLine: true, isSlope: true, of: func(f files) (float64, error) {
		l, err := stats.FitTheilSen(f.size, f.time)
		return l.Slope, err
	}},
	leastSquares: {isLine: true, isSlope: true, of: func(f files) (float64, error) {
		l, err := stats.FitLine(f.size, f.time)
		return l.Slope, err
	}},
	weighted: {isLine: true, isSlope: true, of: func(f files) (float64, error) {
		l, err := f.weightedLine()
		return l.Slope, err
	}},
	latency: {isLine: true, of: func(f files) (float64, error) {
		l, err := f.weightedLine()
		return l.Intercept, err
	}},
}

// stepRate is the rate of the steps of one round under an estimator, in bytes
// per second (the latency in seconds), with the number of its files.
func stepRate(est string, steps []*result.Step, f plan.Selector) (x stepsResult) {
	fs := filesOf(steps, f)
	x.n = len(fs.rate)
	e, known := estimators[est]
	switch {
	case !known: // a result of another version
		x.err = because("no-estimator", est)
	case est == aggregate && len(f) > 0 && fs.workers > 1:
		x.err = errWorkers
	case est == aggregate:
		// All bytes over gate to last done; of a part of the files, over the sum of
		// their times
		bytes, seconds := stats.Sum(fs.size), stats.Sum(fs.time)
		if len(f) == 0 {
			bytes, seconds = 0, 0
			for _, st := range steps {
				bytes += float64(spanBytes(st))
				seconds += float64(spanNS(st)) / 1e9
			}
		}
		if x.v = bytes / seconds; bytes <= 0 || seconds <= 0 {
			x.err = because("nothing-transferred")
		}
	case x.n == 0:
		x.err = errNoFile
	case e.isLine && fs.workers > 1:
		x.err = errWorkers
	default:
		if x.v, x.err = e.of(fs); e.isSlope && x.err == nil {
			if x.v = 1 / x.v; !(x.v > 0) {
				x.err = errSlope
			}
		}
	}
	return x
}

// stepsValue is the quantity in the steps of one round: a rate under the
// estimator, anything else as the mean of the steps, or their smallest or
// largest. It is kept where that is a single step.
func (sub *caseData) stepsValue(
	q plan.Quantity, est string, steps []*result.Step, f plan.Selector,
) (x stepsResult) {
	if len(steps) == 1 && len(f) == 0 {
		k := stepValueKey{steps[0], q, est}
		if x, ok := sub.stepValues[k]; ok {
			return x
		}
		defer func() { sub.stepValues[k] = x }()
	}
	defer func() {
		if x.err == nil && !finite(x.v) {
			x.err = because("not-finite")
		}
	}()
	if isPerFile(q) {
		return stepRate(est, steps, f)
	}
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
func fileInterval(e *result.Estimate, steps []*result.Step) {
	iv, err := filesOf(steps, nil).interval(e.Name, steps)
	if err != nil {
		e.Why = wording.Text("one-round", minRounds, err)
		return
	}
	// Files that follow each other share their speed where there are two, so that
	// the exact intervals, which take files to be independent, contain the rate of
	// a long run less often than their level.
	isOfTwo := func(w result.Warning) bool { return w.Kind == "bimodal" || w.Kind == "two-modes" }
	hasTwo := func(st *result.Step) bool { return slices.ContainsFunc(StepWarnings(st), isOfTwo) }
	if (e.Name == medianRate || e.Name == theilSen) && slices.ContainsFunc(steps, hasTwo) {
		iv.Method = wording.Text("method.two-speeds", iv.Method)
	}
	e.CI, e.Why = ciOf(iv, fileUnit, iv.Method), ""
}

// interval is that of an estimator over the files of one round, which have
// chosen sizes and scattering times.
func (f files) interval(name string, steps []*result.Step) (iv stats.Interval, err error) {
	own, keep := estimators[name], 1.0
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
		// The idle time between files is spread over all in proportion, so that bytes
		// over the sum of the times is the aggregate itself.
		span, busy := 0.0, stats.Sum(f.time)
		for _, st := range steps {
			span += float64(spanNS(st)) / 1e9
		}
		f.time = mapped(f.time, func(t float64) float64 { return t * span / busy })
	}
	// Far outliers are rare, so that a sample that has some does not show how
	// many there are.
	if far, _ := farFiles(f.excess()); keep == 1 && len(far) > 0 {
		return iv, because("far-files")
	}
	iv, err = stats.JackknifeByGroup(f.size, f.time, func(size, time []float64) float64 {
		part := files{size: size, time: time, rate: make([]float64, len(size))}
		for i := range size {
			part.rate[i] = size[i] / time[i]
		}
		return orNaN(own.of(part))
	}, keep, level)
	if own.isSlope {
		return invertInterval(iv, err)
	}
	return iv, err
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

// findEstimate finds an estimate by name.
func findEstimate(list []result.Estimate, name string) (result.Estimate, bool) {
	return find(list, func(e result.Estimate) bool { return e.Name == name })
}
