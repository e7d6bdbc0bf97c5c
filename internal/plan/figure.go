package plan

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/system/units"
)

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

// unitWords name the base units in messages.
var unitWords = map[string]string{"B/s": "rate", "s": "time", "B": "size", "1": "pure number"}

// aboutMargin is the share that "about" accepts on either side in a bound.
const aboutMargin = 0.15

// parseValue reads one number in a unit: B/s, s, B, or 1 (a number or a
// percentage). Seconds are parsed as nanoseconds, in which durations are exact.
func parseValue(text, unit string) (v float64, err error) {
	text = strings.TrimSpace(text)
	number := strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(text, "-"), "−"))
	switch {
	case unit == "B/s":
		v, err = asFloat(units.ParseRate(number))
	case unit == "s":
		v, err = asFloat(units.ParseDuration(number))
		v /= 1e9
	case unit == "B":
		v, err = asFloat(units.ParseBytes(number))
	case strings.HasSuffix(number, "%"):
		v, err = asFloat(units.ParseShare(number))
	case units.IsDecimal(number):
		v, err = strconv.ParseFloat(number, 64)
	default:
		err = fmt.Errorf("parsing %q: want a pure number such as 2, 0.78 or \"57%%\"", number)
	}
	if number != text {
		v = -v
	}
	return v, err
}

func asFloat[V ~int64 | ~float64](v V, err error) (float64, error) { return float64(v), err }

// ParseFigure reads a number as an author prints it, in the unit of its
// quantity (B/s, s, B or 1): "6.13 GB/s", "about
// 2.2 GB/s", "below 0.92 GB/s", "above 2.6 GB/s", "6 GB/s to 7 GB/s". Low and High are in base units.
func ParseFigure(text, unit string) (Figure, error) {
	f := Figure{Kind: "is", Unit: unit, Text: strings.TrimSpace(text)}
	body := f.Text
	for _, kind := range []string{"about", "below", "above"} {
		if rest, ok := strings.CutPrefix(body, kind+" "); ok {
			f.Kind, body = kind, rest
		}
	}
	low, high, isRange := strings.Cut(body, " to ")
	var err error
	if f.Low, err = parseValue(low, unit); err != nil {
		return Figure{}, err
	}
	if !isRange {
		f.High = f.Low
		return f, nil
	}
	if f.High, err = parseValue(high, unit); err != nil {
		return Figure{}, err
	}
	switch {
	case f.Kind != "is":
		return Figure{}, fmt.Errorf("parsing %q: a range cannot be %s", text, f.Kind)
	case f.Low >= f.High:
		return Figure{}, fmt.Errorf("parsing %q: a range goes from the smaller to the larger value", text)
	}
	f.Kind = "range"
	return f, nil
}

// ParseBound reads an accepted interval in a unit (B/s, s, B or 1): ">= 2", "<
// 0.5", "0.9 to 1.1" (both ends included), "about 2" (± 15 %).
func ParseBound(text, unit string) (Bound, error) {
	b := Bound{Low: math.Inf(-1), High: math.Inf(1), Unit: unit, Text: strings.TrimSpace(text)}
	for _, op := range []string{">=", "≥", "<=", "≤", ">", "<"} {
		rest, ok := strings.CutPrefix(b.Text, op)
		if !ok {
			continue
		}
		v, err := parseValue(rest, unit)
		if op[0] == '>' || op == "≥" {
			b.Low, b.LowOpen = v, op == ">"
		} else {
			b.High, b.HighOpen = v, op == "<"
		}
		return b, err
	}
	f, err := ParseFigure(b.Text, unit)
	switch {
	case err != nil:
		return Bound{}, err
	case f.Kind == "range":
		b.Low, b.High = f.Low, f.High
	case f.Kind == "about":
		low, high := f.Low*(1-aboutMargin), f.Low*(1+aboutMargin)
		b.Low, b.High = min(low, high), max(low, high)
	default:
		return Bound{}, fmt.Errorf("parsing %q: want a bound such as \">= 2\", \"0.9 to 1.1\" or \"about 2\"", text)
	}
	return b, nil
}

// Holds reports whether v is inside the bound.
func (b Bound) Holds(v float64) bool {
	if math.IsNaN(v) || v < b.Low || v > b.High {
		return false
	}
	return (v != b.Low || !b.LowOpen) && (v != b.High || !b.HighOpen)
}
