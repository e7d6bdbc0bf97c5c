package report

import (
	"math"
	"strconv"
	"strings"

	"dmgbench/internal/system/units"
)

// Scale is the unit that a whole column or axis is printed in, so that its
// numbers can be compared at a glance. A column with values too different for
// one unit has no suffix, and each cell its own: Mixed is their base unit.
//
// Values are stored in base units: bytes, bytes per second, seconds.
type Scale struct {
	Factor float64 // of the unit, in base units
	Suffix string
	Mixed  string
}

// scales are the units of a base unit, from the largest.
var scales = map[string][]Scale{
	"B":   decimalScales("B"),
	"B/s": decimalScales("B/s"),
	"s": {{3600, "h", ""}, {60, "min", ""}, {1, "s", ""}, {1e-3, "ms", ""}, {1e-6, "µs", ""},
		{1e-9, "ns", ""}},
}

func decimalScales(unit string) []Scale {
	return []Scale{{1e12, "T" + unit, ""}, {1e9, "G" + unit, ""}, {1e6, "M" + unit, ""}, {1e3, "k" + unit, ""},
		{1, unit, ""}}
}

// Times below these are not written in minutes or hours, in seconds.
const (
	leastMinutes = 600
	leastHours   = 36000
)

// ScaleOf is the unit in which the largest value has a whole part.
func ScaleOf(unit string, values ...float64) Scale {
	top := 0.0
	for _, v := range values {
		if IsFinite(v) {
			top = max(top, math.Abs(v))
		}
	}
	steps, ok := scales[unit]
	switch {
	case !ok:
		return Scale{Factor: 1}
	case top == 0:
		return Scale{Factor: 1, Suffix: unit}
	}
	for _, s := range steps {
		if top >= s.Factor*0.9995 && (s.Suffix != "min" || top >= leastMinutes) &&
			(s.Suffix != "h" || top >= leastHours) {
			return s
		}
	}
	return steps[len(steps)-1]
}

// WithUnit is the name of an axis with the unit of its scale.
func WithUnit(text string, s Scale) string {
	return text + TextIf(s.Suffix != "", ", "+s.Suffix)
}

// ColumnScale is the scale of a column of a table: the unit of the largest
// value if all the others can be read in it, else a unit for each cell. Nought
// is "0 B" in any column.
//
// A reader compares digits of a column, not its units.
func ColumnScale(unit string, values ...float64) Scale {
	s := ScaleOf(unit, values...)
	for _, v := range values {
		if s.Suffix != "" && IsFinite(v) && !s.legible(v) {
			return Scale{Factor: 1, Mixed: unit}
		}
	}
	return s
}

// legible reports whether v, in this unit, has neither zeros before its digits
// nor too many digits.
func (s Scale) legible(v float64) bool {
	size := math.Abs(v) / s.Factor
	return s.Suffix == "" || size >= 0.0995 && size < 1e5
}

// Number writes v with three significant digits in the scale, without the unit.
func (s Scale) Number(v float64) string {
	if !IsFinite(v) {
		return "—"
	}
	if s.Mixed != "" {
		return Human(v, s.Mixed)
	}
	if s.Suffix == "" && v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.FormatFloat(v, 'f', -1, 64) // a count is exact
	}
	return units.Significant(v/s.Factor, 3)
}

// Text is the number with its unit.
func (s Scale) Text(v float64) string {
	if s.Suffix == "" {
		return s.Number(v)
	}
	return s.Number(v) + " " + s.Suffix
}

// Human writes one value on its own, in the unit that suits it.
func Human(v float64, unit string) string {
	if unit == "1" && v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ScaleOf(unit, v).Text(v)
}

// Brief is [human] without the zeros that a round value ends in: "2 MB", "1.5
// GB/s".
func Brief(v float64, unit string) string {
	number, suffix, found := strings.Cut(Human(v, unit), " ")
	if !found {
		return number
	}
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	return number + " " + suffix
}

// Percent writes a share or a confidence level: "95 %", "99.2 %".
func Percent(share float64) string {
	return strconv.FormatFloat(math.Round(share*1000)/10, 'f', -1, 64) + " %"
}

// Ratio writes measured over published, without a row of zeros before its
// digits.
func Ratio(v float64) string {
	if v <= 0 || !IsFinite(v) {
		return "—"
	}
	if v < 1e-3 {
		mantissa, power, _ := strings.Cut(strconv.FormatFloat(v, 'e', 2, 64), "e-")
		return mantissa + "e-" + strings.TrimLeft(power, "0") + "×"
	}
	return units.Significant(v, 3) + "×"
}
