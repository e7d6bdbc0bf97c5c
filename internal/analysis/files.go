package analysis

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/image"
	"dmgbench/internal/plan"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
)

// quantityRow is what the analysis knows of a quantity in addition to its row
// in [plan.Quantities], which has its unit, its better direction and the kind
// of step that yields it.
type quantityRow struct {
	// In sentences; "" is "time to" and the step
	name string
	// Value is the quantity of a whole step that recorded it: a time in seconds, a
	// size in bytes, a count or a pure number. It is NaN where the step has none;
	// nil is the duration of the step.
	value func(*result.Step) float64
	// A rate of files that are timed one by one: there are estimators to choose
	// from
	perFile bool
	// Bytes over time
	rate bool
	// Refers to the bytes of the files on the volume, and has no value without
	// files
	overLive bool
	// Of operations: a quantile of the latencies of one kind, or a number a
	// second, of one kind or of all
	latency, operations bool
}

var quantityRows = map[plan.Quantity]quantityRow{
	"write":       {name: "write rate", perFile: true, rate: true},
	"read":        {name: "read rate", perFile: true, rate: true},
	"write_time":  {value: spanSeconds},
	"read_time":   {value: spanSeconds},
	"stream_time": {value: spanSeconds},
	"copy_time":   {value: spanSeconds},
	"stream": {name: "compression rate", rate: true, value: func(st *result.Step) float64 {
		return quotient(st.Stream.In, float64(spanNS(st))/1e9)
	}},
	"stream_out": {name: "compressed size", value: func(st *result.Step) float64 { return float64(st.Stream.Out) }},
	"ratio": {name: "compression ratio", value: func(st *result.Step) float64 {
		return known(st.Stream.Ratio, st.Stream.Ratio > 0)
	}},
	"saving": {name: "share saved by compression", value: func(st *result.Step) float64 { return st.Stream.Saving }},
	"convert": {name: "conversion rate", overLive: true, value: func(st *result.Step) float64 {
		return quotient(st.Live, float64(st.DurationNS)/1e9)
	}},
	"convert_ratio": {name: "ratio of files to converted image", overLive: true, value: func(st *result.Step) float64 {
		if st.Made == nil {
			return math.NaN()
		}
		return quotient(st.Live, float64(st.Made.Allocated))
	}},
	"reclaimed": {name: "space reclaimed by compacting", value: bytesFreed},
	"trimmed":   {name: "space given back by trimming", value: bytesFreed},
	"allocated": {name: "size on disk", value: func(st *result.Step) float64 { return float64(st.Disk.Allocated) }},
	"apparent":  {name: "apparent size", value: func(st *result.Step) float64 { return float64(st.Disk.Apparent) }},
	"bands":     {name: "number of bands", value: func(st *result.Step) float64 { return float64(st.Disk.Bands) }},
	"bands_full": {name: "number of full bands", value: func(st *result.Step) float64 {
		return float64(st.Disk.BandsFull)
	}},
	"free": {name: "free space", value: func(st *result.Step) float64 {
		return known(float64(st.Disk.VolumeFree), st.Disk.VolumeFree >= 0 && st.Disk.Attached)
	}},
	"host_free": {name: "free space of the host", value: func(st *result.Step) float64 {
		return known(float64(st.Disk.HostFree), st.Disk.HostFree > 0)
	}},
	"live": {name: "size of the files", value: func(st *result.Step) float64 { return float64(st.Live) }},
	"overhead": {name: "overhead (size on disk over files)", overLive: true, value: func(st *result.Step) float64 {
		return known(float64(st.Disk.Allocated)/float64(st.Live), st.Live > 0)
	}},
	"changed_files": changedRow("changed files", func(c *result.Changes) int64 {
		return int64(c.Changed + c.Added + c.Removed)
	}),
	"changed_4k":    changedRow("changed blocks of 4 KiB", func(c *result.Changes) int64 { return c.Bytes4K }),
	"changed_64k":   changedRow("changed parts of 64 KiB", func(c *result.Changes) int64 { return c.Bytes64K }),
	"changed_1m":    changedRow("changed parts of 1 MiB", func(c *result.Changes) int64 { return c.Bytes1M }),
	"changed_whole": changedRow("size of changed files", func(c *result.Changes) int64 { return c.BytesWhole }),
	"cost_4k":       costRow("4 KiB", func(c *result.Changes) int64 { return c.Bytes4K }),
	"cost_64k":      costRow("64 KiB", func(c *result.Changes) int64 { return c.Bytes64K }),
	"cost_1m":       costRow("1 MiB", func(c *result.Changes) int64 { return c.Bytes1M }),
	"cost_whole":    costRow("whole files", func(c *result.Changes) int64 { return c.BytesWhole }),
	"tree":          {name: "operations a second", operations: true, value: operationsRate},
	"tree_p50":      latencyRow("median latency", 0.5),
	"tree_p95":      latencyRow("95th percentile of latencies", 0.95),
	"tree_p99":      latencyRow("99th percentile of latencies", 0.99),
	"random":        {name: "random operations a second", operations: true, value: operationsRate},
	"random_p50":    latencyRow("median latency", 0.5),
	"random_p95":    latencyRow("95th percentile of latencies", 0.95),
	"random_p99":    latencyRow("99th percentile of latencies", 0.99),
	"random_p999":   latencyRow("99.9th percentile of latencies", 0.999),
	"random_max":    latencyRow("worst latency", 1),
}

// isTime reports whether the quantity is the time of a step.
func isTime(q plan.Quantity) bool { return strings.HasSuffix(string(q), "_time") }

// known is v, or NaN where it was not recorded.
func known(v float64, ok bool) float64 {
	if !ok {
		return math.NaN()
	}
	return v
}

// quotient is bytes over a number, NaN unless both are positive.
func quotient(bytes int64, over float64) float64 {
	return known(float64(bytes)/over, bytes > 0 && over > 0)
}

func bytesFreed(st *result.Step) float64 { return float64(st.BytesFreed) }

// spanSeconds is the time from gate to last done.
func spanSeconds(st *result.Step) float64 {
	ns := spanNS(st)
	return known(float64(ns)/1e9, ns > 0)
}

// stepValue is a quantity that a step has as a whole, NaN where the step does
// not record it.
func stepValue(q plan.Quantity, st *result.Step) float64 {
	value, do := quantityRows[q].value, doOf(q)
	isUnknown := do == "measure" && st.Disk == nil || do == "stream" && !isTime(q) && st.Stream == nil
	if value == nil || isUnknown {
		return known(float64(st.DurationNS)/1e9, isTime(q) && !isUnknown)
	}
	return value(st)
}

// QuantityName is what sentences call a quantity: "write rate", "time to
// attach".
func QuantityName(q plan.Quantity) string {
	if do, ok := strings.CutSuffix(string(q), "_time"); ok {
		return wording.Text("time-to", do)
	}
	return cmp.Or(quantityRows[q].name, string(q))
}

// changeWords are the words for a quantity that is larger, smaller or a
// multiple.
func changeWords(q plan.Quantity) wording.ChangeWords {
	switch {
	case isRate(q) || q.Unit() == "1/s":
		return wording.ChangeWords{Up: "faster", Down: "slower", Times: "fast"}
	case q.Unit() == "s":
		return wording.ChangeWords{Up: "longer", Down: "shorter", Times: "long"}
	case isOfBands(q):
		return wording.ChangeWords{Up: "more", Down: "fewer", Times: "many"}
	case q.Unit() == "B":
		return wording.ChangeWords{Up: "larger", Down: "smaller", Times: "large"}
	}
	return wording.ChangeWords{Up: "higher", Down: "lower", Times: "high"}
}

// isPerFile reports whether the quantity is a rate of files that are timed one
// by one, so that there are estimators to choose from.
func isPerFile(q plan.Quantity) bool { return quantityRows[q].perFile }

// isRate reports whether the quantity is bytes over time of files or streams.
func isRate(q plan.Quantity) bool { return quantityRows[q].rate }

// isFileTime reports whether the quantity is the time of a step of timed files.
func isFileTime(q plan.Quantity) bool { return q == "write_time" || q == "read_time" }

// isMoreBetter reports whether a higher value of the quantity is the better one.
func isMoreBetter(q plan.Quantity) bool {
	info, _ := q.Info()
	return info.Better == "higher"
}

// isOfBands reports whether only sparse bundles have the quantity.
func isOfBands(q plan.Quantity) bool { return strings.HasPrefix(string(q), "bands") }

// quantitiesOf lists what the steps of a key yield for a case, in the order of
// summaries: latencies of one kind of operation, its rate and that of all kinds
// together, and everything else of the whole step.
func quantitiesOf(k stepKey, c *result.Case) []plan.Quantity {
	var out []plan.Quantity
	format, _ := image.FormatNamed(c.Target.Format)
	for _, q := range plan.Quantities {
		row := quantityRows[q.Name]
		isOfKey := row.operations || row.latency == (k.operation != "")
		if q.Do == k.do && isOfKey && (format.Folder || !isOfBands(q.Name)) {
			out = append(out, q.Name)
		}
	}
	return out
}

// changedRow is the row of a number of the changes between two manifests.
func changedRow(name string, of func(*result.Changes) int64) quantityRow {
	return quantityRow{name: name, value: func(st *result.Step) float64 {
		if st.Changes == nil {
			return math.NaN()
		}
		return float64(of(st.Changes))
	}}
}

// costRow is the row of the bytes to copy for each byte edited, by parts.
func costRow(part string, of func(*result.Changes) int64) quantityRow {
	return quantityRow{name: "bytes to copy per byte edited, by " + part, value: func(st *result.Step) float64 {
		if st.Changes == nil || st.Changes.Edited == 0 {
			return math.NaN()
		}
		return float64(of(st.Changes)) / float64(st.Changes.Edited)
	}}
}

// operationsRate is the number of operations over the time in which they ran.
func operationsRate(st *result.Step) float64 {
	var n int64
	for _, o := range st.Operations {
		n += o.Count
	}
	if st.OperationsSpan == nil {
		return math.NaN()
	}
	return quotient(n, float64(st.OperationsSpan.DurationNS)/1e9)
}

// latencyRow is the row of a quantile of the latencies of one kind of
// operation; those of different kinds have no meaning together.
func latencyRow(name string, q float64) quantityRow {
	return quantityRow{name: name, latency: true, value: func(st *result.Step) float64 {
		if len(st.Operations) != 1 || st.Operations[0].Count == 0 {
			return math.NaN()
		}
		return float64(st.Operations[0].Latency.Quantile(q)) / 1e9
	}}
}

// doOf is the kind of step that yields q.
func doOf(q plan.Quantity) string {
	info, _ := q.Info()
	return info.Do
}

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
	return wording.NonEmpty(mapped(f, func(c plan.Choice) string {
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

// filesOf are the samples of steps that the filter picks and that took a time.
func filesOf(steps []*result.Step, f plan.Selector) (out files) {
	for _, st := range steps {
		out.workers = max(out.workers, workers(st))
		for _, s := range filtered(st.Samples, f) {
			if isTimed(s) {
				out.add(float64(s.Bytes), float64(s.DurationNS)/1e9)
			}
		}
	}
	return out
}

func isTimed(s result.Sample) bool { return s.Bytes > 0 && s.DurationNS > 0 }

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
