package report

import (
	"math"
	"strconv"

	"dmgbench/internal/units"
)

// scale is the unit that a whole column or axis is printed in, so that its numbers compare at a glance.
type scale struct {
	factor float64
	suffix string
}

var scales = map[string][]scale{
	"B":   {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "B"}},
	"B/s": {{1e12, "TB/s"}, {1e9, "GB/s"}, {1e6, "MB/s"}, {1e3, "kB/s"}, {1, "B/s"}},
	"s":   {{3600, "h"}, {60, "min"}, {1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}},
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
		return scale{1, ""}
	}
	for _, s := range steps {
		if top < s.factor*0.9995 || s.factor == 60 && top < 600 || s.factor == 3600 && top < 36000 {
			continue
		}
		return s
	}
	if top == 0 {
		return scale{1, unit}
	}
	return steps[len(steps)-1]
}

// number writes v with three significant digits in the scale, without the unit.
func (s scale) number(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "—"
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

// percent writes a share or a confidence level: "95 %", "99.2 %".
func percent(share float64) string {
	return strconv.FormatFloat(math.Round(share*1000)/10, 'f', -1, 64) + " %"
}

// ratio writes measured over published.
func ratio(v float64) string {
	if v <= 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return "—"
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
