package plan

// QuantityInfo describes one quantity.
type QuantityInfo struct {
	Name Quantity
	Unit string // B/s | s | B | 1
	// Do is the kind of step that yields it: "write", "measure", "stream", …
	Do string
	// HigherIsBetter is the direction of an improvement; sizes, times and overhead fall.
	HigherIsBetter bool
	Doc            string
}

// Quantities lists every quantity that figures, claims, fits and summaries can name.
var Quantities = quantities()

// timedSteps are the kinds of step whose duration is a quantity.
var timedSteps = []string{
	"create", "attach", "detach", "remount", "settle", "mkdir", "write", "read", "verify", "delete", "trim", "compact",
	"resize",
	"convert", "transfer", "check", "copy", "stream", "parallel",
}

func quantities() []QuantityInfo {
	out := []QuantityInfo{
		{"write", "B/s", "write", true, "rate of writing files"},
		{"read", "B/s", "read", true, "rate of reading files"},
		{"stream", "B/s", "stream", true, "rate of compressing or decompressing: input bytes over time"},
	}
	for _, do := range timedSteps {
		out = append(out, QuantityInfo{Quantity(do + "_time"), "s", do, false, "time of the step " + do})
	}
	return append(out,
		QuantityInfo{"convert", "B/s", "convert", true, "rate of converting: bytes of the files on the volume over time"},
		QuantityInfo{"convert_ratio", "1", "convert", true,
			"bytes of the files on the volume over bytes that the new container occupies"},
		QuantityInfo{"allocated", "B", "measure", false, "bytes that the container occupies on the host"},
		QuantityInfo{"apparent", "B", "measure", false, "bytes that the container pretends to have"},
		QuantityInfo{"free", "B", "measure", true, "free space of the volume"},
		QuantityInfo{"host_free", "B", "measure", true, "free space of the host's file system"},
		QuantityInfo{"live", "B", "measure", false, "bytes of the files on the volume"},
		QuantityInfo{"bands", "1", "measure", false, "band files"},
		QuantityInfo{"bands_full", "1", "measure", false, "band files of full size"},
		QuantityInfo{"overhead", "1", "measure", false, "allocated over live bytes"},
		QuantityInfo{"reclaimed", "B", "compact", true, "bytes that compacting gave back to the host"},
		QuantityInfo{"trimmed", "B", "trim", true, "bytes that trimming gave back to the host"},
		QuantityInfo{"stream_out", "B", "stream", false, "bytes of output"},
		QuantityInfo{"ratio", "1", "stream", true, "compression ratio: original over compressed bytes"},
		QuantityInfo{"saving", "1", "stream", true, "share saved by compression: 1 - compressed over original"},
	)
}

var quantityIndex = func() map[Quantity]QuantityInfo {
	out := map[Quantity]QuantityInfo{}
	for _, q := range Quantities {
		out[q.Name] = q
	}
	return out
}()

// Info describes the quantity; ok is false for a name that is none.
func (q Quantity) Info() (info QuantityInfo, ok bool) {
	info, ok = quantityIndex[q]
	return info, ok
}

// Unit is B/s, s, B or 1, and "" for an unknown name.
func (q Quantity) Unit() string { return quantityIndex[q].Unit }

func quantityNames() []string {
	out := make([]string, len(Quantities))
	for i, q := range Quantities {
		out[i] = string(q.Name)
	}
	return out
}
