package stats_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/analysis/stats"
)

func TestRefusals(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(-1)
	three := []float64{1, 2, 3}
	fine := func(_ any, err error) error { return err }
	power, err := stats.FitPower([]float64{1, 2, 3, 4}, []float64{1, 5, 6, 9})
	require.NoError(t, err)
	for _, c := range []struct {
		name string
		err  error
		want error
		text string
	}{
		{"empty mean", fine(stats.Mean(nil)), stats.ErrTooFew, "computing mean: n is 0, need at least 1: too few values"},
		{"NaN", fine(stats.Median([]float64{1, nan})), stats.ErrNotFinite, "computing median: value 1 is NaN: not a finite number"},
		{"infinity", fine(stats.MAD([]float64{inf})), stats.ErrNotFinite, "computing median absolute deviation: value 0 is -Inf: not a finite number"},
		{"one for SD", fine(stats.StdDev([]float64{1})), stats.ErrTooFew, "computing standard deviation: n is 1, need at least 2: too few values"},
		{"two for t", fine(stats.MeanInterval(three[:2], 0.95)), stats.ErrTooFew, "averaging differences: n is 2, need at least 3: too few values"},
		{"overflow", fine(stats.StdDev([]float64{-1e308, 1e308})), stats.ErrOverflow, "computing standard deviation: result out of the range of float64"},
		{"certain line", fine(power.Log.SlopeInterval(1)), stats.ErrOverflow, "computing t interval: result out of the range of float64"},
		{"certain power law", fine(power.CoefficientInterval(1)), stats.ErrOverflow, "computing t interval: result out of the range of float64"},
		{"trend of two", fine(stats.Trend(three[:2])), stats.ErrTooFew, "testing for a trend: n is 2, need at least 3: too few values"},
		{"two outliers", fine(stats.Outliers(three[:2])), stats.ErrTooFew, "looking for outliers: n is 2, need at least 3: too few values"},
		{"constant", fine(stats.Spearman(three, []float64{2, 2, 2})), stats.ErrNoSpread, "computing Spearman correlation: every value is 2: values do not vary"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.ErrorIs(t, c.err, c.want)
			assert.EqualError(t, c.err, c.text)
		})
	}
}

// TestNeedIsEnough: the size that an ErrTooFew names is one with which the same
// call succeeds, and one less is not.
func TestNeedIsEnough(t *testing.T) {
	distinct := func(n int) []float64 {
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = float64(i*i + i)
		}
		return xs
	}
	for _, level := range []float64{0.5, 0.8, 0.9, 0.95, 0.99, 0.999} {
		for name, call := range map[string]func(n int) error{
			"median": func(n int) error { _, err := stats.MedianInterval(distinct(n), level); return err },
		} {
			err := call(2)
			if err == nil {
				continue
			}
			need := 0
			_, scanned := fmt.Sscanf(err.Error(), "computing median interval: n is 2, need at least %d:", &need)
			require.NoError(t, scanned, "%s at %v", name, level)
			require.NoError(t, call(need), "%s at %v: %d", name, level, need)
			require.ErrorIs(t, call(need-1), stats.ErrTooFew, "%s at %v: %d", name, level, need-1)
		}
	}
}

// Sums that overflow are halved first.
func TestMiddleOfHugeValues(t *testing.T) {
	for _, xs := range [][]float64{{1.2e308, 1.6e308}, {-1.6e308, -1.2e308}} {
		median, err := stats.Median(xs)
		require.NoError(t, err)
		assert.InEpsilon(t, xs[0]/2+xs[1]/2, median, 1e-12)
		mean, err := stats.Mean(xs)
		require.NoError(t, err)
		assert.InEpsilon(t, median, mean, 1e-12)
	}
}

// Samples that do not vary have a certain difference.
func TestDifferenceOfSamplesThatDoNotVary(t *testing.T) {
	c, err := stats.WelchContrast([]float64{5, 5, 5}, []float64{3, 3, 3, 3})
	require.NoError(t, err)
	assert.Equal(t, stats.Contrast{Estimate: 2, DF: 5, Method: stats.MethodWelch}, c)
	assert.Zero(t, c.P(0))
	assert.Equal(t, 1.0, c.P(2))
}

// The values are those of exact sums of binomial probabilities.
func TestShareInterval(t *testing.T) {
	for _, tt := range []struct {
		k, n      int
		low, high float64
	}{
		{0, 10, 0, 0.3084971}, {10, 10, 0.6915029, 1}, {5, 10, 0.1870860, 0.8129140}, {3, 60, 0.0104323, 0.1392432},
		{1, 1, 0.025, 1}, {0, 1, 0, 0.975}, {1, 1000, 0.0000253, 0.0055589},
	} {
		iv := stats.ShareInterval(tt.k, tt.n, 0.95)
		assert.InDelta(t, tt.low, iv.Low, 1e-6, "%d of %d", tt.k, tt.n)
		assert.InDelta(t, tt.high, iv.High, 1e-6, "%d of %d", tt.k, tt.n)
		assert.InDelta(t, 0.95, iv.Level, 0)
	}
}
