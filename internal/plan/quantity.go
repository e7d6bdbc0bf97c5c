package plan

// Quantity names what is measured: a rate (write, read, stream), a time
// (attach_time …), a size (allocated, free, reclaimed …), a count (bands) or a
// pure number (ratio, saving, a fit's coefficient). [Quantities] lists them.
type Quantity string

// QuantityInfo is one row of the registry of quantities.
type QuantityInfo struct {
	Name Quantity
	// B/s | s | B | 1
	Unit string
	// Do is the kind of step that yields it: "write", "measure", "stream", …
	Do             string
	HigherIsBetter bool
	Doc            string
}

// Quantities lists every quantity that figures, claims, fits and summaries can
// name. Each timed kind of step has the quantity DO_time. Initialized by init
// of registry.go.
var Quantities []QuantityInfo

var quantityIndex = map[Quantity]QuantityInfo{}

// registerQuantities fills the registry, for which the kinds of step have to be
// known.
func registerQuantities() {
	Quantities = []QuantityInfo{
		{"write", "B/s", "write", true, "rate of writing files"},
		{"read", "B/s", "read", true, "rate of reading files"},
		{"stream", "B/s", "stream", true, "rate of compressing or decompressing: input bytes over time"},
	}
	for _, k := range stepKinds {
		if !k.untimed {
			Quantities = append(Quantities,
				QuantityInfo{Quantity(k.do + "_time"), "s", k.do, false, "time of the step " + k.do})
		}
	}
	Quantities = append(Quantities, []QuantityInfo{
		{"convert", "B/s", "convert", true, "rate of converting: bytes of the files on the volume over time"},
		{"convert_ratio", "1", "convert", true,
			"bytes of the files on the volume over bytes that the new container occupies"},
		{"allocated", "B", "measure", false, "bytes that the container occupies on the host"},
		{"apparent", "B", "measure", false, "bytes that the container pretends to have"},
		{"free", "B", "measure", true, "free space of the volume"},
		{"host_free", "B", "measure", true, "free space of the host's file system"},
		{"live", "B", "measure", false, "bytes of the files on the volume"},
		{"bands", "1", "measure", false, "band files"},
		{"bands_full", "1", "measure", false, "band files of full size"},
		{"overhead", "1", "measure", false, "allocated over live bytes"},
		{"reclaimed", "B", "compact", true, "bytes that compacting gave back to the host"},
		{"trimmed", "B", "trim", true, "bytes that trimming gave back to the host"},
		{"stream_out", "B", "stream", false, "bytes of output"},
		{"ratio", "1", "stream", true, "compression ratio: original over compressed bytes"},
		{"saving", "1", "stream", true, "share saved by compression: 1 - compressed over original"},
	}...)
	for _, q := range Quantities {
		quantityIndex[q.Name] = q
	}
}

// Info describes the quantity; ok is false for an unknown name.
func (q Quantity) Info() (info QuantityInfo, ok bool) {
	info, ok = quantityIndex[q]
	return info, ok
}

// Unit is B/s, s, B or 1, and "" for an unknown name.
func (q Quantity) Unit() string { return quantityIndex[q].Unit }

// quantityNames are the names of all quantities, in the order of the registry.
func quantityNames() []string {
	out := make([]string, len(Quantities))
	for i, q := range Quantities {
		out[i] = string(q.Name)
	}
	return out
}

// unitWords name the base units in messages.
var unitWords = map[string]string{"B/s": "rate", "s": "time", "B": "size", "1": "pure number"}
