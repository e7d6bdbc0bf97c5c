package analysis

import (
	"fmt"
	"math"

	"dmgbench/internal/plan"
	"dmgbench/internal/stats"
)

// aboutTolerance is how far the true value of a figure printed as "about" may
// lie from it.
const aboutTolerance = 0.05

// printed judges two printed figures. A figure stands for an interval: exact
// ones for a point, "below", "above" and ranges for all their values, and every
// one of these has to satisfy the bound. "about 2" stands for 2 ± 5 %, of which
// one value that satisfies the bound is enough: the author rounded, and the claim
// is his.
func printed(a, b side, bound plan.Bound, op func(x, y float64) float64, unit string, phrase func(string) string) finding {
	bound.Unit = unit
	f := finding{need: boundText(bound)}
	wideLow, wideHigh, open := image(a.widened(), b.widened(), op)
	f.saw = phrase(showSpan(wideLow, wideHigh, unit)) + ", as published"
	f.evidence = []string{f.saw}
	if math.IsNaN(wideLow) || math.IsNaN(wideHigh) {
		return finding{weak: "the printed figures leave it open", evidence: f.evidence}
	}
	f.gap = gapText(bound, stats.Interval{Low: wideLow, High: wideHigh})
	switch {
	case inside(wideLow, wideHigh, open, bound):
		f.dir = 1
		return f
	case apartFrom(wideLow, wideHigh, open, bound):
		f.dir = -1
		return f
	}
	for _, x := range a.readings() {
		for _, y := range b.readings() {
			low, high, open := image(x, y, op)
			if inside(low, high, open, bound) {
				f.dir, f.gap = 1, ""
				if a.about || b.about {
					f.saw += fmt.Sprintf(", \"about\" read as ± %s", percent(aboutTolerance))
				}
				return f
			}
		}
	}
	f.p = 1
	return f
}

// span is an interval of numbers; open means that neither end belongs to it.
type span struct {
	low, high float64
	open      bool
}

// widened is everything that the figure can stand for.
func (a side) widened() span {
	s := span{a.low, a.high, a.lowOpen || a.highOpen}
	if a.about {
		d := aboutTolerance * math.Abs(a.low)
		s.low, s.high = a.low-d, a.high+d
	}
	return s
}

// readings are the values that an "about" may be read as; anything else has one
// reading, the whole interval.
func (a side) readings() []span {
	if !a.about {
		return []span{a.widened()}
	}
	w := a.widened()
	var out []span
	const steps = 20
	for i := range steps + 1 {
		v := w.low + (w.high-w.low)*float64(i)/steps
		out = append(out, span{low: v, high: v})
	}
	return append(out, span{low: a.low, high: a.low})
}

// image is the interval of op over two intervals. op is monotone in each of its
// arguments (a difference, or a ratio of what is not negative), so that the
// ends decide.
func image(a, b span, op func(x, y float64) float64) (low, high float64, open bool) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, x := range []float64{a.low, a.high} {
		for _, y := range []float64{b.low, b.high} {
			v := op(x, y)
			if math.IsNaN(v) {
				return math.NaN(), math.NaN(), true
			}
			low, high = min(low, v), max(high, v)
		}
	}
	return low, high, a.open || b.open
}

// inside reports whether the whole interval satisfies the bound. An open end may
// touch a strict bound.
func inside(low, high float64, open bool, b plan.Bound) bool {
	if open && low < high {
		return low >= b.Low && high <= b.High
	}
	ok := func(v float64) bool {
		return holdsAbout(b, v) || math.IsInf(v, 1) && math.IsInf(b.High, 1) || math.IsInf(v, -1) && math.IsInf(b.Low, -1)
	}
	return ok(low) && ok(high)
}

// apartFrom reports whether no value of the interval satisfies the bound.
func apartFrom(low, high float64, open bool, b plan.Bound) bool {
	if high < b.Low || low > b.High {
		return true
	}
	return high == b.Low && (open || b.LowOpen) || low == b.High && (open || b.HighOpen)
}
