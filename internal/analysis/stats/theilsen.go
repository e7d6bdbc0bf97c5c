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
	n := len(x)
	if n > maxTheilSen {
		return TheilSen{}, fmt.Errorf("%s: n is %d, at most %d: %w", doing, n, maxTheilSen, ErrRange)
	}
	if err := checkVarying(doing, "x", x); err != nil {
		return TheilSen{}, err
	}
	t := TheilSen{slopes: make([]float64, 0, n*(n-1)/2)}
	for i := range n {
		for j := range i {
			if x[i] != x[j] {
				t.slopes = append(t.slopes, (y[i]-y[j])/(x[i]-x[j]))
			}
		}
	}
	slices.Sort(t.slopes)
	t.Slope = medianSorted(t.slopes)
	rest := t.residuals(x, y)
	t.Intercept = median(rest)
	// The first and the last slope are infinite where any is
	return t, checkResult(doing, append(rest, t.slopes[0], t.slopes[len(t.slopes)-1])...)
}

// At returns the fitted y at x.
func (t TheilSen) At(x float64) float64 { return t.Intercept + t.Slope*x }

// residuals are y less what the slope gives for x.
func (t TheilSen) residuals(x, y []float64) []float64 {
	out := make([]float64, len(x))
	for i := range x {
		out[i] = y[i] - t.Slope*x[i]
	}
	return out
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
	// For each point, how many others the slope between them is above the fitted
	// one less how many it is below
	rest, terms := t.residuals(x, y), make([]float64, len(x))
	for i := range x {
		for j := range i {
			if x[j] == x[i] || rest[i] == rest[j] {
				continue
			}
			sign := 1.0
			if rest[i] < rest[j] { // x ascends
				sign = -1
			}
			terms[i] += sign
			terms[j] += sign
		}
	}
	variance, df := varianceByGroup(terms, groups)
	reach := tCritical(level, df) * math.Sqrt(variance)
	pairs := len(t.slopes)
	k := int(math.Floor((float64(pairs) - reach) / 2))
	if k < 1 {
		return Interval{}, tooFew(doing, len(x), len(x)+len(groups))
	}
	return Interval{Low: t.slopes[k-1], High: t.slopes[pairs-k], Level: level, Method: MethodSenByGroup}, nil
}

// MinInGroup is the least number of pairs that share an x for an interval by
// groups: two would show their scatter by a single difference.
const MinInGroup = 3

// JackknifeByGroup returns the t interval of a smooth statistic of pairs. The x
// were chosen; the y scatter about a value that depends on x, by an amount that
// may depend on x as well, as the times of files of given sizes do.
//
// The variance is that of a stratified jackknife: one pair at a time is left
// out, and differences count only within a group of equal x, so that the choice
// of x does not count as scatter. Leaving out one of n moves a statistic by
// 1/(n-1) of its influence, whatever the size g of the group is, so that
// squares within a group count g/(g-1) times ((n-1)/n)². With one group that is
// the common jackknife. The degrees of freedom are Satterthwaite's (Biometrics
// 2,
// 1946) of the groups' shares, so that a statistic which hangs on one group has
// those of that group, times the share keep of the pairs that decide it: 1, or what
// is left after trimming. Every x must be shared by at least [MinInGroup] pairs.
//
// The statistic is called once a pair with one pair left out; it must not keep
// or change its arguments. It should be smooth, such as a mean, a trimmed mean,
// a ratio or the slope of a least squares line. The level holds where y
// scatters about normally; rare far values that the sample may lack break it.
func JackknifeByGroup(x, y []float64, statistic func(x, y []float64) float64, keep, level float64) (Interval, error) {
	const doing = "computing interval by groups"
	x, y, groups, err := grouped(doing, x, y)
	if err != nil {
		return Interval{}, err
	}
	estimate := statistic(x, y)
	without := make([]float64, len(x))
	sx, sy := make([]float64, len(x)-1), make([]float64, len(x)-1)
	for i := range x {
		copy(sx, x[:i])
		copy(sx[i:], x[i+1:])
		copy(sy, y[:i])
		copy(sy[i:], y[i+1:])
		without[i] = statistic(sx, sy)
	}
	if err := checkResult(doing, append(slices.Clone(without), estimate)...); err != nil {
		return Interval{}, err
	}
	variance, df := varianceByGroup(without, groups)
	n := float64(len(x))
	c := Contrast{estimate, math.Sqrt(variance) * (n - 1) / n, max(1, df*keep), MethodJackknife}
	return c.Interval(level)
}

// grouped checks what an interval by groups is given, and sorts the pairs by x;
// groups are how many share each x.
func grouped(doing string, x, y []float64) (sx, sy []float64, groups []int, err error) {
	if err := checkPairs(doing, x, y, MinInGroup); err != nil {
		return nil, nil, nil, err
	}
	sx, sy = sortedPairs(x, y)
	groups = tieSizes(sx)
	if least := slices.Min(groups); least < MinInGroup {
		return nil, nil, nil, tooFew(doing+": group of equal x", least, MinInGroup)
	}
	return sx, sy, groups, nil
}

// tieSizes returns how many values share each distinct value, in its order.
func tieSizes(xs []float64) (sizes []int) {
	s := sorted(xs)
	for i, x := range s {
		if i == 0 || x != s[i-1] {
			sizes = append(sizes, 0)
		}
		sizes[len(sizes)-1]++
	}
	return sizes
}

// varianceByGroup is the variance of the sum of terms that scatter within
// groups that follow each other, with Satterthwaite's degrees of freedom, at
// least 1.
func varianceByGroup(terms []float64, groups []int) (variance, df float64) {
	below := 0.0
	for _, g := range groups {
		own := terms[:g]
		terms = terms[g:]
		share := squaresAbout(own, mean(own)) * float64(g) / float64(g-1)
		variance += share
		below += share * share / float64(g-1)
	}
	if below == 0 {
		return variance, 1
	}
	return variance, max(1, variance*variance/below)
}
