package stats

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBinomialHalfAgainstExactIntegers(t *testing.T) {
	for _, n := range []int{1, 2, 6, 10, 31, 160, 1000} {
		all := new(big.Int).Lsh(big.NewInt(1), uint(n))
		s := new(big.Int)
		for k := 0; k <= n; k++ {
			s.Add(s, new(big.Int).Binomial(int64(n), int64(k)))
			want, _ := new(big.Rat).SetFrac(s, all).Float64()
			require.InEpsilon(t, want, binomialHalfCDF(k, n), 1e-11, "n %d k %d", n, k)
		}
	}
}

// TestConcordanceAgainstCounting deals every arrangement of a few values to the
// groups and counts the concordant pairs one by one.
func TestConcordanceAgainstCounting(t *testing.T) {
	for _, groups := range [][]int{{1}, {3}, {1, 1}, {2, 1}, {1, 1, 1, 1, 1}, {3, 4}, {2, 2, 2}, {1, 3, 2, 1}, {5, 1, 1}} {
		var labels []int
		for g, size := range groups {
			for range size {
				labels = append(labels, g)
			}
		}
		counts, all := map[int]int{}, 0
		var deal func(k int)
		deal = func(k int) {
			if k == len(labels) {
				j := 0
				for b := range labels {
					for a := range b {
						if labels[a] < labels[b] {
							j++
						}
					}
				}
				counts[j]++
				all++
				return
			}
			for i := k; i < len(labels); i++ {
				labels[k], labels[i] = labels[i], labels[k]
				deal(k + 1)
				labels[k], labels[i] = labels[i], labels[k]
			}
		}
		deal(0)
		c := newConcordance(groups)
		sum, mean, square := 0.0, 0.0, 0.0
		for k := 0; k <= c.pairs; k++ {
			p := float64(counts[k]) / float64(all)
			sum += p
			mean += p * float64(k)
			square += p * float64(k) * float64(k)
			assert.InDelta(t, sum, c.cdf(k), 1e-13, "%v at %d", groups, k)
		}
		assert.InDelta(t, square-mean*mean, c.sd*c.sd, 1e-9, "variance of %v", groups)
	}
}

// TestConcordanceAgainstExactIntegers checks that the floating-point recurrence
// keeps its digits at the size of a gold standard run: 16 sizes of 10 files.
func TestConcordanceAgainstExactIntegers(t *testing.T) {
	for _, groups := range [][]int{{10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10}, {80, 80}, {100, 3}} {
		p := []*big.Int{big.NewInt(1)}
		before := 0
		for _, g := range groups {
			for i := 1; i <= g && before > 0; i++ { // times (1-q^a)/(1-q^i)
				a := before + i
				next := make([]*big.Int, len(p)+before)
				for k := range next {
					next[k] = new(big.Int)
					if k < len(p) {
						next[k].Add(next[k], p[k])
					}
					if k >= a && k-a < len(p) {
						next[k].Sub(next[k], p[k-a])
					}
					if k >= i {
						next[k].Add(next[k], next[k-i])
					}
				}
				p = next
			}
			before += g
		}
		all := new(big.Int)
		for _, v := range p {
			all.Add(all, v)
		}
		c := newConcordance(groups)
		require.Equal(t, len(p)-1, c.pairs)
		s := new(big.Int)
		for k, v := range p {
			s.Add(s, v)
			if k%17 != 0 {
				continue
			}
			want, _ := new(big.Rat).SetFrac(s, all).Float64()
			require.InDelta(t, want, c.cdf(k), 1e-12, "%v at %d", groups, k)
			if want > 1e-12 && want < 0.5 {
				require.InEpsilon(t, want, c.cdf(k), 1e-9, "%v at %d", groups, k)
			}
		}
	}
}

// TestConcordanceNormalMeetsExact checks the two methods against each other
// where one takes over from the other.
func TestConcordanceNormalMeetsExact(t *testing.T) {
	for _, groups := range [][]int{{100, 100}, ones(maxExactRanks)} {
		c := newConcordance(groups)
		require.NotNil(t, c.lower)
		approximate := concordance{pairs: c.pairs, sd: c.sd}
		for _, z := range []float64{-3, -2, -1, -0.3, 0, 0.5, 1.96} {
			k := int(float64(c.pairs)/2 + z*c.sd)
			assert.InDelta(t, c.cdf(k), approximate.cdf(k), 4e-4, "at %v", z)
		}
	}
	assert.Nil(t, newConcordance(ones(maxExactRanks+1)).lower)
}

func ones(n int) []int {
	g := make([]int, n)
	for i := range g {
		g[i] = 1
	}
	return g
}

func TestGeneratorIsSeededByData(t *testing.T) {
	a, b := seeded([]float64{1, 2}), seeded([]float64{1, 2})
	assert.Equal(t, a.Uint64(), b.Uint64())
	assert.NotEqual(t, seeded([]float64{1, 2}).Uint64(), seeded([]float64{1}, []float64{2}).Uint64())
	assert.Equal(t, seeded([]float64{0}).Uint64(), seeded([]float64{math.Copysign(0, -1)}).Uint64())
	// The stream itself is part of the results' reproducibility.
	assert.Equal(t, uint64(0x99df58ed4c294e0d), seeded([]float64{1, 2, 3}).Uint64())
	zs := make([]float64, 100_001)
	normals(a, zs)
	assert.InDelta(t, 0, mean(zs), 0.015)
	assert.InDelta(t, 1, stdDev(zs), 0.015)
}

func TestBreakSearchAgainstEveryFit(t *testing.T) {
	rng := seeded([]float64{4})
	x, y := make([]float64, 40), make([]float64, 40)
	for range 20 {
		normals(rng, x)
		normals(rng, y)
		for i := range x {
			x[i] = math.Round(4 * x[i])
		}
		x, y := sortedPairs(x, y)
		cuts := cutPoints(x, 3)
		least, at := math.Inf(1), 0
		for _, c := range cuts {
			l, err := FitLine(x[:c], y[:c])
			require.NoError(t, err)
			r, err := FitLine(x[c:], y[c:])
			require.NoError(t, err)
			if l.SSE+r.SSE < least {
				least, at = l.SSE+r.SSE, c
			}
		}
		one, err := FitLine(x, y)
		require.NoError(t, err)
		s := breakSearch{x: x, cuts: cuts, left: make([]float64, len(x)+1)}
		cut, gain := s.best(y)
		assert.Equal(t, at, cut)
		assert.InDelta(t, 1-least/one.SSE, gain, 1e-10)
	}
}

func TestCutPointsKeepEqualXTogether(t *testing.T) {
	assert.Equal(t, []int{5}, cutPoints([]float64{1, 1, 2, 2, 2, 3, 3, 4}, 3))
	assert.Empty(t, cutPoints([]float64{1, 1, 1, 2, 2, 3}, 3), "one x on the left has no slope")
	assert.Empty(t, cutPoints([]float64{1, 1, 2, 3, 3, 3}, 3), "one x on the right has no slope")
}
