package stats

import (
	"cmp"
	"fmt"
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

// Trend tests at least three values in the order of their measurement for a
// monotone trend, by Mann's test (Econometrica 13, 1945): Kendall's tau-b of
// the values against their position. The sign of the coefficient is the
// direction of the trend, zero where as many pairs rise as fall. P is exact up
// to 200 values, ties included, and above from the normal approximation with
// the tie-corrected variance (Kendall, Rank Correlation Methods, 1970).
func Trend(xs []float64) (Correlation, error) {
	const doing = "testing for a trend"
	if err := checkVarying(doing, xs); err != nil {
		return Correlation{}, err
	}
	n, s := len(xs), kendallS(xs)
	null := newConcordance(tieSizes(xs))
	tau := float64(s) / math.Sqrt(float64(n*(n-1)/2)*float64(null.pairs))
	c := Correlation{Coefficient: min(max(tau, -1), 1)}
	c.P = null.twoSided((s + null.pairs) / 2)
	return c, checkResult(doing, c.Coefficient, c.P)
}

// Spearman returns Spearman's rank correlation of at least three pairs, -1 … 1:
// the correlation of their average ranks.
func Spearman(x, y []float64) (float64, error) {
	const doing = "computing Spearman correlation"
	if err := checkPairs(doing, x, y, minForCorrelation); err != nil {
		return 0, err
	}
	if err := cmp.Or(checkVarying(doing, x), checkVarying(doing, y)); err != nil {
		return 0, err
	}
	return pearson(ranks(x), ranks(y)), nil
}

// checkVarying refuses samples that are too small or do not vary.
func checkVarying(doing string, xs []float64) error {
	if err := checkValues(doing, xs, minForCorrelation); err != nil {
		return err
	}
	if constant(xs) {
		return fmt.Errorf("%s: every value is %v: %w", doing, xs[0], ErrNoSpread)
	}
	return nil
}

// kendallS is the number of pairs of values that rise with their position less
// that of pairs that fall.
func kendallS(xs []float64) int {
	s := 0
	for i := range xs {
		for j := range i {
			s += cmp.Compare(xs[i], xs[j])
		}
	}
	return s
}

// pearson is the correlation of ranks, which are small and vary.
func pearson(x, y []float64) float64 {
	mx, my := mean(x), mean(y)
	var sxy, sxx, syy float64
	for i := range x {
		dx, dy := x[i]-mx, y[i]-my
		sxy, sxx, syy = sxy+dx*dy, sxx+dx*dx, syy+dy*dy
	}
	return min(max(sxy/math.Sqrt(sxx*syy), -1), 1)
}

// maxExactRanks is the sample size up to which null distributions of rank
// statistics are computed exactly; beyond, the normal approximation is off by
// less than 0.0004.
const maxExactRanks = 200

// concordance is the null distribution of the number J of concordant pairs: n
// values in random order are dealt to groups of the given sizes, and J counts
// the pairs from different groups with values in the order of their groups.
// With the sizes of ties as groups, Kendall's S against positions is 2·J less
// the number of pairs.
type concordance struct {
	pairs int       // pairs from different groups, the largest J
	lower []float64 // lower[k] = P(J ≤ k) for k up to the middle; nil where the normal approximation is used
	sd    float64
}

func newConcordance(groups []int) concordance {
	n, same, variance := 0, 0, 0.0
	for _, g := range groups {
		n += g
		same += g * (g - 1) / 2
		variance -= tieVariance(g)
	}
	variance += tieVariance(n)
	c := concordance{pairs: n*(n-1)/2 - same, sd: math.Sqrt(variance / 72)}
	if n <= maxExactRanks {
		c.lower = cumulate(concordantPMF(groups, c.pairs))
	}
	return c
}

// tieVariance is t(t-1)(2t+5), by which groups of t enter the variance of S,
// which is four times that of J, over 18.
func tieVariance(t int) float64 {
	f := float64(t)
	return f * (f - 1) * (2*f + 5)
}

// concordantPMF multiplies out the generating function of J, the q-multinomial
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
			for k := top; k >= a; k-- {
				p[k] -= p[k-a]
			}
			for k := i; k <= top; k++ {
				p[k] += p[k-i]
			}
			scale := float64(i) / float64(a)
			for k := 0; k <= top/2; k++ { // the lower half is the precise one; J is symmetric
				p[k] = max(0, p[k]*scale)
				p[top-k] = p[k]
			}
		}
		before += g
	}
	return p
}

func cumulate(p []float64) []float64 {
	lower := make([]float64, len(p)/2+1)
	s := 0.0
	for k := range lower {
		if k < len(p) {
			s += p[k]
		}
		lower[k] = min(s, 1)
	}
	return lower
}

// cdf is P(J ≤ k).
func (c concordance) cdf(k int) float64 {
	switch {
	case k < 0:
		return 0
	case k >= c.pairs:
		return 1
	case c.lower == nil:
		return NormalCDF((float64(k) + 0.5 - float64(c.pairs)/2) / c.sd)
	case k < len(c.lower):
		return c.lower[k]
	}
	return 1 - c.cdf(c.pairs-k-1)
}

// twoSided is twice the smaller tail at k, at most 1.
func (c concordance) twoSided(k int) float64 {
	return min(1, 2*c.cdf(min(k, c.pairs-k)))
}
