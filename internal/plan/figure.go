package plan

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"dmgbench/internal/units"
)

// aboutMargin is the share that "about" accepts on either side in a bound.
const aboutMargin = 0.15

// parseValue reads one number in a unit: B/s, s, B, or 1 (a number or a
// percentage).
func parseValue(text, unit string) (float64, error) {
	text = strings.TrimSpace(text)
	for _, minus := range []string{"-", "−"} {
		if rest, ok := strings.CutPrefix(text, minus); ok {
			v, err := parseMagnitude(strings.TrimSpace(rest), unit)
			return -v, err
		}
	}
	return parseMagnitude(text, unit)
}

// parseMagnitude is parseValue without a sign. Seconds are parsed as
// nanoseconds, in which durations are exact.
func parseMagnitude(text, unit string) (float64, error) {
	switch {
	case unit == "B/s":
		v, err := units.ParseRate(text)
		return float64(v), err
	case unit == "s":
		v, err := units.ParseDuration(text)
		return float64(v) / 1e9, err
	case unit == "B":
		v, err := units.ParseBytes(text)
		return float64(v), err
	case strings.HasSuffix(text, "%"):
		v, err := units.ParseShare(text)
		return float64(v), err
	case !isPlainNumber(text):
		return 0, fmt.Errorf("parsing %q: want a pure number such as 2, 0.78 or \"57%%\"", text)
	}
	return strconv.ParseFloat(text, 64)
}

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
