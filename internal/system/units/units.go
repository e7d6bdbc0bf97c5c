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
	r, okNum := decimal(strings.TrimSpace(body))
	if !ok || !okNum {
		return 0, fmt.Errorf("parsing %q: want a percentage such as \"20%%\"", s)
	}
	f, _ := r.Float64()
	if f > 1000 {
		return 0, fmt.Errorf("parsing %q: a share is between 0%% and 1000%%", s)
	}
	return Share(f / 100), nil
}

// parse splits number and suffix and multiplies them exactly.
func parse(s string, table []unit, want string) (int64, error) {
	text := strings.TrimSpace(s)
	i := 0
	for i < len(text) && (text[i] >= '0' && text[i] <= '9' || text[i] == '.') {
		i++
	}
	num, suffix := text[:i], strings.TrimSpace(text[i:])
	r, ok := decimal(num)
	if !ok {
		return 0, fmt.Errorf("parsing %q: want %s", s, want)
	}
	u, err := find(suffix, table)
	if err != nil {
		return 0, fmt.Errorf("parsing %q: %w; want %s", s, err, want)
	}
	r.Mul(r, new(big.Rat).SetInt64(u.factor))
	if !r.IsInt() {
		return 0, fmt.Errorf("parsing %q: %s %s is not a whole number of the base unit", s, num, suffix)
	}
	if !r.Num().IsInt64() {
		return 0, fmt.Errorf("parsing %q: larger than %d", s, int64(^uint64(0)>>1))
	}
	return r.Num().Int64(), nil
}

func find(suffix string, table []unit) (unit, error) {
	for _, u := range table {
		if u.suffix == suffix {
			return u, nil
		}
	}
	switch suffix {
	case "":
		return unit{}, fmt.Errorf("the unit is missing")
	case "m", "M", "G", "T", "K", "k", "g", "t":
		return unit{}, fmt.Errorf("%q can mean several units", suffix)
	}
	if strings.HasSuffix(suffix, "b") || strings.HasSuffix(suffix, "bps") {
		return unit{}, fmt.Errorf("%q reads as bits", suffix)
	}
	return unit{}, fmt.Errorf("%q is no known unit", suffix)
}

// decimal reads digits with at most one point; big.Rat would also take
// exponents, fractions and signs, and an exponent can ask for any amount of
// memory.
func decimal(s string) (*big.Rat, bool) {
	if s == "" || len(s) > 40 || s[0] == '.' || s[len(s)-1] == '.' || strings.Count(s, ".") > 1 {
		return nil, false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && c != '.' {
			return nil, false
		}
	}
	return new(big.Rat).SetString(s)
}
