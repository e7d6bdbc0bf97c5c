package stats

import (
	"fmt"
	"slices"
)

// maxTheilSen bounds the points of a [FitTheilSen], whose slopes between all
// pairs are kept: 4,000 points make eight million.
const maxTheilSen = 4000

// TheilSen is a line fitted by medians.
type TheilSen struct {
	Slope     float64 // median of the slopes between all pairs of points with different x
	Intercept float64 // median of y - Slope·x over all points
	Pairs     int     // pairs used
	LeftOut   int     // pairs left out because their x is equal
	N         int     // number of points

	slopes []float64 // ascending
	groups []int     // numbers of points that share an x
}

// FitTheilSen fits a line by the method of Theil (1950) as Sen extended it to
// equal x (Journal of the American Statistical Association 63, 1968): pairs of
// equal x have no slope and are left out. Up to 29 % of the points may be
// arbitrarily wrong before the slope is. The intercept is the median residual
// (not Theil's median y less slope times median x). It takes 2 to 4,000 points
// that do not all share one x.
func FitTheilSen(x, y []float64) (TheilSen, error) {
	const doing = "fitting Theil-Sen line"
	if err := checkPairs(doing, x, y, 2); err != nil {
		return TheilSen{}, err
	}
	if len(x) > maxTheilSen {
		return TheilSen{}, fmt.Errorf("%s: n is %d, at most %d: %w", doing, len(x), maxTheilSen, ErrTooMany)
	}
	if constant(x) {
		return TheilSen{}, fmt.Errorf("%s: every x is %v: %w", doing, x[0], ErrNoSpread)
	}
	n := len(x)
	t := TheilSen{N: n, slopes: make([]float64, 0, n*(n-1)/2), groups: tieSizes(x)}
	for i := range n {
		for j := range i {
			if x[i] == x[j] {
				t.LeftOut++
				continue
			}
			t.slopes = append(t.slopes, (y[i]-y[j])/(x[i]-x[j]))
		}
	}
	if err := checkResult(doing, t.slopes...); err != nil {
		return TheilSen{}, err
	}
	slices.Sort(t.slopes)
	t.Pairs = len(t.slopes)
	t.Slope = medianSorted(t.slopes)
	rest := make([]float64, n)
	for i := range rest {
		rest[i] = y[i] - t.Slope*x[i]
	}
	if err := checkResult(doing, rest...); err != nil {
		return TheilSen{}, err
	}
	t.Intercept = medianSorted(sorted(rest))
	return t, nil
}

// At returns the fitted y at x.
func (t TheilSen) At(x float64) float64 { return t.Intercept + t.Slope*x }

// SlopeInterval returns Sen's interval of the slope, between two order
// statistics of the pairwise slopes, with the level that it has. The level comes
// from the exact distribution of Kendall's statistic given the ties in x up to
// 200 points, from its normal approximation above; it is a lower bound where
// errors tie. Errors are assumed independent and of one distribution. With all x
// different, no interval of level 0.95 exists for n below 5.
func (t TheilSen) SlopeInterval(level float64) (Interval, error) {
	const doing = "computing Theil-Sen slope interval"
	if err := checkLevel(doing, level); err != nil {
		return Interval{}, err
	}
	if t.Pairs == 0 {
		return Interval{}, &TooFewError{Doing: doing, Have: t.N, Need: senNeeds(level)}
	}
	null := newConcordance(t.groups)
	k, real := orderFor(t.Pairs, level, null.cdf)
	if k == 0 {
		return Interval{}, &TooFewError{Doing: doing, Have: t.N, Need: max(t.N+1, senNeeds(level))}
	}
	iv := Interval{Low: t.slopes[k-1], High: t.slopes[t.Pairs-k], Level: real, Method: MethodSen}
	if !null.exact() {
		iv.Method = MethodSenNormal
	}
	return iv, nil
}

// senNeeds is the smallest number of points of different x whose extreme slopes
// enclose the true one with at least the level: 1 - 2/n! ≥ level.
func senNeeds(level float64) int {
	n := 3
	for f := 6.0; 1-2/f < level && n < 30; f *= float64(n) {
		n++
	}
	return n
}

// tieSizes returns how many values share each distinct value, in its order.
func tieSizes(xs []float64) []int {
	s := sorted(xs)
	var sizes []int
	for i := 0; i < len(s); {
		j := i + 1
		for j < len(s) && s[j] == s[i] {
			j++
		}
		sizes = append(sizes, j-i)
		i = j
	}
	return sizes
}
