package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/units"
)

// aboutMargin is what "about" accepts on either side in a bound.
const aboutMargin = 0.15

// parseValue reads one number in a unit: B/s, s, B, or 1 (a number or a percentage).
func parseValue(text, unit string) (float64, error) {
	text = strings.TrimSpace(text)
	sign, body := 1.0, text
	if rest, ok := strings.CutPrefix(text, "-"); ok {
		sign, body = -1, strings.TrimSpace(rest)
	} else if rest, ok := strings.CutPrefix(text, "−"); ok {
		sign, body = -1, strings.TrimSpace(rest)
	}
	v, err := parseMagnitude(body, unit)
	if err != nil {
		return 0, err
	}
	return sign * v, nil
}

func parseMagnitude(text, unit string) (float64, error) {
	switch unit {
	case "B/s":
		v, err := units.ParseRate(text)
		return float64(v), err
	case "s":
		v, err := units.ParseDuration(text)
		return float64(v) / 1e9, err
	case "B":
		v, err := units.ParseBytes(text)
		return float64(v), err
	}
	if strings.HasSuffix(text, "%") {
		v, err := units.ParseShare(text)
		return float64(v), err
	}
	if !plainNumber(text) {
		return 0, fmt.Errorf("parsing %q: want a pure number such as 2, 0.78 or \"57%%\"", text)
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(v, 0) {
		return 0, fmt.Errorf("parsing %q: out of range", text)
	}
	return v, nil
}

// plainNumber accepts digits with at most one point, no sign, exponent or name.
func plainNumber(s string) bool {
	if s == "" || len(s) > 40 || s[0] == '.' || s[len(s)-1] == '.' || strings.Count(s, ".") > 1 {
		return false
	}
	return !strings.ContainsFunc(s, func(c rune) bool { return (c < '0' || c > '9') && c != '.' })
}

// ParseFigure reads a number as an author prints it, in the unit of its
// quantity (B/s, s, B or 1): "6.13 GB/s", "about 2.2 GB/s", "below 0.92 GB/s",
// "above 2.6 GB/s", "6 GB/s to 7 GB/s". Low and High are in base units.
func ParseFigure(text, unit string) (Figure, error) {
	f := Figure{Kind: "is", Unit: unit, Text: strings.TrimSpace(text)}
	body := f.Text
	for _, kind := range []string{"about", "below", "above"} {
		if rest, ok := strings.CutPrefix(body, kind+" "); ok {
			f.Kind, body = kind, rest
		}
	}
	low, high, isRange := strings.Cut(body, " to ")
	if !isRange {
		v, err := parseValue(body, unit)
		f.Low, f.High = v, v
		return f, err
	}
	if f.Kind != "is" {
		return Figure{}, fmt.Errorf("parsing %q: a range cannot be %s", text, f.Kind)
	}
	var err error
	if f.Low, err = parseValue(low, unit); err != nil {
		return Figure{}, err
	}
	if f.High, err = parseValue(high, unit); err != nil {
		return Figure{}, err
	}
	if f.Low >= f.High {
		return Figure{}, fmt.Errorf("parsing %q: a range goes from the smaller to the larger value", text)
	}
	f.Kind = "range"
	return f, nil
}

// ParseBound reads an accepted interval in a unit (B/s, s, B or 1): ">= 2",
// "< 0.5", "0.9 to 1.1" (both ends included), "about 2" (± 15 %).
func ParseBound(text, unit string) (Bound, error) {
	b := Bound{Low: math.Inf(-1), High: math.Inf(1), Unit: unit, Text: strings.TrimSpace(text)}
	for _, op := range []string{">=", "≥", "<=", "≤", ">", "<"} {
		rest, ok := strings.CutPrefix(b.Text, op)
		if !ok {
			continue
		}
		v, err := parseValue(rest, unit)
		if strings.HasPrefix(op, ">") || op == "≥" {
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
		b.Low, b.High = f.Low*(1-aboutMargin), f.Low*(1+aboutMargin)
		b.Low, b.High = min(b.Low, b.High), max(b.Low, b.High)
	default:
		return Bound{}, fmt.Errorf("parsing %q: want a bound such as \">= 2\", \"0.9 to 1.1\" or \"about 2\"", text)
	}
	return b, nil
}

// Holds reports whether v lies inside the bound.
func (b Bound) Holds(v float64) bool {
	if math.IsNaN(v) || v < b.Low || v > b.High {
		return false
	}
	return (v != b.Low || !b.LowOpen) && (v != b.High || !b.HighOpen)
}

// takes reports whether a published figure is one that the operand names. A figure
// that leaves a key open applies to all its values, except that figures of the
// native folder, of one file size and of one set are only meant where they are
// named. A rate of streaming can be had from its time.
func (o *Operand) takes(f *Published, source *Source) bool {
	derived := o.Quantity == "stream" && f.Quantity == "stream_time"
	if f.Quantity != o.Quantity && !derived || !o.On.within(f.taken(source)) {
		return false
	}
	for _, want := range o.Where {
		i := slices.IndexFunc(f.Where, func(have Choice) bool { return have.Key == want.Key })
		if i >= 0 && !slices.ContainsFunc(f.Where[i].Values, func(h string) bool {
			return slices.ContainsFunc(want.Values, func(w string) bool { return sameValue(want.Key, h, w) })
		}) {
			return false
		}
	}
	for _, key := range []string{"file_size", "set"} {
		if o.Where.names(key) != f.Where.names(key) {
			return false
		}
	}
	return o.Where.native() == f.Where.native()
}

// native reports whether a selector names the native folder.
func (s Selector) native() bool {
	return slices.ContainsFunc(s, func(c Choice) bool {
		return c.Key == "baseline" && slices.Contains(c.Values, "true") ||
			c.Key == "target" && slices.Contains(c.Values, "directory")
	})
}

// taken is what a figure was taken with: its own, else the source's.
func (f *Published) taken(source *Source) On {
	on := f.On
	if source == nil {
		return on
	}
	on.Machine, on.OS, on.Tool = cmp.Or(on.Machine, source.On.Machine), cmp.Or(on.OS, source.On.OS),
		cmp.Or(on.Tool, source.On.Tool)
	for _, d := range []time.Time{source.On.Date, source.Date} {
		if on.Date.IsZero() {
			on.Date = d
		}
	}
	return on
}

// within reports whether everything that o names is the same in other.
func (o On) within(other On) bool {
	return (o.Machine == "" || o.Machine == other.Machine) && (o.OS == "" || o.OS == other.OS) &&
		(o.Tool == "" || o.Tool == other.Tool) && (o.Date.IsZero() || o.Date.Equal(other.Date))
}
