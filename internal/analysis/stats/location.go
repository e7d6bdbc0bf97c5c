package stats

import (
	"cmp"
	"math"
	"slices"
)

// Mean returns the arithmetic mean of at least one value, summed with
// compensation so that the order of the values does not matter.
func Mean(xs []float64) (float64, error) { return checked("computing mean", xs, 1, mean) }

// mean is the mean of finite values. Where their sum overflows, they are
// divided first.
func mean(xs []float64) float64 {
	n := float64(len(xs))
	if s := Sum(xs); isFinite(s) {
		return s / n
	}
	m := 0.0
	for _, x := range xs {
		m += x / n
	}
	return m
}

// Sum is Neumaier's compensated sum (Zeitschrift für Angewandte Mathematik und
// Mechanik 54, 1974): a benchmark adds millions of small times to large ones.
func Sum(xs []float64) float64 {
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

// Median returns the middle value, or the mean of the two middle ones, of at
// least one value.
func Median(xs []float64) (float64, error) { return checked("computing median", xs, 1, median) }

func median(xs []float64) float64 { return medianSorted(sorted(xs)) }

func medianSorted(s []float64) float64 {
	n := len(s)
	return midpoint(s[(n-1)/2], s[n/2])
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
	return checked("computing quantile", xs, 1, func(xs []float64) float64 {
		s := sorted(xs)
		at := p * float64(len(s)-1)
		i := min(int(at), len(s)-1)
		f, next := at-float64(i), s[min(i+1, len(s)-1)]
		// Written as a weighted mean because next-s[i] may overflow; clamped because
		// its rounding must not step out of the gap.
		return min(max((1-f)*s[i]+f*next, s[i]), next)
	})
}

// TrimmedMean returns the mean of the values left when floor(share·n) values
// are cut from each end of the ordered sample. The share is that of one end, 0
// ≤ share < 0.5: a 20 % trimmed mean, share 0.2, rests on the middle 60 %.
func TrimmedMean(xs []float64, share float64) (float64, error) {
	return checked("computing trimmed mean", xs, 1, func(xs []float64) float64 {
		// The small addend keeps a share such as 0.29 of 100, which is 28.999… in
		// binary, at 29; one just below one half must still leave a value.
		cut := min(int(share*float64(len(xs))+1e-9), (len(xs)-1)/2)
		return mean(sorted(xs)[cut : len(xs)-cut])
	})
}

// sorted returns an ascending copy.
func sorted(xs []float64) []float64 {
	s := slices.Clone(xs)
	slices.Sort(s)
	return s
}

// constant reports whether all values are equal. A sum of squares about a
// rounded mean does not show it: 0.1, 0.1, 0.1 has one of about 1e-34.
func constant(xs []float64) bool {
	return !slices.ContainsFunc(xs, func(x float64) bool { return x != xs[0] })
}

// sortedPairs returns copies ordered by x, then y.
func sortedPairs(x, y []float64) (sx, sy []float64) {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(x[a], x[b]), cmp.Compare(y[a], y[b])) })
	for _, i := range order {
		sx, sy = append(sx, x[i]), append(sy, y[i])
	}
	return sx, sy
}

// StdDev returns the sample standard deviation, with n-1 in the denominator,
// of at least two values.
func StdDev(xs []float64) (float64, error) {
	return checked("computing standard deviation", xs, 2, stdDev)
}

func stdDev(xs []float64) float64 {
	return math.Sqrt(squaresAbout(xs, mean(xs)) / float64(len(xs)-1))
}

// squaresAbout is the sum of squared distances from m, exactly zero for a
// sample that does not vary.
func squaresAbout(xs []float64, m float64) float64 {
	if constant(xs) {
		return 0
	}
	s := 0.0
	for _, x := range xs {
		s += (x - m) * (x - m)
	}
	return s
}

// MADScale times the [MAD] of a normal sample estimates its standard deviation:
// 1 / Φ⁻¹(3/4), rounded as the literature rounds it.
const MADScale = 1.4826

// MAD returns the median absolute deviation from the median of at least one
// value, without a scale factor (see [MADScale]).
func MAD(xs []float64) (float64, error) {
	return checked("computing median absolute deviation", xs, 1, func(xs []float64) float64 {
		middle, away := median(xs), make([]float64, len(xs))
		for i, x := range xs {
			away[i] = math.Abs(x - middle)
		}
		return median(away)
	})
}

// OutlierThreshold is the distance from the median, in units of the unscaled
// [MAD], beyond which [Outliers] calls a value an outlier: 10·[MADScale], so
// ten standard deviations of a normal sample.
const OutlierThreshold = 10 * MADScale

// Outliers returns the indices, ascending, of the values with
// |x - median| / MAD > 14.826, of at least three values. The rule and its
// threshold are those of hyperfine (src/outlier_detection.rs), where the
// quotient is called the modified Z-score: it flags only what no plausible
// spread explains. Both the median and the MAD include the outliers.
//
// Where the MAD is zero, more than half of the values are identical, and every
// value that differs from them is an outlier. That is what hyperfine's
// substitute, a MAD of 2⁻⁵², amounts to, but does not depend on the unit.
func Outliers(xs []float64) ([]int, error) {
	if err := checkValues("looking for outliers", xs, 3); err != nil {
		return nil, err
	}
	mad, err := MAD(xs)
	middle := median(xs)
	var out []int
	for i, x := range xs {
		if math.Abs(x-middle) > OutlierThreshold*mad {
			out = append(out, i)
		}
	}
	return out, err
}
