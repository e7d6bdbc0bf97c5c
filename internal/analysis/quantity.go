package analysis

import (
	"cmp"
	"math"
	"strings"

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
	// The time of a step of timed files
	fileTime bool
	// Only sparse bundles have it
	bands bool
}

var quantityRows = map[plan.Quantity]quantityRow{
	"write":       {name: "write rate", perFile: true, rate: true},
	"read":        {name: "read rate", perFile: true, rate: true},
	"write_time":  {value: spanSeconds, fileTime: true},
	"read_time":   {value: spanSeconds, fileTime: true},
	"stream_time": {value: streamSeconds},
	"copy_time":   {value: streamSeconds},
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
	"reclaimed":  {name: "space reclaimed by compacting", value: bytesFreed},
	"trimmed":    {name: "space given back by trimming", value: bytesFreed},
	"allocated":  {name: "size on disk", value: func(st *result.Step) float64 { return float64(st.Disk.Allocated) }},
	"apparent":   {name: "apparent size", value: func(st *result.Step) float64 { return float64(st.Disk.Apparent) }},
	"bands":      {name: "number of bands", bands: true, value: func(st *result.Step) float64 { return float64(st.Disk.Bands) }},
	"bands_full": {name: "number of full bands", bands: true, value: func(st *result.Step) float64 { return float64(st.Disk.BandsFull) }},
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

// streamSeconds is the timed span where there is one, else the duration of the
// step.
func streamSeconds(st *result.Step) float64 {
	if st.Span != nil {
		return spanSeconds(st)
	}
	return float64(st.DurationNS) / 1e9
}

// stepValue is a quantity that a step has as a whole, NaN where the step does
// not record it.
func stepValue(q plan.Quantity, st *result.Step) float64 {
	value, do := quantityRows[q].value, doOf(q)
	switch {
	case value == nil:
		return known(float64(st.DurationNS)/1e9, isTime(q))
	case do == "measure" && st.Disk == nil, do == "stream" && !isTime(q) && st.Stream == nil:
		return math.NaN()
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
	case isRate(q):
		return wording.ChangeWords{Up: "faster", Down: "slower", Times: "fast"}
	case isTime(q):
		return wording.ChangeWords{Up: "longer", Down: "shorter", Times: "long"}
	case quantityRows[q].bands:
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
func isFileTime(q plan.Quantity) bool { return quantityRows[q].fileTime }

// quantitiesOf lists what one kind of step yields for a case, in the order of
// summaries.
func quantitiesOf(do string, c *result.Case) []plan.Quantity {
	var out []plan.Quantity
	format, _ := image.FormatNamed(c.Target.Format)
	for _, q := range plan.Quantities {
		if q.Do == do && (format.Folder || !quantityRows[q.Name].bands) {
			out = append(out, q.Name)
		}
	}
	return out
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
