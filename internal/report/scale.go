package report

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/report/wording"
	"dmgbench/internal/system/units"
)

// IsFinite reports whether v is a number, and no infinity.
func IsFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Scale is the unit that a whole column or axis is printed in, so that its
// numbers can be compared at a glance. A column with values too different for
// one unit has no suffix, and each cell its own: Mixed is their base unit.
//
// Values are stored in base units: bytes, bytes per second, seconds.
type Scale struct {
	Factor float64 // of the unit, in base units
	Suffix string
	Mixed  string
	digits *int // after the point; nil for three significant digits
}

// scales are the units of a base unit, from the largest.
var scales = map[string][]Scale{
	"B":   decimalScales("B"),
	"B/s": decimalScales("B/s"),
	"1/s": {{Factor: 1e6, Suffix: "M/s"}, {Factor: 1e3, Suffix: "k/s"}, {Factor: 1, Suffix: "/s"}},
	"s": {{Factor: 3600, Suffix: "h"}, {Factor: 60, Suffix: "min"}, {Factor: 1, Suffix: "s"},
		{Factor: 1e-3, Suffix: "ms"}, {Factor: 1e-6, Suffix: "µs"}, {Factor: 1e-9, Suffix: "ns"}},
}

func decimalScales(unit string) []Scale {
	return []Scale{{Factor: 1e12, Suffix: "T" + unit}, {Factor: 1e9, Suffix: "G" + unit},
		{Factor: 1e6, Suffix: "M" + unit}, {Factor: 1e3, Suffix: "k" + unit}, {Factor: 1, Suffix: unit}}
}

// ScaleOf is the unit in which the largest value has a whole part.
func ScaleOf(unit string, values ...float64) Scale {
	top := 0.0
	for _, v := range values {
		if IsFinite(v) {
			top = max(top, math.Abs(v))
		}
	}
	steps := scales[unit]
	switch {
	case steps == nil:
		return Scale{Factor: 1}
	case top == 0:
		return Scale{Factor: 1, Suffix: strings.TrimPrefix(unit, "1")}
	}
	for _, s := range steps {
		if top >= s.Factor*0.9995 {
			return s
		}
	}
	return steps[len(steps)-1]
}

// AxisScale is the one unit of an axis and of the figures at its marks, where
// top is the largest value drawn: the largest unit in which all figures can be
// read, else the smallest in which top can.
func AxisScale(unit string, top float64, figures ...float64) Scale {
	s := ScaleOf(unit, append(figures, top)...)
	isSmall := func(v float64) bool { return v != 0 && IsFinite(v) && !s.legible(v) }
	for _, smaller := range scales[unit] {
		if smaller.Factor < s.Factor && smaller.legible(top) && slices.ContainsFunc(figures, isSmall) {
			s = smaller
		}
	}
	return s
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
	if slices.ContainsFunc(values, func(v float64) bool { return IsFinite(v) && !s.legible(v) }) {
		return Scale{Factor: 1, Mixed: unit}
	}
	return s
}

// legible reports whether v, in this unit, has neither zeros before its digits
// nor too many digits.
func (s Scale) legible(v float64) bool {
	size := math.Abs(v) / s.Factor
	return s.Suffix == "" || size >= 0.0995 && size < 1e5
}

// Number writes v in the scale, without the unit: with the digits of the scale, or
// with three significant ones where fewer than two would remain of it, as of
// 0.00. A count is exact.
func (s Scale) Number(v float64) string {
	text := ""
	if s.digits != nil {
		text = strconv.FormatFloat(v/s.Factor, 'f', *s.digits, 64)
	}
	isWhole := s.digits != nil && *s.digits == 0
	switch {
	case !IsFinite(v):
		return "—"
	case s.Mixed != "":
		return Human(v, s.Mixed)
	case text != "" && (v == 0 || isWhole || len(strings.TrimLeft(text, "-0.")) >= 2):
		return text
	case s.Suffix == "" && v == math.Trunc(v) && math.Abs(v) < 1e15:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return units.Significant(v/s.Factor, 3)
}

// Text is the number with its unit.
func (s Scale) Text(v float64) string { return AddUnit(s.Number(v), s.Suffix) }

// AddUnit adds a unit to a number or a range. A text that ends in something else
// than a digit is words, or has its unit.
func AddUnit(text, unit string) string {
	if unit == "" || text == "" || !strings.ContainsAny(text[len(text)-1:], "0123456789") {
		return text
	}
	return text + " " + unit
}

// Human writes one value on its own, in the unit that suits it.
func Human(v float64, unit string) string { return ScaleOf(unit, v).Text(v) }

// Brief is [Human] without the zeros that a round value ends in: "2 MB", "1.5
// GB/s".
func Brief(v float64, unit string) string {
	number, suffix, found := strings.Cut(Human(v, unit), " ")
	if found && strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	return number + TextIf(found, " "+suffix)
}

// Percent writes a share or a confidence level: "95 %", "99.2 %".
func Percent(share float64) string { return wording.Percent(share).String() }

// Ratio writes measured over published, without a row of zeros before its
// digits.
func Ratio(v float64) string {
	if v <= 0 || !IsFinite(v) {
		return "—"
	}
	if v < 1e-3 {
		return strconv.FormatFloat(v, 'g', 3, 64) + "×"
	}
	return units.Significant(v, 3) + "×"
}

// Axis is one axis of a chart. With categories it has no unit.
type Axis struct {
	Name       string
	Unit       string // base unit of the values: B, B/s, s or 1
	Scale      Scale  // unit of its labels; the zero Scale is one that suits the marks
	Categories []string
	Log        bool
	Human      bool      // each label has a unit of its own, as file sizes do
	Ticks      []float64 // places of ticks; nil leaves them to the library
	Names      []string  // labels of the whole numbers from 0: categories with room between them
	Low, High  *float64  // ends; nil leaves them to the library
}

// RoundDigits rounds to six significant digits: more than a picture shows, and
// a smaller page.
//
// Six digits are enough for a plot of 4,000 pixels.
func RoundDigits(v float64) float64 {
	p := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(v))))
	if !IsFinite(v) || !IsFinite(p) || p == 0 {
		return v
	}
	return math.Round(v*p) / p
}

// RoundUp is the next value at or above v that ends an axis on a tick.
func RoundUp(v float64) float64 {
	if v <= 0 || !IsFinite(v) {
		return 1
	}
	step := TickStep(v)
	return RoundDigits(math.Ceil(v/step-1e-9) * step)
}

// maxTicks is the number of ticks beyond which [RoundTicks] has only the
// decades.
//
// More labels overlap on a picture of 340 pixels.
const maxTicks = 10

// RoundTicks are the round values (1, 2 and 5 of each decade) from low to high
// for a logarithmic axis, or the decades alone where these are too many. Within
// a decade they are evenly spaced.
//
// Ticks are at round values only: the library would label 1.7 GB/s.
func RoundTicks(low, high float64) []float64 {
	var fine, decades []float64
	if low <= 0 || high < low {
		return nil
	}
	isWithin := func(t float64) bool { return t >= low*(1-1e-9) && t <= high*(1+1e-9) }
	if step := TickStep(high - low); high < 10*low {
		for k := range 8 {
			fine = append(fine, RoundDigits((math.Ceil(low/step-1e-9)+float64(k))*step))
		}
		return Where(fine, isWithin)
	}
	for power := math.Pow(10, math.Floor(math.Log10(low))); power <= high; power *= 10 {
		for _, m := range []float64{1, 2, 5} {
			if t := RoundDigits(m * power); isWithin(t) {
				fine = append(fine, t)
			}
		}
		decades = append(decades, RoundDigits(power))
	}
	if decades = Where(decades, isWithin); len(fine) <= maxTicks || len(decades) < 2 {
		return fine
	}
	return decades
}

// TickStep is the round number that fits into a span at most six times.
func TickStep(span float64) float64 {
	if span <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(span/6)))
	for _, m := range []float64{1, 2, 5} {
		if span <= 6*m*power {
			return m * power
		}
	}
	return 10 * power
}

// Fit ends a linear axis on ticks, with a margin about the values: the library
// would set ticks of its own next to an end that is not one. An axis near 0 begins
// there. Values at the end of the range of numbers are left to the library.
func (a *Axis) Fit(margin float64, values ...float64) {
	if len(values) == 0 {
		return
	}
	least, to := slices.Min(values), slices.Max(values)+margin
	from := least - margin
	if least >= 0 && from < 0.4*to {
		from = 0
	}
	step := TickStep(to - from)
	if !IsFinite(step) || !IsFinite(to) || !IsFinite(from) {
		return
	}
	for k := math.Floor(from / step); len(a.Ticks) == 0 || a.Ticks[len(a.Ticks)-1] <= to; k++ {
		a.Ticks = append(a.Ticks, RoundDigits(k*step))
	}
	a.Low, a.High = &a.Ticks[0], &a.Ticks[len(a.Ticks)-1]
}

// FitAround is [Axis.Fit] with room about the values, for their names or their
// intervals: a quarter of their range, and at least a share of the largest one.
func (a *Axis) FitAround(share float64, values ...float64) {
	if len(values) > 0 {
		least, most := slices.Min(values), slices.Max(values)
		a.Fit(max((most-least)/4, math.Abs(most)*share), values...)
	}
}

// FitLog makes an axis logarithmic and ends it next to its values, widened at
// both ends by the factor room.
func (a *Axis) FitLog(low, high, room float64) {
	low, high = RoundDigits(low/room), RoundDigits(high*room)
	a.Low, a.High, a.Log, a.Ticks = &low, &high, true, RoundTicks(low, high)
}

// RowAxis names rows that have room between them.
//
// Categories of the library would have the points of a row on one line.
func RowAxis(names []string) Axis {
	a := Axis{Unit: "1", Low: new(-0.5), High: new(float64(len(names)) - 0.5), Names: names}
	for i := range names {
		a.Ticks = append(a.Ticks, float64(i))
	}
	return a
}
