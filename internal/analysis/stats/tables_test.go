package stats_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/analysis/stats"
)

func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

func TestLocationByHand(t *testing.T) {
	xs := []float64{9, 1, 4, 100, 2, 3, 7, 6, 5, 8}
	before := append([]float64(nil), xs...)
	assert.Equal(t, 14.5, must(stats.Mean(xs))(t))
	assert.Equal(t, 5.5, must(stats.Median(xs))(t))
	assert.Equal(t, 5.5, must(stats.TrimmedMean(xs, 0.2))(t))
	assert.Equal(t, 5.5, must(stats.TrimmedMean(xs, 0.1))(t))
	assert.Equal(t, 14.5, must(stats.TrimmedMean(xs, 0.09))(t))
	assert.Equal(t, 5.5, must(stats.TrimmedMean(xs, 0.4999))(t))
	assert.Equal(t, 1.5, must(stats.TrimmedMean([]float64{1, 2}, 0.4999999999999999))(t), "never cut to nothing")
	assert.Equal(t, 2.5, must(stats.MAD(xs))(t))
	assert.Equal(t, before, xs, "input untouched")

	assert.Equal(t, 3.0, must(stats.Median([]float64{5, 3, 1}))(t))
	assert.InDelta(t, math.Sqrt(32.0/7), must(stats.StdDev([]float64{2, 4, 4, 4, 5, 5, 7, 9}))(t), 1e-14)
	assert.Zero(t, must(stats.StdDev([]float64{0.1, 0.1, 0.1}))(t))
	assert.InEpsilon(t, math.MaxFloat64/2, must(stats.Mean([]float64{math.MaxFloat64, math.MaxFloat64, math.MaxFloat64, -math.MaxFloat64}))(t), 1e-15)
	assert.Equal(t, 1.0, must(stats.Mean([]float64{1e100, 2, -1e100, 1}))(t)*4/3)
}

// TestTrimmedMeanCutsWholeShares: 29 % of 100 is 28.999… in binary.
func TestTrimmedMeanCutsWholeShares(t *testing.T) {
	xs := make([]float64, 100)
	xs[28], xs[29] = -1e9, 1 // sorted: -1e9, then zeros, then 1
	for i := range 28 {
		xs[i] = -1e10
	}
	assert.InDelta(t, 0, must(stats.TrimmedMean(xs, 0.29))(t), 1e-12)
	assert.Less(t, must(stats.TrimmedMean(xs, 0.28))(t), -1e6)
}

// TestQuantileType7 holds against R: quantile(c(1, 3, 4, 10), type = 7).
func TestQuantileType7(t *testing.T) {
	xs := []float64{10, 1, 4, 3}
	for p, want := range map[float64]float64{0: 1, 0.25: 2.5, 0.5: 3.5, 0.75: 5.5, 0.9: 8.2, 1: 10} {
		assert.InDelta(t, want, must(stats.Quantile(xs, p))(t), 1e-12, "p %v", p)
	}
}

func TestMedianIntervalHasItsRealLevel(t *testing.T) {
	for _, c := range []struct {
		n         int
		level     float64
		low, high float64
	}{
		{6, 0.96875, 1, 6},
		{7, 0.984375, 1, 7},
		{8, 0.9921875, 1, 8},
		{9, 0.9609375, 2, 8},
		{10, 0.978515625, 2, 9},
		{16, 0.9787292480469, 4, 13},
		{20, 0.9586105346680, 6, 15},
	} {
		xs := make([]float64, c.n)
		for i := range xs {
			xs[i] = float64(c.n - i)
		}
		iv := must(stats.MedianInterval(xs, 0.95))(t)
		assert.InDelta(t, c.level, iv.Level, 1e-12, "n %d", c.n)
		assert.Equal(t, [2]float64{c.low, c.high}, [2]float64{iv.Low, iv.High}, "n %d", c.n)
		assert.Equal(t, stats.MethodOrder, iv.Method)
	}
	// Six values have 31/32 exactly; asking for just that must not be refused.
	assert.Equal(t, 0.96875, must(stats.MedianInterval([]float64{1, 2, 3, 4, 5, 6}, 0.96875))(t).Level)
	_, err := stats.MedianInterval([]float64{1, 2, 3, 4, 5}, 0.95)
	require.ErrorIs(t, err, stats.ErrTooFew)
	assert.EqualError(t, err, "computing median interval: n is 5, need at least 6: too few values")
}

func TestOutliersLikeHyperfine(t *testing.T) {
	// Median 10, MAD 1: the threshold lies at 10 ± 14.826.
	base := []float64{8, 9, 9, 10, 11, 11, 12}
	assert.Empty(t, must(stats.Outliers(append(base, -4.8, 24.8)))(t))
	assert.Equal(t, []int{7, 8}, must(stats.Outliers(append(base, -4.83, 24.83)))(t))
	// MAD 0: whatever differs from the majority.
	assert.Equal(t, []int{2}, must(stats.Outliers([]float64{5, 5, 5.0001, 5}))(t))
	assert.Empty(t, must(stats.Outliers([]float64{5, 5, 5}))(t))
}

func TestHolmByHand(t *testing.T) {
	// R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm").
	assert.InDeltaSlice(t, []float64{0.03, 0.06, 0.06, 0.02},
		stats.Holm([]float64{0.01, 0.04, 0.03, 0.005}), 1e-15)
	assert.Equal(t, []float64{1, 1}, stats.Holm([]float64{0.9, 0.6}))
	assert.Empty(t, stats.Holm(nil))
	assert.Equal(t, []float64{0.04, 1}, stats.Holm([]float64{0.02, math.NaN()}))
}

// TestWelchByHand: means 3 and 6, variances 2.5 and 10, five values each.
func TestWelchByHand(t *testing.T) {
	w := must(stats.WelchContrast([]float64{1, 2, 3, 4, 5}, []float64{2, 4, 6, 8, 10}))(t)
	assert.InDelta(t, -3, w.Estimate, 1e-12)
	assert.InDelta(t, -1.8973665961, w.Estimate/w.SE, 1e-9)
	assert.InDelta(t, 5.882352941, w.DF, 1e-9)
	assert.InDelta(t, 0.10753, w.P(0), 1e-5) // R: t.test
}
