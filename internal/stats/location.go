package stats

import (
	"fmt"
	"math"
	"slices"
)

// Mean returns the arithmetic mean of at least one value, summed with
// compensation so that the order of the values does not matter.
func Mean(xs []float64) (float64, error) {
	const doing = "computing mean"
	if err := checkValues(doing, xs, 1); err != nil {
		return 0, err
	}
	m := mean(xs)
	return m, checkResult(doing, m)
}

// mean is the mean of finite values. Where their sum overflows, they are
// divided first.
func mean(xs []float64) float64 {
	n := float64(len(xs))
	if s := sum(xs); isFinite(s) {
		return s / n
	}
	m := 0.0
	for _, x := range xs {
		m += x / n
	}
	return m
}

// sum is Neumaier's compensated sum (Zeitschrift für Angewandte Mathematik und
// Mechanik 54, 1974): a benchmark adds millions of small times to large ones.
func sum(xs []float64) float64 {
	total, lost := 0.0, 0.0
	for _, x := range xs {
		t := total + x
		if math.Abs(total) >= math.Abs(x) {
			lost += (total - t) + x
		} else {
			lost += (x - t) + total
		}
		total = t
	}
	return total + lost
}

// GeoMean returns the geometric mean of at least one value, all of them
// positive.
func GeoMean(xs []float64) (float64, error) {
	const doing = "computing geometric mean"
	if err := checkValues(doing, xs, 1); err != nil {
		return 0, err
	}
	if err := checkPositive(doing, xs); err != nil {
		return 0, err
	}
	g := math.Exp(mean(logs(xs)))
	return g, checkResult(doing, g)
}

func logs(xs []float64) []float64 {
	out := make([]float64, len(xs))
	for i, x := range xs {
		out[i] = math.Log(x)
	}
	return out
}

// Median returns the middle value, or the mean of the two middle ones, of at
// least one value.
func Median(xs []float64) (float64, error) {
	if err := checkValues("computing median", xs, 1); err != nil {
		return 0, err
	}
	return medianSorted(sorted(xs)), nil
}

func medianSorted(s []float64) float64 {
	n := len(s)
	if n%2 == 1 {
		return s[n/2]
	}
	return midpoint(s[n/2-1], s[n/2])
}

// midpoint is (a+b)/2 where the sum may overflow.
func midpoint(a, b float64) float64 {
	if s := a + b; isFinite(s) {
		return s / 2
	}
	return a/2 + b/2
}

// Quantile returns the p quantile, 0 ≤ p ≤ 1, of at least one value, by linear
// interpolation between the order statistics around position (n-1)·p. That is
// type 7 of Hyndman and Fan (The American Statistician 50, 1996), the default
// of R and NumPy.
func Quantile(xs []float64, p float64) (float64, error) {
	const doing = "computing quantile"
	if err := checkValues(doing, xs, 1); err != nil {
		return 0, err
	}
	if !(p >= 0 && p <= 1) {
		return 0, fmt.Errorf("%s: p %v is not between 0 and 1: %w", doing, p, ErrRange)
	}
	return quantileSorted(sorted(xs), p), nil
}

func quantileSorted(s []float64, p float64) float64 {
	at := p * float64(len(s)-1)
	i := min(int(at), len(s)-1)
	f := at - float64(i)
	if f <= 0 || i == len(s)-1 {
		return s[i]
	}
	// Written as a weighted mean because s[i+1]-s[i] may overflow; clamped
	// because its rounding must not step out of the gap.
	return min(max((1-f)*s[i]+f*s[i+1], s[i]), s[i+1])
}

// TrimmedMean returns the mean of what is left when floor(share·n) values are
// cut from each end of the ordered sample. The share is that of one end,
// 0 ≤ share < 0.5: a 20 % trimmed mean, share 0.2, rests on the middle 60 %.
func TrimmedMean(xs []float64, share float64) (float64, error) {
	const doing = "computing trimmed mean"
	if err := checkValues(doing, xs, 1); err != nil {
		return 0, err
	}
	cut, err := trimCount(doing, len(xs), share)
	if err != nil {
		return 0, err
	}
	m := mean(sorted(xs)[cut : len(xs)-cut])
	return m, checkResult(doing, m)
}

// trimCount is the number of values cut from each end. The small addend keeps
// a share such as 0.29 of 100, which is 28.999… in binary, at 29.
func trimCount(doing string, n int, share float64) (int, error) {
	if !(share >= 0 && share < 0.5) {
		return 0, fmt.Errorf("%s: share %v is not in [0, 0.5): %w", doing, share, ErrRange)
	}
	// A share just below one half must still leave a value.
	return min(int(share*float64(n)+1e-9), (n-1)/2), nil
}

// Min returns the smallest of at least one value.
func Min(xs []float64) (float64, error) {
	if err := checkValues("computing minimum", xs, 1); err != nil {
		return 0, err
	}
	return slices.Min(xs), nil
}

// Max returns the largest of at least one value.
func Max(xs []float64) (float64, error) {
	if err := checkValues("computing maximum", xs, 1); err != nil {
		return 0, err
	}
	return slices.Max(xs), nil
}

// sorted returns an ascending copy.
func sorted(xs []float64) []float64 {
	s := slices.Clone(xs)
	slices.Sort(s)
	return s
}

// constant reports whether all values are equal. A sum of squares about a
// rounded mean cannot tell: 0.1, 0.1, 0.1 has one of about 1e-34.
func constant(xs []float64) bool {
	for _, x := range xs {
		if x != xs[0] {
			return false
		}
	}
	return true
}
