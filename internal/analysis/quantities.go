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
		return quotient(st.Live, float64(cmp.Or(st.Made, &result.DiskUse{}).Allocated))
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
	"copy_out": {name: "rate of copying files out", value: func(st *result.Step) (rate float64) {
		for _, o := range st.Operations {
			rate += float64(o.Bytes) / operationsSeconds(st)
		}
		return known(rate, rate > 0)
	}},
	"copy_out_time": {value: operationsSeconds},
	"unpack_time": {value: func(st *result.Step) float64 {
		return known(float64(st.AttachNS)/1e9+operationsSeconds(st), st.AttachNS > 0)
	}},
	"tree_time": {value: operationsSeconds},
	"files_lost": {name: "number of files lost", value: func(st *result.Step) float64 {
		return float64(st.Recovery.Lost)
	}},
	"files_damaged": {name: "number of files damaged", value: func(st *result.Step) float64 {
		return float64(st.Recovery.Damaged)
	}},
	"noticed": {name: "whether damage was noticed", value: func(st *result.Step) float64 {
		return float64(min(len(st.Recovery.Noticed), 1))
	}},
	"tree":        {name: "operations a second", operations: true, value: operationsRate},
	"tree_p50":    latencyRow("median latency", 0.5),
	"tree_p95":    latencyRow("95th percentile of latencies", 0.95),
	"tree_p99":    latencyRow("99th percentile of latencies", 0.99),
	"random":      {name: "random operations a second", operations: true, value: operationsRate},
	"random_p50":  latencyRow("median latency", 0.5),
	"random_p95":  latencyRow("95th percentile of latencies", 0.95),
	"random_p99":  latencyRow("99th percentile of latencies", 0.99),
	"random_p999": latencyRow("99.9th percentile of latencies", 0.999),
	"random_max":  latencyRow("worst latency", 1),
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

// spanSeconds is the time from gate to last done of all files.
func spanSeconds(st *result.Step) float64 {
	ns := spanNS(st)
	return known(float64(ns)/1e9, ns > 0 && !st.LacksFiles())
}

// stepValue is a quantity that a step has as a whole, NaN where the step does
// not record it.
func stepValue(q plan.Quantity, st *result.Step) float64 {
	value, do := quantityRows[q].value, doOf(q)
	isUnknown := !isTime(q) && (do == "measure" && st.Disk == nil || do == "stream" && st.Stream == nil ||
		do == "recover" && st.Recovery == nil || do == "manifest" && st.Changes == nil)
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
	case isOfBands(q) || strings.HasPrefix(string(q), "files_"):
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
	return quantityRow{name: name, value: func(st *result.Step) float64 { return float64(of(st.Changes)) }}
}

// costRow is the row of the bytes to copy for each byte edited, by parts.
func costRow(part string, of func(*result.Changes) int64) quantityRow {
	return quantityRow{name: "bytes to copy per byte edited, by " + part, value: func(st *result.Step) float64 {
		return known(float64(of(st.Changes))/float64(st.Changes.Edited), st.Changes.Edited > 0)
	}}
}

// operationsSeconds is the time in which the operations ran.
func operationsSeconds(st *result.Step) float64 {
	span := cmp.Or(st.OperationsSpan, &result.OperationsSpan{})
	return known(float64(span.DurationNS)/1e9, st.OperationsSpan != nil)
}

// operationsRate is the number of operations over the time in which they ran.
func operationsRate(st *result.Step) float64 {
	var n int64
	for _, o := range st.Operations {
		n += o.Count
	}
	return quotient(n, operationsSeconds(st))
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
