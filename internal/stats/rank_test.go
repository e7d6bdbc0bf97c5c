package stats_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/stats"
)

func TestRanksByHand(t *testing.T) {
	assert.Equal(t, []float64{4, 1, 2.5, 2.5, 5}, must(stats.Ranks([]float64{30, 10, 20, 20, 99}))(t))
	assert.Equal(t, []float64{2, 2, 2}, must(stats.Ranks([]float64{7, 7, 7}))(t))
}

func TestKendallByHand(t *testing.T) {
	up := []float64{1, 2, 3, 4, 5}
	k := must(stats.Kendall(up, up))(t)
	assert.Equal(t, 1.0, k.Coefficient)
	assert.InDelta(t, 2.0/120, k.P, 1e-14)
	assert.Equal(t, stats.ByExact, k.By)

	// One exchange: nine pairs rise, one falls; 5 of 120 orders are as near to a
	// sorted one, and as many to a reversed one.
	k = must(stats.Kendall(up, []float64{2, 1, 3, 4, 5}))(t)
	assert.InDelta(t, 0.8, k.Coefficient, 1e-14)
	assert.InDelta(t, 10.0/120, k.P, 1e-14)

	// Ties in one: S = 5 of 5 comparable pairs; tau-b = 5/√(5·6).
	k = must(stats.Kendall([]float64{1, 1, 2, 3}, []float64{1, 2, 3, 4}))(t)
	assert.InDelta(t, 5/5.477225575, k.Coefficient, 1e-9)
	assert.InDelta(t, 2.0/12, k.P, 1e-14)

	// Ties in both: all 24 rearrangements of y, of which S reaches ±4 in 4 + 4.
	k = must(stats.Kendall([]float64{1, 1, 2, 2}, []float64{5, 5, 6, 6}))(t)
	assert.Equal(t, stats.ByPermutation, k.By)
	assert.InDelta(t, 1, k.Coefficient, 1e-14)
	assert.InDelta(t, 8.0/24, k.P, 1e-14)
}

// TestKendallTiedNormal holds against R's cor.test, whose tie-corrected
// variance is worked out here: without ties it is n(n-1)(2n+5)/18.
func TestKendallTiedNormal(t *testing.T) {
	x := []float64{1, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	y := []float64{1, 2, 2, 3, 5, 4, 6, 8, 7, 9}
	k := must(stats.Kendall(x, y))(t)
	assert.Equal(t, stats.ByNormal, k.By)
	// Of 45 pairs one is tied in x, one in y, two fall: S = 41 - 2 = 39.
	// Variance: (2250 - 18 - 18)/18 + 2·2/(2·90) = 123.0222.
	assert.InDelta(t, 39.0/44, k.Coefficient, 1e-12)
	assert.InDelta(t, 2*stats.NormalCDF(-38/11.0915383), k.P, 1e-9)
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
	assert.Equal(t, stats.ByPermutation == tr.By, false)
	assert.Less(t, tr.P, 1e-10)
}

// TestSpearmanByHand takes write speed against compression rate of five storages
// (12 Dec 2024): speeds 7.69, 7.35, 3.61, 2.26, 1.35 and rates 2.786, 1.605,
// 2.657, 1.479, 0.920 have ranks 5 4 3 2 1 and 5 3 4 2 1, so rho = 1 - 6·2/120.
func TestSpearmanByHand(t *testing.T) {
	s := must(stats.Spearman([]float64{7.69, 7.35, 3.61, 2.26, 1.35}, []float64{2.786, 1.605, 2.657, 1.479, 0.920}))(t)
	assert.InDelta(t, 0.9, s.Coefficient, 1e-12)
	assert.InDelta(t, 10.0/120, s.P, 1e-12) // table of Olds (1938): P(rho ≥ 0.9) = 0.0417
	assert.Equal(t, stats.ByPermutation, s.By)

	ten := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	perfect := must(stats.Spearman(ten, ten))(t)
	assert.Equal(t, stats.ByStudent, perfect.By)
	assert.InEpsilon(t, 2.0/3628800, perfect.P, 1e-9)
}

func TestMannWhitneyByHand(t *testing.T) {
	m := must(stats.MannWhitneyU([]float64{4, 5, 6}, []float64{1, 2, 3}))(t)
	assert.Equal(t, 9.0, m.U)
	assert.Equal(t, 1.0, m.Superiority)
	assert.InDelta(t, 0.1, m.P, 1e-14)

	// Ties: of the 10 ways to choose 2 of {1, 2, 2, 3, 3} only {3, 3} has the
	// rank sum 9 or more, and it is the one seen.
	m = must(stats.MannWhitneyU([]float64{3, 3}, []float64{1, 2, 2}))(t)
	assert.Equal(t, stats.ByPermutation, m.By)
	assert.InDelta(t, 0.2, m.P, 1e-14)
	back := must(stats.MannWhitneyU([]float64{1, 2, 2}, []float64{3, 3}))(t)
	assert.InDelta(t, m.P, back.P, 1e-14)
	assert.Equal(t, 6-m.U, back.U)

	// Lopsided ties, where doubling the wrong tail is wrong: rank sums of one of
	// {1, 1, 2} against the rest are 1.5, 1.5, 3.
	assert.InDelta(t, 2.0/3, must(stats.MannWhitneyU([]float64{2}, []float64{1, 1}))(t).P, 1e-14)
	assert.Equal(t, 1.0, must(stats.MannWhitneyU([]float64{1, 1, 1}, []float64{1, 1}))(t).P)
}

func TestHodgesLehmann(t *testing.T) {
	a, b := []float64{11, 12, 13, 14}, []float64{1, 2, 3, 4}
	assert.Equal(t, 10.0, must(stats.HodgesLehmann(a, b))(t))
	iv := must(stats.HodgesLehmannInterval(a, b, 0.95))(t)
	assert.InDelta(t, 1-2.0/70, iv.Level, 1e-14)
	assert.Equal(t, [2]float64{7, 13}, [2]float64{iv.Low, iv.High})

	_, err := stats.HodgesLehmannInterval(a[:3], b[:3], 0.95)
	var few *stats.TooFewError
	require.ErrorAs(t, err, &few)
	assert.Equal(t, 4, few.Need)
	_, err = stats.HodgesLehmann(make([]float64, 4000), make([]float64, 4000))
	require.ErrorIs(t, err, stats.ErrTooMany)
}

// TestLargeSamplesSayThatTheyApproximate: above 200 points the normal
// approximation takes over, with nearly the interval that the exact
// distribution gave just before.
func TestLargeSamplesSayThatTheyApproximate(t *testing.T) {
	width := map[int]float64{}
	for _, n := range []int{200, 201} {
		x, y := make([]float64, n), make([]float64, n)
		for i := range x {
			x[i] = float64(i)
			y[i] = 2*x[i] + 9*stats.NormalQuantile((float64((i*89)%199)+0.5)/199)
		}
		f := must(stats.FitTheilSen(x, y))(t)
		assert.InDelta(t, 2, f.Slope, 0.05)
		assert.InDelta(t, 200, f.At(100), 3)
		iv := must(f.SlopeInterval(0.95))(t)
		width[n] = iv.High - iv.Low
		assert.InDelta(t, 0.95, iv.Level, 0.001)
		shift := must(stats.HodgesLehmannInterval(x[:100], y[:n-100], 0.95))(t)
		if n > 200 {
			assert.Equal(t, stats.MethodSenNormal, iv.Method)
			assert.Equal(t, stats.MethodShiftNormal, shift.Method)
		} else {
			assert.Equal(t, stats.MethodSen, iv.Method)
			assert.Equal(t, stats.MethodShift, shift.Method)
		}
	}
	assert.InEpsilon(t, width[200], width[201], 0.05)
}
