package report

import (
	"math"
	"strconv"
	"strings"

	"dmgbench/internal/units"
)

// scale is the unit that a whole column or axis is printed in, so that its numbers compare at a glance.
// A column whose values are too far apart for one unit has no suffix, and each cell its own: mixed is their base unit.
type scale struct {
	factor float64
	suffix string
	mixed  string
}

var scales = map[string][]scale{
	"B":   {{factor: 1e12, suffix: "TB"}, {factor: 1e9, suffix: "GB"}, {factor: 1e6, suffix: "MB"}, {factor: 1e3, suffix: "kB"}, {factor: 1, suffix: "B"}},
	"B/s": {{factor: 1e12, suffix: "TB/s"}, {factor: 1e9, suffix: "GB/s"}, {factor: 1e6, suffix: "MB/s"}, {factor: 1e3, suffix: "kB/s"}, {factor: 1, suffix: "B/s"}},
	"s":   {{factor: 3600, suffix: "h"}, {factor: 60, suffix: "min"}, {factor: 1, suffix: "s"}, {factor: 1e-3, suffix: "ms"}, {factor: 1e-6, suffix: "µs"}, {factor: 1e-9, suffix: "ns"}},
}

// scaleOf picks the unit in which the largest value has a whole part. Minutes and
// hours are left to times that nobody would say in seconds.
func scaleOf(unit string, values ...float64) scale {
	top := 0.0
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			top = max(top, math.Abs(v))
		}
	}
	steps, ok := scales[unit]
	if !ok {
		return scale{factor: 1}
	}
	for _, s := range steps {
		if top < s.factor*0.9995 || s.factor == 60 && top < 600 || s.factor == 3600 && top < 36000 {
			continue
		}
		return s
	}
	if top == 0 {
		return scale{factor: 1, suffix: unit}
	}
	return steps[len(steps)-1]
}

// columnScale is the scale of a column of a table: the unit of the largest value if all
// the others can be read in it, else a unit for each cell. Nought is "0 B" in any column.
func columnScale(unit string, values ...float64) scale {
	s := scaleOf(unit, values...)
	for _, v := range values {
		if s.suffix != "" && finite(v) && !s.legible(v) {
			return scale{factor: 1, mixed: unit}
		}
	}
	return s
}

// legible reports whether v, in this unit, has neither zeros before its digits nor too many digits.
func (s scale) legible(v float64) bool {
	size := math.Abs(v) / s.factor
	return s.suffix == "" || size >= 0.0995 && size < 1e5
}

// number writes v with three significant digits in the scale, without the unit.
func (s scale) number(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "—"
	}
	if s.mixed != "" {
		return human(v, s.mixed)
	}
	if s.suffix == "" && v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.FormatFloat(v, 'f', -1, 64) // a count is exact
	}
	return units.Significant(v/s.factor, 3)
}

// text is the number with its unit.
func (s scale) text(v float64) string {
	if s.suffix == "" {
		return s.number(v)
	}
	return s.number(v) + " " + s.suffix
}

// human writes one value on its own, in the unit that suits it.
func human(v float64, unit string) string {
	if unit == "1" && v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return scaleOf(unit, v).text(v)
}

// brief is [human] without the zeros that a round value ends in: "2 MB", "1.5 GB/s".
func brief(v float64, unit string) string {
	number, suffix, found := strings.Cut(human(v, unit), " ")
	if !found {
		return number
	}
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	return number + " " + suffix
}

// percent writes a share or a confidence level: "95 %", "99.2 %".
func percent(share float64) string {
	return strconv.FormatFloat(math.Round(share*1000)/10, 'f', -1, 64) + " %"
}

// ratio writes measured over published, without a row of zeros before its digits.
func ratio(v float64) string {
	if v <= 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return "—"
	}
	if v < 1e-3 {
		mantissa, power, _ := strings.Cut(strconv.FormatFloat(v, 'e', 2, 64), "e-")
		return mantissa + "e-" + strings.TrimLeft(power, "0") + "×"
	}
	return units.Significant(v, 3) + "×"
}

// grouped writes an integer with thin spaces between thousands.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	out := ""
	for len(s) > 3 && s[len(s)-4] != '-' {
		out = "\u202F" + s[len(s)-3:] + out
		s = s[:len(s)-3]
	}
	return s + out
}
