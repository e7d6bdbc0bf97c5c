package stats

import (
	"cmp"
	"math"
	"slices"
)

// ranks returns the rank of each value, 1 for the smallest, in the order of the
// input. Equal values share the average of the ranks that they take up.
func ranks(xs []float64) []float64 {
	s := sorted(xs)
	out := make([]float64, len(xs))
	for i, x := range xs {
		below, _ := slices.BinarySearch(s, x)
		upTo, _ := slices.BinarySearch(s, math.Nextafter(x, math.Inf(1)))
		out[i] = float64(below+upTo+1) / 2
	}
	return out
}

// Correlation is the outcome of a test of a trend.
type Correlation struct {
	Coefficient float64 // -1 … 1
	P           float64 // two-sided p value of "no trend"
}

// minForCorrelation is where a correlation can first be anything but ±1.
const minForCorrelation = 3

// maxExactRanks is the sample size up to which the null distribution of a trend
// is computed exactly; beyond, the normal approximation is off by less than
// 0.0004.
const maxExactRanks = 200

// Trend tests at least three values in the order of their measurement for a
// monotone trend, by Mann's test (Econometrica 13, 1945): Kendall's tau-b of
// the values against their position. The sign of the coefficient is the
// direction of the trend, zero where as many pairs rise as fall. P is exact up
// to 200 values, ties included, and above from the normal approximation with
// the tie-corrected variance (Kendall, Rank Correlation Methods, 1970).
func Trend(xs []float64) (Correlation, error) {
	const doing = "testing for a trend"
	if err := checkValues(doing, xs, minForCorrelation); err != nil {
		return Correlation{}, err
	}
	if err := checkVarying(doing, "value", xs); err != nil {
		return Correlation{}, err
	}
	n, s := len(xs), risingPairs(xs)
	groups, all := tieSizes(xs), n*(n-1)/2
	pairs, variance := all, tieVariance(n)
	for _, g := range groups {
		pairs -= g * (g - 1) / 2
		variance -= tieVariance(g)
	}
	c := Correlation{Coefficient: min(max(float64(s)/math.Sqrt(float64(all)*float64(pairs)), -1), 1)}
	tail := 0.0
	if n > maxExactRanks {
		tail = NormalCDF((1 - math.Abs(float64(s))) / math.Sqrt(variance/18))
	} else {
		// So many pairs or fewer are in the rarer order
		for _, p := range concordantPMF(groups, pairs)[:(pairs-max(s, -s))/2+1] {
			tail += p
		}
	}
	c.P = min(1, 2*tail)
	return c, checkResult(doing, c.Coefficient, c.P)
}

// risingPairs is how many more pairs of values rise than fall in their order.
//
// A binary indexed tree counts the smaller values before each, since a step may
// have 10,000 files, of which all pairs are 50 million.
func risingPairs(xs []float64) (s int) {
	distinct := slices.Compact(slices.Sorted(slices.Values(xs)))
	tree := make([]int, len(distinct)+1)
	count := func(below int) (n int) { // of the values so far that have a rank below this one
		for ; below > 0; below &= below - 1 {
			n += tree[below]
		}
		return n
	}
	for i, x := range xs {
		rank, _ := slices.BinarySearch(distinct, x)
		s += count(rank) - (i - count(rank+1))
		for at := rank + 1; at < len(tree); at += at & -at {
			tree[at]++
		}
	}
	return s
}

// tieVariance is t(t-1)(2t+5), by which groups of t enter the variance of S
// over 18.
func tieVariance(t int) float64 {
	f := float64(t)
	return f * (f - 1) * (2*f + 5)
}

// concordantPMF is the null distribution of the number J of concordant pairs: n
// values in random order are dealt to groups of the given sizes, and J counts
// the pairs from different groups with values in the order of their groups, of
// which there are so many pairs. With the sizes of ties as groups, Kendall's S
// against positions is 2·J less the number of pairs.
//
// It multiplies out the generating function of J, the q-multinomial
// coefficient [n]! / ([g₁]!·[g₂]!·…) (Terpstra 1952; for two groups Mann and
// Whitney 1947), one factor (1-q^a)/(1-q^i)·i/a at a time. After every factor
// the polynomial is itself such a distribution, so its terms do not grow, and
// the rounding stays near 1e-16 of the whole.
func concordantPMF(groups []int, pairs int) []float64 {
	p := make([]float64, pairs+1)
	p[0] = 1
	before, top := 0, 0
	for _, g := range groups {
		for i := 1; i <= g && before > 0; i++ {
			a := before + i
			top += before
			half, scale := top/2, float64(i)/float64(a)
			for k := half; k >= a; k-- {
				p[k] -= p[k-a]
			}
			for k := i; k <= half; k++ {
				p[k] += p[k-i]
			}
			for k := 0; k <= half; k++ { // the upper half follows, since J is symmetric
				p[k] = max(0, p[k]*scale)
				p[top-k] = p[k]
			}
		}
		before += g
	}
	return p
}

// Spearman returns Spearman's rank correlation of at least three pairs, -1 … 1:
// the correlation of their average ranks.
func Spearman(x, y []float64) (float64, error) {
	const doing = "computing Spearman correlation"
	if err := checkPairs(doing, x, y, minForCorrelation); err != nil {
		return 0, err
	}
	if err := cmp.Or(checkVarying(doing, "value", x), checkVarying(doing, "value", y)); err != nil {
		return 0, err
	}
	x, y = ranks(x), ranks(y)
	mx, my := mean(x), mean(y)
	var sxy, sxx, syy float64
	for i := range x {
		dx, dy := x[i]-mx, y[i]-my
		sxy, sxx, syy = sxy+dx*dy, sxx+dx*dx, syy+dy*dy
	}
	return min(max(sxy/math.Sqrt(sxx*syy), -1), 1), nil
}
