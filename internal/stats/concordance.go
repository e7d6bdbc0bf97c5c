package stats

import "math"

// maxExactRanks is the sample size up to which null distributions of rank
// statistics are computed exactly; beyond, the normal approximation is off by
// less than 0.0004.
const maxExactRanks = 200

// concordance is the null distribution of the number J of concordant pairs: n
// values in random order are dealt to groups of the given sizes, and J counts
// the pairs from different groups whose values are in the order of their
// groups. It answers three questions at once:
//
//   - two groups: the Mann–Whitney U;
//   - groups of one: Kendall's S, which is 2·J less the number of pairs;
//   - groups of equal x: Kendall's S, and so Theil–Sen, with ties in x.
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
// the polynomial is itself such a distribution, so nothing grows, and the
// rounding stays near 1e-16 of the whole.
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

// exact reports whether the distribution is the exact one.
func (c concordance) exact() bool { return c.lower != nil }

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
