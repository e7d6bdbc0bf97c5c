package stats

import (
	"cmp"
	"math"
	"math/big"
	"math/rand/v2"
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
		pairs, variance := pairsOf(groups)
		p := concordantPMF(groups, pairs)
		mean, square := 0.0, 0.0
		for k := range p {
			want := float64(counts[k]) / float64(all)
			mean += want * float64(k)
			square += want * float64(k) * float64(k)
			assert.InDelta(t, want, p[k], 1e-13, "%v at %d", groups, k)
		}
		assert.InDelta(t, square-mean*mean, variance/72, 1e-9, "variance of %v", groups)
	}
}

// pairsOf are the pairs of values from different groups, and 18 times the variance of Kendall's S over them.
func pairsOf(groups []int) (pairs int, variance float64) {
	n := 0
	for _, g := range groups {
		pairs += n * g
		n += g
		variance -= tieVariance(g)
	}
	return pairs, variance + tieVariance(n)
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
		pairs, _ := pairsOf(groups)
		require.Equal(t, len(p)-1, pairs)
		got, s := 0.0, new(big.Int)
		for k, v := range concordantPMF(groups, pairs)[:pairs/2+1] {
			got += v
			want, _ := new(big.Rat).SetFrac(s.Add(s, p[k]), all).Float64()
			require.InDelta(t, want, got, 1e-12, "%v at %d", groups, k)
			if want > 1e-12 {
				require.InEpsilon(t, want, got, 1e-9, "%v at %d", groups, k)
			}
		}
	}
}

// TestNormalMeetsExact checks the two methods against each other where one
// takes over from the other.
func TestNormalMeetsExact(t *testing.T) {
	for _, groups := range [][]int{{100, 100}, ones(maxExactRanks)} {
		pairs, variance := pairsOf(groups)
		pmf := concordantPMF(groups, pairs)
		for _, z := range []float64{-3, -2, -1, -0.3, 0} {
			k, lower := (pairs+int(z*math.Sqrt(variance/18)))/2, 0.0
			for _, p := range pmf[:k+1] {
				lower += p
			}
			assert.InDelta(t, lower, NormalCDF((float64(2*k-pairs)+1)/math.Sqrt(variance/18)), 4e-4, "at %v", z)
		}
	}
}

// The exact distribution serves up to maxExactRanks values, the approximation above.
func TestTrendIsExactUpToItsLimit(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for _, n := range []int{maxExactRanks, maxExactRanks + 1} {
		xs, s := make([]float64, n), 0
		for i := range xs {
			xs[i] = rng.NormFloat64()
			for j := range i {
				s += cmp.Compare(xs[i], xs[j])
			}
		}
		pairs, variance := pairsOf(ones(n))
		exact := 0.0
		for _, p := range concordantPMF(ones(n), pairs)[:(pairs-max(s, -s))/2+1] {
			exact += 2 * p
		}
		about := 2 * NormalCDF((1-math.Abs(float64(s)))/math.Sqrt(variance/18))
		require.Greater(t, math.Abs(exact-about), 1e-7)
		got, err := Trend(xs)
		require.NoError(t, err)
		assert.InDelta(t, map[bool]float64{true: exact, false: about}[n == maxExactRanks], got.P, 1e-9, "%d values", n)
	}
}

func ones(n int) []int {
	g := make([]int, n)
	for i := range g {
		g[i] = 1
	}
	return g
}

// The break is the one of all that are allowed whose lines leave the least squares: points of one x stay together, and
// each side has two of them.
func TestTwoLinesAgainstEveryFit(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for range 20 {
		x, y := make([]float64, 40), make([]float64, 40)
		for i := range x {
			x[i], y[i] = math.Round(4*rng.NormFloat64()), rng.NormFloat64()
		}
		sx, sy := sortedPairs(x, y)
		least, at := math.Inf(1), 0.0
		for c := 3; c <= len(x)-3; c++ {
			l, err := FitLine(sx[:c], sy[:c])
			r, errR := FitLine(sx[c:], sy[c:])
			if sse := l.SSE + r.SSE; err == nil && errR == nil && sx[c] != sx[c-1] && sse < least {
				least, at = sse, (sx[c-1]+sx[c])/2
			}
		}
		one, err := FitLine(x, y)
		require.NoError(t, err)
		two, err := FitTwoLines(x, y)
		require.NoError(t, err)
		assert.Equal(t, at, two.Break)
		assert.InDelta(t, 1-(1-one.R2)*least/one.SSE, two.R2, 1e-10)
	}
	two, err := FitTwoLines([]float64{1, 1, 2, 2, 2, 3, 3, 4}, []float64{1, 2, 3, 4, 5, 6, 7, 8})
	require.NoError(t, err)
	assert.Equal(t, 2.5, two.Break)
	for _, x := range [][]float64{{1, 1, 1, 2, 2, 3}, {1, 1, 2, 3, 3, 3}} {
		_, err := FitTwoLines(x, []float64{1, 2, 3, 4, 5, 6})
		require.ErrorIs(t, err, ErrNoSpread, "one x on a side has no slope")
	}
}
