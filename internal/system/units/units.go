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
		return 0, fmt.Errorf("parsing %q: %s; want %s", s, wrongUnit(suffix), want)
	}
	r, _ := new(big.Rat).SetString(num)
	if r.Mul(r, new(big.Rat).SetInt64(table[i].factor)); !r.IsInt() {
		return 0, fmt.Errorf("parsing %q: %s %s is not a whole number of the base unit", s, num, suffix)
	}
	if !r.Num().IsInt64() {
		return 0, fmt.Errorf("parsing %q: larger than %d", s, int64(^uint64(0)>>1))
	}
	return r.Num().Int64(), nil
}

// wrongUnit is what is wrong with an unknown unit.
func wrongUnit(suffix string) string {
	switch {
	case suffix == "":
		return "the unit is missing"
	case len(suffix) == 1 && strings.Contains("mMGTKkgt", suffix):
		return fmt.Sprintf("%q can mean several units", suffix)
	case strings.HasSuffix(suffix, "b") || strings.HasSuffix(suffix, "bps"):
		return fmt.Sprintf("%q reads as bits", suffix)
	}
	return fmt.Sprintf("%q is no known unit", suffix)
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
