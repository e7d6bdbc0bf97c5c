package stats

import (
	"fmt"
	"math"
	"slices"
)

// maxTheilSen bounds the points of [FitTheilSen], which keeps the slopes
// between all pairs: 4,000 points make eight million.
const maxTheilSen = 4000

// TheilSen is a line fitted by medians.
type TheilSen struct {
	Slope     float64 // median of the slopes between all pairs of points with different x
	Intercept float64 // median of y - Slope·x over all points

	slopes []float64 // of the pairs, ascending
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
	t := TheilSen{slopes: make([]float64, 0, n*(n-1)/2)}
	for i := range n {
		for j := range i {
			if x[i] != x[j] {
				t.slopes = append(t.slopes, (y[i]-y[j])/(x[i]-x[j]))
			}
		}
	}
	if err := checkResult(doing, t.slopes...); err != nil {
		return TheilSen{}, err
	}
	slices.Sort(t.slopes)
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

// SlopeIntervalByGroup is Sen's interval of the slope, between two order
// statistics of the pairwise slopes, for errors that may grow with x. The
// number of pairs that are steeper than a slope less that of those that are
// not, Kendall's S, has the variance that its terms show within the groups of
// equal x, each of at least [MinInGroup] points; ranks and Satterthwaite's
// degrees of freedom follow from that. x and y are those of the fit.
func (t TheilSen) SlopeIntervalByGroup(x, y []float64, level float64) (Interval, error) {
	const doing = "computing Theil-Sen slope interval by groups"
	x, y, groups, err := grouped(doing, x, y)
	if err != nil {
		return Interval{}, err
	}
	terms := t.terms(x, y)
	shares := make([]float64, len(groups))
	from := 0
	for h, g := range groups {
		one := terms[from : from+g]
		shares[h] = squaresAbout(one, mean(one)) * float64(g) / float64(g-1)
		from += g
	}
	variance, df := satterthwaite(shares, groups)
	reach := tCritical(level, df) * math.Sqrt(variance)
	pairs := len(t.slopes)
	k := int(math.Floor((float64(pairs) - reach) / 2))
	if k < 1 {
		return Interval{}, tooFew(doing, len(x), len(x)+len(groups))
	}
	return Interval{Low: t.slopes[k-1], High: t.slopes[pairs-k], Level: level, Method: MethodSenByGroup}, nil
}

// terms are, for each point, how many others the slope between them is above
// the fitted one less how many it is below.
func (t TheilSen) terms(x, y []float64) []float64 {
	rest, out := make([]float64, len(x)), make([]float64, len(x))
	for i := range x {
		rest[i] = y[i] - t.Slope*x[i]
	}
	for i := range x {
		for j := range i {
			if x[j] == x[i] || rest[i] == rest[j] {
				continue
			}
			sign := 1.0
			if rest[i] < rest[j] { // x ascends
				sign = -1
			}
			out[i] += sign
			out[j] += sign
		}
	}
	return out
}
