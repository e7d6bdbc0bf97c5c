package selftest

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bound is the bound of a promise in words: "at most 5 %", "93 to 97 %".
func (p Promise) Bound() string {
	switch {
	case p.Low <= -none:
		return fmt.Sprintf("at most %s %s", plainNumber(p.High), p.Unit)
	case p.High >= none:
		return fmt.Sprintf("at least %s %s", plainNumber(p.Low), p.Unit)
	}
	return fmt.Sprintf("%s to %s %s", plainNumber(p.Low), plainNumber(p.High), p.Unit)
}

// Found is the figure that is farthest from keeping the promise, with its error.
func (p Promise) Found() string {
	if p.Error == 0 {
		return fmt.Sprintf("%s %s", plainNumber(p.Worst), p.Unit)
	}
	return fmt.Sprintf("%.1f ± %.1f %s", p.Worst+0, p.Error, p.Unit)
}

// Answer is "kept" or "not kept".
func (p Promise) Answer() string {
	if p.Kept {
		return "kept"
	}
	return "not kept"
}

// tooSmall is where the digits of a number would be lost among its zeros; a figure
// below it is the rounding of the arithmetic, and that of another processor.
const tooSmall = 1e-6

// plainNumber writes up to four decimals, or one digit behind the zeros of what has none in them.
func plainNumber(v float64) string {
	switch a := math.Abs(v); {
	case a == 0 || a >= 1e-4:
	case a < tooSmall:
		return "below 0.000001"
	default:
		return strings.TrimRight(strconv.FormatFloat(v, 'f', int(math.Ceil(-math.Log10(a))), 64), "0")
	}
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.4f", v), "0"), ".")
}

// Text is the report for a terminal: one line a promise.
func (r Report) Text() string {
	var b strings.Builder
	for _, s := range r.Studies {
		fmt.Fprintf(&b, "%s\n", s.Title)
		for _, p := range s.Promises {
			chance := ""
			if p.Kept && (p.Worst < p.Low || p.Worst > p.High) {
				chance = ", outside by less than two of its errors"
			}
			fmt.Fprintf(&b, "  %-8s %s\n           found %s (%s); bound: %s%s\n", p.Answer(), p.Says, p.Found(), p.Where, p.Bound(), chance)
		}
	}
	if o := r.Overhead; o != nil {
		fmt.Fprintf(&b, "The harness costs a file %.0f ns here (95th percentile %.0f), each further call %.0f ns.\n", o.File, o.File95, o.Call)
		fmt.Fprintf(&b, "Smallest honest file: %.1f kB at 1 GB/s, %.1f kB at 10 GB/s.\n", float64(o.SmallestHonest(1e9))/1e3, float64(o.SmallestHonest(10e9))/1e3)
	}
	if r.Kept {
		b.WriteString("Every promise is kept: no figure lies outside its bound by more than two of its standard errors (±).\n")
	} else {
		b.WriteString("Not every promise is kept.\n")
	}
	return b.String()
}
