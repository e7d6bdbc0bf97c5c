package plan

import "slices"

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
// name: the rows of keys.md and, after the rates, DO_time for each timed kind of
// step.
var Quantities []QuantityInfo

var quantityIndex = map[Quantity]QuantityInfo{}

// readQuantities fills the registry, for which the kinds of step have to be
// known.
func readQuantities() {
	for _, row := range docRows["quantities"] {
		Quantities = append(Quantities, QuantityInfo{Quantity(row[0]), row[1], row[2], row[3] == "higher", row[4]})
	}
	times := slices.IndexFunc(Quantities, func(q QuantityInfo) bool { return q.Do == "convert" })
	for _, k := range slices.Backward(stepKinds) {
		if !k.untimed {
			Quantities = slices.Insert(Quantities, times,
				QuantityInfo{Quantity(k.do + "_time"), "s", k.do, false, "time of the step " + k.do})
		}
	}
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
