package stats

import (
	"math"
	"slices"
)

// MinInGroup is the least number of pairs that share an x for an interval by
// groups: two would show their scatter by a single difference.
const MinInGroup = 3

// JackknifeByGroup returns the t interval of a smooth statistic of pairs whose x
// were chosen and whose y scatter about something that depends on x, by an
// amount that may depend on x: the files of a set of given sizes and their times.
//
// The variance is that of a stratified jackknife: one pair at a time is left out,
// and differences count within a group of equal x only, so that what the choice of
// x alone makes of the statistic is no scatter. Leaving out one of n moves a
// statistic by 1/(n-1) of its influence, whatever the size g of the group is, so
// that squares within a group count g/(g-1) times ((n-1)/n)². With one group that
// is the common jackknife. The degrees of freedom are Satterthwaite's (Biometrics 2,
// 1946) of the groups' shares, so that a statistic which hangs on one group has
// those of that group, times the share keep of the pairs that decide it: 1, or what
// is left after trimming. Every x must be shared by at least [MinInGroup] pairs.
//
// The statistic is called once a pair with one pair left out; it must not keep
// or change its arguments. It should be smooth, such as a mean, a trimmed mean, a
// ratio or the slope of a least squares line. The level holds where y scatters
// about normally; rare far values that the sample may lack break it.
func JackknifeByGroup(x, y []float64, statistic func(x, y []float64) float64, keep, level float64) (Interval, error) {
	const doing = "computing interval by groups"
	x, y, groups, err := grouped(doing, x, y, level)
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

// grouped checks what an interval by groups is given, and sorts the pairs by x; groups are how many share each x.
func grouped(doing string, x, y []float64, level float64) (sx, sy []float64, groups []int, err error) {
	if err := checkLevel(doing, level); err != nil {
		return nil, nil, nil, err
	}
	if err := checkPairs(doing, x, y, MinInGroup); err != nil {
		return nil, nil, nil, err
	}
	sx, sy = sortedPairs(x, y)
	groups = tieSizes(sx)
	for _, g := range groups {
		if g < MinInGroup {
			return nil, nil, nil, &TooFewError{Doing: doing + ": group of equal x", Have: g, Need: MinInGroup}
		}
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

// SlopeIntervalByGroup is [TheilSen.SlopeInterval] for errors whose size depends
// on x. The number of pairs that are steeper than a slope less that of those that
// are not, Kendall's S, has the variance that its terms show within the groups
// of equal x, each of at least [MinInGroup] points; ranks and Satterthwaite's degrees
// of freedom follow from that. x and y are those of the fit.
func (t TheilSen) SlopeIntervalByGroup(x, y []float64, level float64) (Interval, error) {
	const doing = "computing Theil-Sen slope interval by groups"
	x, y, groups, err := grouped(doing, x, y, level)
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
	k := int(math.Floor((float64(t.Pairs) - reach) / 2))
	if k < 1 {
		return Interval{}, &TooFewError{Doing: doing, Have: t.N, Need: t.N + len(groups)}
	}
	return Interval{Low: t.slopes[k-1], High: t.slopes[t.Pairs-k], Level: level, Method: MethodSenByGroup}, nil
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
