package wording

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ChangeWords are the words for a quantity that is larger, smaller or a
// multiple: "faster", "slower", "fast".
type ChangeWords struct{ Up, Down, Times string }

// nearlyNothing is the ratio below which a decrease is so close to 100 % that
// what is left is printed instead.
const nearlyNothing = 0.05

// Change writes a ratio as a change: a share, or a multiple from twice on. ci
// is its interval, nil for none.
func (w ChangeWords) Change(ratio float64, ci *Span) string {
	switch {
	case ratio == 1:
		return "no change"
	case ratio >= 2:
		text := fmt.Sprintf("%s times as %s", Number(ratio), w.Times)
		if ci != nil { // a multiple is known to about as many digits as its lower end
			text += rangeText(ci.Low, ci.High, ci.Low, "")
		}
		return text
	}
	word, size := w.Up, ratio-1
	if ratio < 1 {
		word, size = w.Down, 1-ratio
	}
	scale := 100 * size
	if ratio < nearlyNothing { // what is left has digits too: 99.63 %, not 100 %
		scale = 100 * ratio
	}
	text := decimals(100*size, scale) + " % " + word
	if ci == nil {
		return text
	}
	low, high := ci.Low-1, ci.High-1
	if ratio < 1 {
		low, high = 1-ci.High, 1-ci.Low
	}
	if low < 0 {
		return text + " (" + SignedSpan(ci.Low-1, ci.High-1) + ")"
	}
	if ratio >= nearlyNothing {
		scale = 100 * max(low, high)
	}
	return text + rangeText(100*low, 100*high, scale, " %")
}

// PercentUp rounds a share up, for "within".
func PercentUp(share float64) string {
	x := 100 * share
	step := 1.0
	for step > x && step > 0.001 {
		step /= 10
	}
	if x >= 1 {
		step = 0.1
	}
	if x >= 10 {
		step = 1
	}
	return Number(math.Ceil(x/step-1e-9)*step).String() + " %"
}

// decimals writes x with digits that fit a number of the size of scale.
func decimals(x, scale float64) string {
	n := 0
	for s := math.Abs(scale); s > 0 && s < 10 && n < 4; s *= 10 {
		n++
	}
	return trimZeros(strconv.FormatFloat(x, 'f', n, 64))
}

// rangeText writes " (8–16 %)" with one precision for both ends.
func rangeText(low, high, scale float64, unit string) string {
	a, b := decimals(low, scale), decimals(high, scale)
	if a == b {
		return " (interval within these digits)"
	}
	return " (" + a + "–" + b + unit + ")"
}

// SignedSpan writes two shares as changes: "−3 to +4 %".
func SignedSpan(low, high float64) string {
	scale := 100 * max(math.Abs(low), math.Abs(high))
	sign := func(v float64) string {
		text := decimals(math.Abs(v), scale)
		switch {
		case strings.Trim(text, "0.") == "":
			return "0"
		case v < 0:
			return "−" + text
		}
		return "+" + text
	}
	return sign(100*low) + " to " + sign(100*high) + " %"
}
