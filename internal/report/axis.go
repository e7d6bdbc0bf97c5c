package report

import (
	"math"
	"slices"
)

// Axis is one axis of a chart. With categories it has no unit.
type Axis struct {
	Name       string
	Unit       string // base unit of the values: B, B/s, s or 1
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
	if !IsFinite(v) || v == 0 {
		return v
	}
	p := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(v))))
	if !IsFinite(p) || p == 0 {
		return v
	}
	return math.Round(v*p) / p
}

// RoundUp is the next value at or above v that ends an axis on a tick.
func RoundUp(v float64) float64 {
	if v <= 0 || !IsFinite(v) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	step := power / 2
	if v/power < 2.5 {
		step = power / 5
	}
	return RoundDigits(math.Ceil(v/step-1e-9) * step)
}

// maxTicks is the number of ticks beyond which [RoundTicks] has only the
// decades.
//
// More labels overlap on a picture of 340 pixels.
const maxTicks = 10

// RoundTicks are the round values (1, 2 and 5 of each decade) from low to high
// for a logarithmic axis, or the decades alone where these are too many.
//
// Ticks are at round values only: the library would label 1.7 GB/s.
func RoundTicks(low, high float64) []float64 {
	if low <= 0 || high < low {
		return nil
	}
	var fine, decades []float64
	for power := math.Pow(10, math.Floor(math.Log10(low))); power <= high; power *= 10 {
		for _, m := range []float64{1, 2, 5} {
			t := RoundDigits(m * power)
			if t < low*(1-1e-9) || t > high*(1+1e-9) {
				continue
			}
			fine = append(fine, t)
			if m == 1 {
				decades = append(decades, t)
			}
		}
	}
	if len(fine) <= maxTicks || len(decades) < 2 {
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

// FitRatios ends an axis of ratios, which is logarithmic, next to its values;
// low is below 1 and high above it.
func (a *Axis) FitRatios(low, high float64) {
	low, high = RoundDigits(low/1.03), RoundDigits(high*1.03)
	a.Low, a.High, a.Log, a.Ticks = &low, &high, true, ratioTicks(low, high)
}

// ratioTicks are the round ratios from low to high, about eight of them.
func ratioTicks(low, high float64) []float64 {
	for _, step := range []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5} {
		if (high-low)/step <= 8 {
			var out []float64
			for k := math.Ceil(low / step); k*step <= high; k++ {
				out = append(out, RoundDigits(k*step))
			}
			return out
		}
	}
	return RoundTicks(low, high)
}
