package stats

import (
	"math"
	"slices"
)

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
	shares, n := make([]float64, len(groups)), float64(len(x))
	from := 0
	for h, g := range groups {
		one := without[from : from+g]
		shares[h] = squaresAbout(one, mean(one)) * float64(g) / float64(g-1) * (n - 1) / n * (n - 1) / n
		from += g
	}
	variance, df := satterthwaite(shares, groups)
	return around(doing, estimate, math.Sqrt(variance), max(1, df*keep), level, MethodJackknife)
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

// satterthwaite adds up the groups' shares of a variance and gives the degrees
// of freedom of their sum.
func satterthwaite(shares []float64, groups []int) (variance, df float64) {
	below := 0.0
	for h, v := range shares {
		variance += v
		below += v * v / float64(groups[h]-1)
	}
	if below == 0 || variance*variance/below < 1 {
		return variance, 1
	}
	return variance, variance * variance / below
}
