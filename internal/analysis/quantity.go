package analysis

import (
	"math"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// quantityRow is what the analysis knows of a quantity besides its row in [plan.Quantities], which has its unit, its
// better direction and the kind of step that yields it. docs/metrics.md has a line on each.
type quantityRow struct {
	words string // as people call it; "" is "time to" and the step
	// value is the quantity of a whole step: a time in seconds, a size in bytes, a count or a pure number. It is NaN
	// where the step does not record it; nil is the duration of the step.
	value    func(*result.Step) float64
	perFile  bool // a rate of files that are timed one by one: there are estimators to choose from
	rate     bool // bytes over time
	overLive bool // refers to the bytes of the files on the volume, and has no value without files
	fileTime bool // the time of a step of timed files
	bands    bool // only sparse bundles have it
}

var quantityRows = map[plan.Quantity]quantityRow{
	"write":       {words: "write rate", perFile: true, rate: true},
	"read":        {words: "read rate", perFile: true, rate: true},
	"write_time":  {value: spanSeconds, fileTime: true},
	"read_time":   {value: spanSeconds, fileTime: true},
	"stream_time": {value: streamSeconds},
	"copy_time":   {value: streamSeconds},
	"stream": {words: "compression rate", rate: true, value: ofStream(func(st *result.Step) float64 {
		return quotient(st.Stream.In, float64(spanNS(st))/1e9)
	})},
	"stream_out": {words: "compressed size", value: ofStream(func(st *result.Step) float64 { return float64(st.Stream.Out) })},
	"ratio": {words: "compression ratio", value: ofStream(func(st *result.Step) float64 {
		return known(st.Stream.Ratio, st.Stream.Ratio > 0)
	})},
	"saving": {words: "share saved by compression", value: ofStream(func(st *result.Step) float64 { return st.Stream.Saving })},
	"convert": {words: "conversion rate", overLive: true, value: func(st *result.Step) float64 {
		return quotient(st.Live, float64(st.DurationNS)/1e9)
	}},
	"convert_ratio": {words: "ratio of files to converted image", overLive: true, value: func(st *result.Step) float64 {
		if st.Made == nil {
			return math.NaN()
		}
		return quotient(st.Live, float64(st.Made.Allocated))
	}},
	"reclaimed":  {words: "space reclaimed by compacting", value: func(st *result.Step) float64 { return float64(st.BytesFreed) }},
	"trimmed":    {words: "space given back by trimming", value: func(st *result.Step) float64 { return float64(st.BytesFreed) }},
	"allocated":  {words: "size on disk", value: ofDisk(func(d *result.DiskUse) float64 { return float64(d.Allocated) })},
	"apparent":   {words: "apparent size", value: ofDisk(func(d *result.DiskUse) float64 { return float64(d.Apparent) })},
	"bands":      {words: "number of bands", bands: true, value: ofDisk(func(d *result.DiskUse) float64 { return float64(d.Bands) })},
	"bands_full": {words: "number of full bands", bands: true, value: ofDisk(func(d *result.DiskUse) float64 { return float64(d.BandsFull) })},
	"free": {words: "free space", value: ofDisk(func(d *result.DiskUse) float64 {
		return known(float64(d.VolumeFree), d.VolumeFree >= 0 && d.Attached)
	})},
	"host_free": {words: "free space of the host", value: ofDisk(func(d *result.DiskUse) float64 {
		return known(float64(d.HostFree), d.HostFree > 0)
	})},
	"live": {words: "size of the files", value: func(st *result.Step) float64 { return known(float64(st.Live), st.Disk != nil) }},
	"overhead": {words: "overhead (size on disk over files)", overLive: true, value: func(st *result.Step) float64 {
		if st.Disk == nil || st.Live <= 0 {
			return math.NaN()
		}
		return float64(st.Disk.Allocated) / float64(st.Live)
	}},
}

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

func ofDisk(value func(*result.DiskUse) float64) func(*result.Step) float64 {
	return func(st *result.Step) float64 {
		if st.Disk == nil {
			return math.NaN()
		}
		return value(st.Disk)
	}
}

func ofStream(value func(*result.Step) float64) func(*result.Step) float64 {
	return func(st *result.Step) float64 {
		if st.Stream == nil {
			return math.NaN()
		}
		return value(st)
	}
}

// spanSeconds is the time from gate to last done.
func spanSeconds(st *result.Step) float64 {
	ns := spanNS(st)
	return known(float64(ns)/1e9, ns > 0)
}

// streamSeconds is the timed span where there is one, else the duration of the step.
func streamSeconds(st *result.Step) float64 {
	if st.Span != nil {
		return spanSeconds(st)
	}
	return float64(st.DurationNS) / 1e9
}

// stepValue is a quantity that a step has as a whole, NaN where the step does not record it.
func stepValue(q plan.Quantity, st *result.Step) float64 {
	row := quantityRows[q]
	switch {
	case row.value != nil:
		return row.value(st)
	case strings.HasSuffix(string(q), "_time"):
		return float64(st.DurationNS) / 1e9
	}
	return math.NaN()
}

// nameOf is the quantity in words.
func nameOf(q plan.Quantity) string {
	if words := quantityRows[q].words; words != "" {
		return words
	}
	if do, ok := strings.CutSuffix(string(q), "_time"); ok {
		return "time to " + do
	}
	return string(q)
}

// perFile reports whether the quantity is a rate of files that are timed one by
// one, so that there are estimators to choose from.
func perFile(q plan.Quantity) bool { return quantityRows[q].perFile }

// rate reports whether the quantity is bytes over time of files or streams.
func rate(q plan.Quantity) bool { return quantityRows[q].rate }

// fileTime reports whether the quantity is the time of a step of timed files.
func fileTime(q plan.Quantity) bool { return quantityRows[q].fileTime }

// quantitiesOf lists what one kind of step yields, in the order of summaries.
func quantitiesOf(do string) []plan.Quantity {
	var out []plan.Quantity
	for _, q := range plan.Quantities {
		if q.Do == do {
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

// spanNS is the time from gate to last done in nanoseconds; without a span it is
// first start to last end of the samples, without samples the whole step.
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
