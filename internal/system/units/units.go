// Package units holds the quantities that people write and read: bytes, rates,
// durations and shares.
//
// A value is stored in its base unit as an exact integer (bytes, bytes per
// second, nanoseconds) and scaled only where a person reads it. Parsing refuses
// whatever is ambiguous: a bare number, "512M", "1 Gb". Decimal (MB) and binary
// (MiB) multiples are different units and both are understood. The package
// does not compute and knows no disks.
package units

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bytes is a size in bytes, never negative in a plan.
type Bytes int64

// Rate is a speed in bytes per second.
type Rate int64

// Duration is a length of time in nanoseconds.
type Duration time.Duration

// Share is a part of a whole: 0.25 is written "25%".
type Share float64

// unit is one accepted suffix with its factor in base units.
type unit struct {
	suffix string
	factor int64
}

var byteUnits = []unit{
	{"EiB", 1 << 60}, {"PiB", 1 << 50}, {"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"EB", 1e18}, {"PB", 1e15}, {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1},
}

var durationUnits = []unit{
	{"min", int64(time.Minute)}, {"ms", int64(time.Millisecond)}, {"us", int64(time.Microsecond)},
	{"µs", int64(time.Microsecond)}, {"ns", 1}, {"s", int64(time.Second)}, {"h", int64(time.Hour)},
}

// ParseBytes reads a size such as "100 GB", "8 MiB" or "4096 B". The number may
// be a decimal fraction if the result is a whole number of bytes.
func ParseBytes(s string) (Bytes, error) {
	n, err := parse(s, byteUnits, "a size such as \"100 GB\", \"8 MiB\" or \"4096 B\"")
	return Bytes(n), err
}

// ParseRate reads a speed such as "6.13 GB/s".
func ParseRate(s string) (Rate, error) {
	const want = "a rate such as \"6.13 GB/s\" or \"540 MB/s\""
	body, ok := strings.CutSuffix(strings.TrimSpace(s), "/s")
	if !ok {
		return 0, fmt.Errorf("parsing %q: want %s", s, want)
	}
	n, err := parse(body, byteUnits, want)
	return Rate(n), err
}

// ParseDuration reads a time such as "10 s", "1.5 min" or "250 ms".
func ParseDuration(s string) (Duration, error) {
	n, err := parse(s, durationUnits, "a time such as \"10 s\", \"250 ms\" or \"5 min\"")
	return Duration(n), err
}

// ParseShare reads a percentage such as "20%", between 0 and 1000 %.
func ParseShare(s string) (Share, error) {
	body, ok := strings.CutSuffix(strings.TrimSpace(s), "%")
	body = strings.TrimSpace(body)
	if !ok || !IsDecimal(body) {
		return 0, fmt.Errorf("parsing %q: want a percentage such as \"20%%\"", s)
	}
	f, _ := strconv.ParseFloat(body, 64)
	if f > 1000 {
		return 0, fmt.Errorf("parsing %q: a share is between 0%% and 1000%%", s)
	}
	return Share(f / 100), nil
}

// parse splits number and suffix and multiplies them exactly.
func parse(s string, table []unit, want string) (int64, error) {
	text := strings.TrimSpace(s)
	suffix := strings.TrimLeft(text, "0123456789.")
	num := strings.TrimSuffix(text, suffix)
	if !IsDecimal(num) {
		return 0, fmt.Errorf("parsing %q: want %s", s, want)
	}
	suffix = strings.TrimSpace(suffix)
	i := slices.IndexFunc(table, func(u unit) bool { return u.suffix == suffix })
	if i < 0 {
		// 8 Mb are 1 MB: "b" is the bit
		near := slices.IndexFunc(table, func(u unit) bool { return u.suffix != "B" && strings.EqualFold(u.suffix, suffix) })
		if near >= 0 && strings.HasSuffix(suffix, "b") {
			return 0, fmt.Errorf("parsing %q: did you mean %s? %s are bits", s, table[near].suffix, suffix)
		}
		return 0, fmt.Errorf("parsing %q: the unit is missing or unknown; want %s", s, want)
	}
	r, _ := new(big.Rat).SetString(num)
	if r.Mul(r, new(big.Rat).SetInt64(table[i].factor)); !r.IsInt() {
		return 0, fmt.Errorf("parsing %q: %s %s is not a whole number of the base unit", s, num, suffix)
	}
	if !r.Num().IsInt64() {
		return 0, fmt.Errorf("parsing %q: larger than %d", s, int64(math.MaxInt64))
	}
	return r.Num().Int64(), nil
}

// IsDecimal accepts digits with at most one point; big.Rat would also take
// exponents, fractions and signs, and an exponent can ask for any amount of
// memory.
func IsDecimal(s string) bool {
	return s != "" && len(s) <= 40 && s[0] != '.' && s[len(s)-1] != '.' && strings.Count(s, ".") <= 1 &&
		!strings.ContainsFunc(s, func(c rune) bool { return (c < '0' || c > '9') && c != '.' })
}

// RoundUp is the smallest multiple of unit that is at least v. Neither may be
// negative, and v + unit must fit the type.
func RoundUp[T ~int64 | ~uint64](v, unit T) T { return (v + unit - 1) / unit * unit }

// Count is a number with its noun: "1 round", "3 rounds".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

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
