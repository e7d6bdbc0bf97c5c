package units

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// String is the shortest exact form: "100 GB", "8 MiB", "4097 B".
func (b Bytes) String() string { return exact(int64(b), byteUnits, "B") }

// String is the shortest exact form, such as "6.13 GB/s".
func (r Rate) String() string { return exact(int64(r), byteUnits, "B") + "/s" }

// String is the shortest exact form, such as "10 s".
func (d Duration) String() string { return exact(int64(d), durationUnits, "ns") }

// Std is the same length of time as a time.Duration.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String is the percentage, such as "20%".
func (s Share) String() string {
	return strconv.FormatFloat(math.Round(float64(s)*1e10)/1e8, 'f', -1, 64) + "%"
}

// exact picks the unit that needs the fewest characters without losing
// anything, with up to three decimals.
func exact(n int64, table []unit, base string) string {
	best := strconv.FormatInt(n, 10) + " " + base
	for _, u := range table {
		text, rest := strconv.FormatInt(n/u.factor, 10), n%u.factor
		if n < u.factor || rest > 0 && (u.factor%1000 != 0 || rest%(u.factor/1000) != 0) {
			continue
		}
		if rest > 0 {
			text += "." + strings.TrimRight(strconv.FormatInt(1000+rest/(u.factor/1000), 10)[1:], "0")
		}
		if text += " " + u.suffix; len(text) < len(best) {
			best = text
		}
	}
	return best
}

// Human is the size with three significant digits in decimal units, for people.
func (b Bytes) Human() string { return human(float64(b), decimalUnits) }

// Human is the rate with three significant digits in decimal units, for people.
func (r Rate) Human() string { return human(float64(r), decimalUnits) + "/s" }

// Human is the time with three significant digits, for people.
func (d Duration) Human() string { return human(float64(d), timeScale) }

// decimalUnits and timeScale are the units of figures for people, the largest
// first.
var decimalUnits = byteUnits[6:]

var timeScale = []unit{{"h", 3600e9}, {"min", 60e9}, {"s", 1e9}, {"ms", 1e6}, {"µs", 1e3}, {"ns", 1}}

// human scales so that rounding to three digits never shows 1000 of a smaller
// unit.
func human(v float64, scale []unit) string {
	i := slices.IndexFunc(scale, func(u unit) bool {
		return u.factor == 1 || math.Abs(v) >= 0.9995*float64(u.factor)
	})
	return Significant(v/float64(scale[i].factor), 3) + " " + scale[i].suffix
}

// Significant writes v with the given number of significant digits and no
// exponent.
func Significant(v float64, digits int) string {
	if v == 0 {
		return "0"
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'e', digits-1, 64), 64)
	places := digits - 1 - int(math.Floor(math.Log10(math.Abs(rounded))))
	return strconv.FormatFloat(rounded, 'f', max(places, 0), 64)
}
