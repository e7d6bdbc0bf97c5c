package wording

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/plan"
	"dmgbench/internal/units"
)

// Amount is a value with its unit: B/s, B, s, or 1.
type Amount struct {
	Value float64
	Unit  string
}

func (a Amount) String() string {
	v, sign := a.Value, ""
	if v < 0 && a.Unit != "1" {
		sign, v = "−", -v
	}
	switch {
	case math.IsInf(v, 0) || math.IsNaN(v):
		return "no number"
	case a.Unit == "B/s":
		return sign + units.Rate(math.Round(v)).Human()
	case a.Unit == "B":
		return sign + units.Bytes(math.Round(v)).Human()
	case a.Unit == "s":
		return sign + units.Duration(time.Duration(math.Round(v*1e9))).Human()
	case v == math.Trunc(v) && math.Abs(v) < 1e6:
		return strconv.Itoa(int(v))
	}
	return trimZeros(units.Significant(v, 3))
}

// Number is a pure number.
func Number(v float64) Amount { return Amount{v, "1"} }

// Span is two limits with one unit: "1.8 to 2.3".
type Span struct {
	Low, High float64
	Unit      string
}

func (s Span) String() string {
	a, b := Amount{s.Low, s.Unit}.String(), Amount{s.High, s.Unit}.String()
	if a == b {
		return a
	}
	return a + " to " + b
}

// Count is a number of things: "1 round", "3 rounds".
type Count struct {
	N    int
	Noun string
}

func (c Count) String() string {
	if c.N == 1 {
		return "1 " + c.Noun
	}
	return fmt.Sprintf("%d %ss", c.N, c.Noun)
}

// Percent is a share.
type Percent float64

func (p Percent) String() string { return Number(100*float64(p)).String() + " %" }

// Size is a number of bytes as plans write it.
type Size int64

func (s Size) String() string { return units.Bytes(s).String() }

// P is a p value in a sentence: "p = 0.02", or "p below 0.0001".
type P float64

func (p P) String() string {
	if text := p.Short(); strings.HasPrefix(text, "below") {
		return "p " + text
	}
	return "p = " + p.Short()
}

// Short is the p value alone: two digits, "below 0.0001", or "1".
func (p P) Short() string {
	switch {
	case p < 0.0001:
		return "below 0.0001"
	case p >= 0.9995:
		return "1"
	}
	return fmt.Sprintf("%.2g", float64(p))
}

// Bound is what a claim needs: "at least 2", "between 0.9 and 1.1".
type Bound plan.Bound

func (b Bound) String() string {
	low, high := !math.IsInf(b.Low, 0), !math.IsInf(b.High, 0)
	from, to := limit(b.Low, b.Unit), limit(b.High, b.Unit)
	switch {
	case low && high:
		return "between " + from + " and " + to
	case low && b.LowOpen:
		return "more than " + from
	case low:
		return "at least " + from
	case high && b.HighOpen:
		return "less than " + to
	case high:
		return "at most " + to
	}
	return "any value"
}

// limit writes a limit that a plan sets: as the plan would where that is short,
// else rounded.
func limit(v float64, unit string) string {
	text := ""
	if math.Abs(v) < 1e18 && v >= 0 {
		switch unit {
		case "B/s":
			text = units.Rate(math.Round(v)).String()
		case "B":
			text = units.Bytes(math.Round(v)).String()
		case "s":
			text = units.Duration(time.Duration(math.Round(v * 1e9))).String()
		}
	}
	if text == "" || len(text) > len("1234.567 MB/s") {
		return Amount{v, unit}.String()
	}
	return text
}

// Method is how an interval was made: the distribution, the looks that could
// have been the last (from 2 on), and the standard deviation, as a share, that
// is allowed between sessions (0 for none).
type Method struct {
	Name    string
	Looks   int
	Session float64
}

func (m Method) String() string {
	text := m.Name
	if m.Looks >= 2 {
		text += fmt.Sprintf(", %d looks", m.Looks)
	}
	if m.Session > 0 {
		text += fmt.Sprintf(", %s allowed for what the session was like", Percent(m.Session))
	}
	return text
}

// IntervalNote describes the interval of a value, made by Method: whether all
// of it has the digits of the value.
type IntervalNote struct {
	Value  Amount
	Span   Span
	Method Method
}

func (n IntervalNote) String() string {
	n.Method.Name = "95 % t interval"
	if n.Span.String() == n.Value.String() {
		n.Method.Name += " within these digits"
	}
	return n.Method.String()
}

// Numbers is ascending numbers, the first few of many.
type Numbers []int

func (ns Numbers) String() string {
	const few = 6
	var parts []string
	for _, n := range ns[:min(few, len(ns))] {
		parts = append(parts, strconv.Itoa(n))
	}
	text := strings.Join(parts, ", ")
	if len(ns) > few {
		text += fmt.Sprintf(" and %d more", len(ns)-few)
	}
	return text
}

// Faster writes the logarithm of a time over the expected one: "2 times
// faster", "3 times slower".
func Faster(log float64) string {
	if log < 0 {
		return Number(math.Exp(-log)).String() + " times faster"
	}
	return Number(math.Exp(log)).String() + " times slower"
}

func trimZeros(text string) string {
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}
