package units

import (
	"math"
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
// anything.
func exact(n int64, table []unit, base string) string {
	best := strconv.FormatInt(n, 10) + " " + base
	for _, u := range table {
		if u.suffix == "KB" || u.suffix == "µs" || n < u.factor {
			continue
		}
		if text, ok := inUnit(n, u); ok && len(text) < len(best) {
			best = text
		}
	}
	return best
}

// inUnit writes n in unit u with up to three decimals, if that is exact.
func inUnit(n int64, u unit) (string, bool) {
	whole, rest := n/u.factor, n%u.factor
	if rest == 0 {
		return strconv.FormatInt(whole, 10) + " " + u.suffix, true
	}
	if u.factor%1000 != 0 || rest%(u.factor/1000) != 0 {
		return "", false
	}
	frac := strconv.FormatInt(1000+rest/(u.factor/1000), 10)[1:]
	return strconv.FormatInt(whole, 10) + "." + strings.TrimRight(frac, "0") + " " + u.suffix, true
}

// Human is the size with three significant digits in decimal units, for people.
func (b Bytes) Human() string { return human(float64(b), byteScale) }

// Human is the rate with three significant digits in decimal units, for people.
func (r Rate) Human() string { return human(float64(r), byteScale) + "/s" }

// Human is the time with three significant digits, for people.
func (d Duration) Human() string { return human(float64(d), timeScale) }

type step struct {
	factor float64
	suffix string
}

var byteScale = []step{{1e18, "EB"}, {1e15, "PB"}, {1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "B"}}

var timeScale = []step{{3600e9, "h"}, {60e9, "min"}, {1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}, {1, "ns"}}

// human scales so that rounding to three digits never shows 1000 of a smaller
// unit.
func human(v float64, scale []step) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "—"
	}
	for i, s := range scale {
		limit := s.factor
		if i < len(scale)-1 {
			limit *= 0.9995
		}
		if math.Abs(v) >= limit || i == len(scale)-1 {
			return Significant(v/s.factor, 3) + " " + s.suffix
		}
	}
	return ""
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
