package analysis

import (
	"errors"
	"math"
	"slices"

	"dmgbench/internal/result"
	"dmgbench/internal/stats"
	"dmgbench/internal/wording"
)

// fileUnit is the unit of replication of an interval over the files of one mount.
const fileUnit = "file within one mount"

// minTrimmed is the least number of files for the interval of a trimmed mean: that of
// fewer is too wide for its level (docs/accuracy.md).
const minTrimmed = 6

// fileInterval gives an estimate of a single round an interval over its files.
// It shows how the files of this mount scatter, not what another mount would show.
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

// hasTwoSpeeds reports whether the files of a step are of two speeds. Files that follow each
// other share theirs, so that the exact intervals, which take files to be independent,
// contain the rate of a long run less often than their level.
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

// bySize is the interval of a statistic of files of chosen sizes, the times of which
// scatter, the more the larger they are.
// keep is the share of the files that decide it. Far outliers are rare, so that a
// sample that has some does not show how many there are: no interval then.
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
// closed form: with u = 1/size the sums of the weighted
// products are those of u², u, 1, u²·time and u·time. It is not finite, and so no
// interval, where all files have one size.
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

// invertInterval turns the interval of a slope (seconds a byte) into that of a rate.
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
