package analysis

import (
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// perFile reports whether the quantity is a rate of files that are timed one by
// one, so that there are estimators to choose from.
func perFile(q plan.Quantity) bool { return q == "write" || q == "read" }

// rate reports whether the quantity is bytes over time.
func rate(q plan.Quantity) bool { return perFile(q) || q == "stream" }

// overFiles reports whether the quantity sets something against the bytes of the
// files on the volume, so that there is none without files.
func overFiles(q plan.Quantity) bool {
	return q == "overhead" || q == "convert" || q == "convert_ratio"
}

// fileTime reports whether the quantity is the time of a step of timed files.
func fileTime(q plan.Quantity) bool { return q == "write_time" || q == "read_time" }

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

// scalar is the value of a quantity that a step has as a whole: a time in
// seconds (of file work what was timed, of anything else the whole step), a size in bytes, a count or a pure number. ok is false where the step
// does not know it.
func scalar(q plan.Quantity, st *result.Step) (v float64, ok bool) {
	name := string(q)
	switch {
	case fileTime(q) || (q == "stream_time" || q == "copy_time") && st.Span != nil:
		ns := spanNS(st)
		return float64(ns) / 1e9, ns > 0
	case strings.HasSuffix(name, "_time"):
		return float64(st.DurationNS) / 1e9, true
	case q == "convert":
		return float64(st.Live) / (float64(st.DurationNS) / 1e9), st.Live > 0 && st.DurationNS > 0
	case q == "convert_ratio":
		return madeRatio(st)
	case q == "reclaimed" || q == "trimmed":
		return float64(st.BytesFreed), true
	case st.Disk != nil:
		return diskScalar(q, st.Disk, st.Live)
	case st.Stream != nil:
		return streamScalar(q, st)
	}
	return 0, false
}

// madeRatio is how many times the new container is smaller than the files in it.
func madeRatio(st *result.Step) (float64, bool) {
	if st.Made == nil || st.Made.Allocated <= 0 {
		return 0, false
	}
	return float64(st.Live) / float64(st.Made.Allocated), st.Live > 0
}

func diskScalar(q plan.Quantity, d *result.DiskUse, live int64) (float64, bool) {
	switch q {
	case "allocated":
		return float64(d.Allocated), true
	case "apparent":
		return float64(d.Apparent), true
	case "free":
		return float64(d.VolumeFree), d.VolumeFree >= 0 && d.Attached
	case "host_free":
		return float64(d.HostFree), d.HostFree > 0
	case "live":
		return float64(live), true
	case "bands":
		return float64(d.Bands), true
	case "bands_full":
		return float64(d.BandsFull), true
	case "overhead":
		return float64(d.Allocated) / float64(max(live, 1)), live > 0
	}
	return 0, false
}

func streamScalar(q plan.Quantity, st *result.Step) (float64, bool) {
	switch q {
	case "stream":
		ns := spanNS(st)
		return float64(st.Stream.In) / (float64(ns) / 1e9), ns > 0 && st.Stream.In > 0
	case "stream_out":
		return float64(st.Stream.Out), true
	case "ratio":
		return st.Stream.Ratio, st.Stream.Ratio > 0
	case "saving":
		return st.Stream.Saving, true
	}
	return 0, false
}
