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

// fileUnit is the unit of replication of an interval over the files of one mount.
const fileUnit = "file within one mount"

// summaries says what was measured, case by case in the order of the result,
// step by step in the order of the protocol.
func (s *study) summaries() []result.Summary {
	out := []result.Summary{}
	for _, sub := range s.cases {
		for _, k := range sub.order {
			for _, q := range quantitiesOf(k.do) {
				if sum, ok := s.summary(cell{sub, k}, q); ok {
					out = append(out, sum)
				}
			}
		}
	}
	return out
}

func (s *study) summary(c cell, q plan.Quantity) (result.Summary, bool) {
	out := result.Summary{Case: c.sub.c.ID, Phase: c.key.phase, Op: string(q), Cycle: c.key.cycle,
		Published: []result.PublishedValue{}, Departures: []string{}, Warnings: []result.Warning{}}
	head := gather(q, []cell{c}, aggregate, nil)
	if head.weak != "" || (q == "bands" || q == "bands_full") && c.sub.c.Target.Format != "UDSB" {
		return out, false
	}
	rounds, steps := c.byRound()
	out.Rounds, out.N = c.rounds(), head.n
	for _, r := range rounds {
		for _, st := range steps[r] {
			if rate(q) {
				out.Bytes += movedBytes(st)
			}
		}
	}
	if perFile(q) {
		out.Headline, out.Estimates = s.rates(c, q)
	} else {
		out.Headline, out.Estimates = scalars(c, q)
	}
	out.Published, out.Estimates = s.beside(c, q, out.Headline, out.Estimates)
	for _, d := range s.departed[""] {
		out.Departures = append(out.Departures, d.Text)
	}
	for _, d := range s.departed[c.sub.c.ID] {
		out.Departures = append(out.Departures, d.Text)
	}
	out.BySession = s.bySession(c, q, out.Headline)
	out.Warnings = s.warnings(c, q, out)
	if k := c.sub.c; !k.Measured() {
		out.Warnings = append(out.Warnings, result.Warning{Kind: "incomplete",
			Text: fmt.Sprintf("the case was %s, and this was measured before: %s", k.Status, orElse(k.Reason, "no reason was recorded"))})
	}
	return out, true
}

func movedBytes(st *result.Step) int64 {
	if st.Stream != nil {
		return st.Stream.In
	}
	return spanBytes(st)
}

// rates are the estimates of the rate of timed files. With several workers only
// the aggregate is a rate of the whole, and what is said of single files is what
// each got while the others ran.
func (s *study) rates(c cell, q plan.Quantity) (headline string, out []result.Estimate) {
	list := append(slices.Clone(panel), weighted, latency, minimum, maximum)
	headline = s.headlineName()
	several := slices.ContainsFunc(c.steps(), func(st *result.Step) bool { return workers(st) > 1 })
	if several {
		list, headline = []string{aggregate, meanRate, medianRate, trimmedRate, minimum, maximum}, aggregate
	}
	for _, name := range list {
		if e, ok := estimateRate(c, q, name); ok {
			out = append(out, e)
		}
	}
	if !slices.ContainsFunc(out, func(e result.Estimate) bool { return e.Name == headline }) {
		headline = aggregate
	}
	return headline, out
}

// estimateRate gives one estimate: the geometric mean of the rounds with its t
// interval, or, of a single round, its value with an interval over its files.
func estimateRate(c cell, q plan.Quantity, name string) (result.Estimate, bool) {
	x := gather(q, []cell{c}, name, nil)
	if x.weak != "" {
		return result.Estimate{}, false
	}
	e := result.Estimate{Name: name, Value: x.headline(), Unit: x.unit, N: x.n}
	if name == latency {
		e.Unit, e.Value = "s", plainScale.centre(x.values) // may be negative, where it is noise
	}
	switch {
	case name == minimum || name == maximum:
		e.Why = "an extreme value has no interval"
	case len(x.rounds) == 1 && x.per.unit != perSession:
		_, steps := c.byRound()
		fileInterval(&e, filesOf(steps[x.rounds[0]], nil), steps[x.rounds[0]])
	case name == latency:
		plainScale.over(x.per).roundInterval(&e, x.values)
	default:
		roundInterval(&e, x.values, x.per)
	}
	return e, true
}

// roundInterval gives an estimate the t interval of its rounds.
func roundInterval(e *result.Estimate, values []float64, per replica) {
	scaleOf(e.Unit, values).over(per).roundInterval(e, values)
}

func (sc scale) roundInterval(e *result.Estimate, values []float64) {
	iv, err := sc.interval(values)
	if err != nil {
		e.Why = fmt.Sprintf("%s, and an interval needs %d", sc.times(len(values)), minRounds)
		return
	}
	e.CI = ciOf(iv, sc.per.name())
	e.CI.Method = sc.name + sc.per.kept()
}

func ciOf(iv stats.Interval, unit string) *result.CI {
	return &result.CI{Low: iv.Low, High: iv.High, Level: iv.Level, Method: iv.Method, Unit: unit}
}

// fileInterval gives an estimate of a single round an interval over its files.
// It says how the files of this mount scatter, not what another mount would show.
func fileInterval(e *result.Estimate, f files, steps []*result.Step) {
	iv, err := intervalOfFiles(e.Name, f, steps)
	if err != nil {
		e.Why = fmt.Sprintf("1 round, where an interval needs %d%s", minRounds, noFileInterval(err))
		return
	}
	e.CI = ciOf(iv, fileUnit)
	if (e.Name == medianRate || e.Name == theilSen) && slices.ContainsFunc(steps, twoSpeeds) {
		e.CI.Method += ", too narrow: files at two speeds"
	}
}

// twoSpeeds reports whether the files of a step are of two speeds. Files that follow each
// other share theirs, so that the exact intervals, which take files to be independent,
// contain the rate of a long run less often than they say.
func twoSpeeds(st *result.Step) bool {
	return slices.ContainsFunc(StepWarnings(st), func(w result.Warning) bool { return w.Kind == "bimodal" || w.Kind == "two-modes" })
}

// noFileInterval says why the files of one round give no interval.
func noFileInterval(err error) string {
	if errors.Is(err, stats.ErrTooFew) {
		return fmt.Sprintf(" (or %d files of each size)", stats.MinInGroup)
	}
	return "; over its files: " + err.Error()
}

func intervalOfFiles(name string, f files, steps []*result.Step) (stats.Interval, error) {
	switch name {
	case aggregate:
		if f.workers > 1 {
			return stats.Interval{}, errWorkers
		}
		return f.aggregateInterval(steps)
	case meanRate:
		return f.bySize(1, func(size, time []float64) float64 { return average(rates(size, time)) })
	case medianRate:
		return stats.MedianInterval(f.rate, level)
	case trimmedRate:
		return f.bySize(1-2*trimShare, func(size, time []float64) float64 {
			m, err := stats.TrimmedMean(rates(size, time), trimShare)
			if err != nil {
				return math.NaN()
			}
			return m
		})
	case theilSen:
		l, err := stats.FitTheilSen(f.size, f.time)
		if err != nil {
			return stats.Interval{}, err
		}
		return inverse(l.SlopeIntervalByGroup(f.size, f.time, level))
	}
	if name == weighted || name == latency {
		return f.weightedInterval(name)
	}
	return inverse(f.bySize(1, func(size, time []float64) float64 {
		l, err := stats.FitLine(size, time)
		if err != nil {
			return math.NaN()
		}
		return l.Slope
	}))
}

// minTrimmed is the least number of files for the interval of a trimmed mean: that of
// fewer is too wide for its level (docs/accuracy.md).
const minTrimmed = 6

// bySize is the interval of a statistic of files whose sizes were chosen and whose
// times scatter, the more the larger they are.
// keep is the share of the files that decide it. Far outliers are rare, so that a
// sample that has some tells little of how many there are: no interval then.
func (f files) bySize(keep float64, statistic func(size, time []float64) float64) (stats.Interval, error) {
	if keep == 1 && f.outlying() {
		return stats.Interval{}, errOutliers
	}
	if keep < 1 && len(f.size) < minTrimmed {
		return stats.Interval{}, fmt.Errorf("%s, and an interval of what is left after trimming takes %d", plural(len(f.size), "file"), minTrimmed)
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
	iv, err := f.bySize(1, func(x, y []float64) float64 {
		slope, intercept := relativeLine(x, y)
		if name == latency {
			return intercept
		}
		return slope
	})
	if name == latency {
		return iv, err
	}
	return inverse(iv, err)
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
	span, busy := 0.0, 0.0
	for _, st := range steps {
		span += float64(spanNS(st)) / 1e9
	}
	for _, t := range f.time {
		busy += t
	}
	if busy <= 0 {
		return stats.Interval{}, fmt.Errorf("no file was timed")
	}
	stretched := make([]float64, len(f.time))
	for i, t := range f.time {
		stretched[i] = t * span / busy
	}
	f.time = stretched
	return f.bySize(1, func(x, y []float64) float64 { return average(x) / average(y) })
}

// inverse turns the interval of a slope (seconds a byte) into that of a rate.
func inverse(iv stats.Interval, err error) (stats.Interval, error) {
	if err == nil && !(iv.Low > 0) {
		err = errSlope
	}
	iv.Low, iv.High = 1/iv.High, 1/iv.Low
	return iv, err
}

// scalars are the estimates of what a step has as a whole: the mean of the rounds
// (geometric for rates and times), their median and extremes.
func scalars(c cell, q plan.Quantity) (string, []result.Estimate) {
	x := gather(q, []cell{c}, aggregate, nil)
	name := meanRate
	if q == "stream" {
		name = aggregate
	}
	e := result.Estimate{Name: name, Value: x.headline(), Unit: x.unit, N: x.n}
	roundInterval(&e, x.values, x.per)
	out := []result.Estimate{e}
	if x.n < 2 {
		return name, out
	}
	if m, err := stats.Median(x.values); err == nil {
		out = append(out, result.Estimate{Name: medianRate, Value: m, Unit: x.unit, N: x.n, Why: "the interval stands with the " + name})
	}
	for _, end := range []string{minimum, maximum} {
		v := gather(q, []cell{c}, end, nil)
		pick := slices.Min[[]float64]
		if end == maximum {
			pick = slices.Max[[]float64]
		}
		out = append(out, result.Estimate{Name: end, Value: pick(v.values), Unit: x.unit, N: x.n, Why: "an extreme value has no interval"})
	}
	return name, out
}

// SizeStat is what the files of one size of a case's steps show.
type SizeStat struct {
	Size      int64   // bytes
	N         int     // files
	Mean      float64 // of their rates, bytes per second
	Median    float64
	Low, High float64 // slowest and fastest
	Seconds   float64 // median time of one file
}

// BySize breaks the timed files of steps down by size, ascending. Steps with an
// error, and files without bytes or time, are left out.
func BySize(steps []result.Step) []SizeStat {
	rates, times := map[int64][]float64{}, map[int64][]float64{}
	for i := range steps {
		if steps[i].Error != "" {
			continue
		}
		f := filesOf([]*result.Step{&steps[i]}, nil)
		for k, size := range f.size {
			rates[int64(size)] = append(rates[int64(size)], f.rate[k])
			times[int64(size)] = append(times[int64(size)], f.time[k])
		}
	}
	sizes := map[int64]bool{}
	for size := range rates {
		sizes[size] = true
	}
	out := make([]SizeStat, 0, len(sizes))
	for _, size := range sortedKeys(sizes) {
		mean, errMean := stats.Mean(rates[size])
		median, errMedian := stats.Median(rates[size])
		seconds, errTime := stats.Median(times[size])
		if errMean == nil && errMedian == nil && errTime == nil {
			out = append(out, SizeStat{Size: size, N: len(rates[size]), Mean: mean, Median: median,
				Low: slices.Min(rates[size]), High: slices.Max(rates[size]), Seconds: seconds})
		}
	}
	return out
}

// estimate finds an estimate by name.
func estimate(list []result.Estimate, name string) (result.Estimate, bool) {
	for _, e := range list {
		if e.Name == name {
			return e, !math.IsNaN(e.Value)
		}
	}
	return result.Estimate{}, false
}
