package stats_test

import (
	"cmp"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/analysis/stats"
)

func TestRanksByHand(t *testing.T) {
	assert.Equal(t, []float64{4, 1, 2.5, 2.5, 5}, stats.Ranks([]float64{30, 10, 20, 20, 99}))
	assert.Equal(t, []float64{2, 2, 2}, stats.Ranks([]float64{7, 7, 7}))
}

func TestTrendByHand(t *testing.T) {
	up := must(stats.Trend([]float64{1, 2, 3, 4, 5}))(t)
	assert.Equal(t, 1.0, up.Coefficient)
	assert.InDelta(t, 2.0/120, up.P, 1e-14)

	// One exchange: nine pairs rise, one falls; 5 of 120 orders are as near to a
	// sorted one, and as many to a reversed one.
	k := must(stats.Trend([]float64{2, 1, 3, 4, 5}))(t)
	assert.InDelta(t, 0.8, k.Coefficient, 1e-14)
	assert.InDelta(t, 10.0/120, k.P, 1e-14)

	// A tie: S = 5 of 5 comparable pairs; tau-b = 5/√(5·6).
	k = must(stats.Trend([]float64{1, 1, 2, 3}))(t)
	assert.InDelta(t, 5/5.477225575, k.Coefficient, 1e-9)
	assert.InDelta(t, 2.0/12, k.P, 1e-14)
}

// TestTrendOfManyTiedValues holds the normal approximation, from 201 values on, against its formula: the variance of S is
// n(n-1)(2n+5)/18 less the same of each tie.
func TestTrendOfManyTiedValues(t *testing.T) {
	xs, s, ties := make([]float64, 250), 0, map[float64]int{}
	for i := range xs {
		xs[i] = float64((i*71)%50 + i/60) // 0 … 53, slowly rising
		ties[xs[i]]++
		for j := range i {
			s += cmp.Compare(xs[i], xs[j])
		}
	}
	v := func(n int) float64 { return float64(n*(n-1)*(2*n+5)) / 18 }
	variance, pairs := v(len(xs)), 250*249/2
	for _, n := range ties {
		variance, pairs = variance-v(n), pairs-n*(n-1)/2
	}
	got := must(stats.Trend(xs))(t)
	assert.InDelta(t, float64(s)/math.Sqrt(float64(pairs)*250*249/2), got.Coefficient, 1e-12)
	assert.InEpsilon(t, 2*stats.NormalCDF(-(math.Abs(float64(s))-1)/math.Sqrt(variance)), got.P, 1e-9)
}

func TestTrend(t *testing.T) {
	assert.Negative(t, must(stats.Trend([]float64{9, 8, 8.5, 7, 6, 5}))(t).Coefficient)
	assert.Positive(t, must(stats.Trend([]float64{1, 2, 2, 2, 3}))(t).Coefficient)
	flat := must(stats.Trend([]float64{1, 2, 2, 1}))(t)
	assert.Zero(t, flat.Coefficient)
	assert.Equal(t, 1.0, flat.P)
	_, err := stats.Trend([]float64{4, 4, 4})
	require.ErrorIs(t, err, stats.ErrNoSpread)

	drift := make([]float64, 160) // a gold standard run that slows steadily
	for i := range drift {
		drift[i] = -float64(i) + 30*float64(i%7)
	}
	tr := must(stats.Trend(drift))(t)
	assert.Less(t, tr.P, 1e-10)
}

// TestSpearmanByHand takes write speed against compression rate of five storages
// (12 Dec 2024): speeds 7.69, 7.35, 3.61, 2.26, 1.35 and rates 2.786, 1.605,
// 2.657, 1.479, 0.920 have ranks 5 4 3 2 1 and 5 3 4 2 1, so rho = 1 - 6·2/120.
func TestSpearmanByHand(t *testing.T) {
	s := must(stats.Spearman([]float64{7.69, 7.35, 3.61, 2.26, 1.35}, []float64{2.786, 1.605, 2.657, 1.479, 0.920}))(t)
	assert.InDelta(t, 0.9, s, 1e-12)
	ten := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	assert.Equal(t, 1.0, must(stats.Spearman(ten, ten))(t))
}
