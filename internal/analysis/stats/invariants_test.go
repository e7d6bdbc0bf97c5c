package stats_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"dmgbench/internal/analysis/stats"
)

// Values of four decimal digits: far from rounding, with ties now and then.
func value() *rapid.Generator[float64] {
	return rapid.Map(rapid.IntRange(1, 10_000), func(i int) float64 { return float64(i) / 100 })
}

func sample(t *rapid.T, label string, least int) []float64 {
	return rapid.SliceOfN(value(), least, 40).Draw(t, label)
}

func scaled(xs []float64, by, plus float64) []float64 {
	out := make([]float64, len(xs))
	for i, x := range xs {
		out[i] = by*x + plus
	}
	return out
}

// near compares to twelve digits of the larger magnitude involved.
func near(t *rapid.T, want, got float64, about string) {
	if math.Abs(want-got) > 1e-9*max(1, math.Abs(want)) {
		t.Fatalf("%s: want %v, got %v", about, want, got)
	}
}

func TestEstimatesFollowUnits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := sample(t, "xs", 6)
		by := rapid.SampledFrom([]float64{0.001, 0.5, 1024, 1e6}).Draw(t, "by")
		plus := rapid.SampledFrom([]float64{0, 3}).Draw(t, "plus")
		share := rapid.Float64Range(0, 0.3).Draw(t, "share")
		ys := scaled(xs, by, plus)
		for name, f := range map[string]func([]float64) (float64, error){
			"mean": stats.Mean, "median": stats.Median,
			"trimmed":  func(v []float64) (float64, error) { return stats.TrimmedMean(v, share) },
			"quantile": func(v []float64) (float64, error) { return stats.Quantile(v, share) },
			"low":      func(v []float64) (float64, error) { iv, err := stats.MedianInterval(v, 0.9); return iv.Low, err },
			"t low":    func(v []float64) (float64, error) { iv, err := stats.MeanInterval(v, 0.9); return iv.Low, err },
		} {
			a, err := f(xs)
			require.NoError(t, err, name)
			b, err := f(ys)
			require.NoError(t, err, name)
			near(t, by*a+plus, b, name)
		}
		sd, mad := must1(t, stats.StdDev, xs), must1(t, stats.MAD, xs)
		near(t, by*sd, must1(t, stats.StdDev, ys), "standard deviation")
		near(t, by*mad, must1(t, stats.MAD, ys), "MAD")
	})
}

func must1(t *rapid.T, f func([]float64) (float64, error), xs []float64) float64 {
	v, err := f(xs)
	require.NoError(t, err)
	return v
}

func TestEstimatesLieInsideTheirIntervals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := sample(t, "xs", 6)
		level := rapid.Float64Range(0.01, 0.96).Draw(t, "level")
		iv, err := stats.MedianInterval(xs, level)
		require.NoError(t, err)
		assert.True(t, iv.Contains(must1(t, stats.Median, xs)), "median %v", iv)
		assert.GreaterOrEqual(t, iv.Level, level-1e-12)
	})
}

// TestOrderOfInputDoesNotMatter also checks that the input is left as it was.
func TestOrderOfInputDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(20, 30).Draw(t, "n")
		x := rapid.SliceOfN(value(), n, n).Draw(t, "x")
		y := rapid.SliceOfN(value(), n, n).Draw(t, "y")
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		order = rapid.Permutation(order).Draw(t, "order")
		px, py := make([]float64, n), make([]float64, n)
		for i, o := range order {
			px[i], py[i] = x[o], y[o]
		}
		bx, by := slices.Clone(x), slices.Clone(y)
		a, b := everything(x, y), everything(px, py)
		assert.Equal(t, bx, x)
		assert.Equal(t, by, y)
		require.Len(t, b, len(a))
		for i := range a {
			near(t, a[i], b[i], "everything")
		}
		assert.Equal(t, a, everything(x, y), "the same bits twice")
	})
}

func TestTheilSenFollowsUnits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := sample(t, "x", 6)
		y := rapid.SliceOfN(value(), len(x), len(x)).Draw(t, "y")
		f, err := stats.FitTheilSen(x, y)
		if err != nil {
			require.ErrorIs(t, err, stats.ErrNoSpread)
			return
		}
		g, err := stats.FitTheilSen(scaled(x, 8, 0), scaled(y, -3, 5))
		require.NoError(t, err)
		near(t, f.Slope*-3/8, g.Slope, "slope")
		near(t, f.Intercept*-3+5, g.Intercept, "intercept")
	})
}

func TestLineResidualsAreOrthogonal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := sample(t, "x", 3)
		y := rapid.SliceOfN(value(), len(x), len(x)).Draw(t, "y")
		w := rapid.SliceOfN(value(), len(x), len(x)).Draw(t, "w")
		l, err := stats.FitWeightedLine(x, y, w)
		if err != nil {
			require.ErrorIs(t, err, stats.ErrNoSpread)
			return
		}
		s, sx, size := 0.0, 0.0, 0.0
		for i := range x {
			r := y[i] - l.At(x[i])
			s += w[i] * r
			sx += w[i] * r * x[i]
			size += w[i] * 1e4
		}
		assert.Less(t, math.Abs(s), 1e-10*size)
		assert.Less(t, math.Abs(sx), 1e-10*size)
	})
}

func TestHolmIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ps := rapid.SliceOfN(rapid.Float64Range(0, 1), 1, 20).Draw(t, "ps")
		adjusted := stats.Holm(ps)
		for i := range ps {
			assert.GreaterOrEqual(t, adjusted[i], ps[i])
			assert.LessOrEqual(t, adjusted[i], min(1, float64(len(ps))*ps[i]))
			for j := range ps {
				if ps[i] <= ps[j] {
					assert.LessOrEqual(t, adjusted[i], adjusted[j])
				}
			}
		}
	})
}

func TestTrendSeesOnlyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := sample(t, "a", 3)
		k, err := stats.Trend(a)
		if err != nil {
			require.ErrorIs(t, err, stats.ErrNoSpread)
			return
		}
		ke, err := stats.Trend(exps(a))
		require.NoError(t, err)
		assert.Equal(t, k, ke)
		down, err := stats.Trend(scaled(a, -1, 0))
		require.NoError(t, err)
		near(t, -k.Coefficient, down.Coefficient, "tau")
		near(t, k.P, down.P, "P of tau")
	})
}

// exps is strictly increasing and keeps ties.
func exps(xs []float64) []float64 {
	out := make([]float64, len(xs))
	for i, x := range xs {
		out[i] = math.Exp(x / 10)
	}
	return out
}
