package stats_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/stats"
)

func TestRefusals(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(-1)
	three := []float64{1, 2, 3}
	fine := func(_ any, err error) error { return err }
	for _, c := range []struct {
		name string
		err  error
		want error
		text string
	}{
		{"empty mean", fine(stats.Mean(nil)), stats.ErrTooFew, "computing mean: n is 0, need at least 1"},
		{"NaN", fine(stats.Median([]float64{1, nan})), stats.ErrNotFinite, "computing median: value 1 is NaN: not a finite number"},
		{"infinity", fine(stats.MAD([]float64{inf})), stats.ErrNotFinite, "computing median absolute deviation: value 0 is -Inf: not a finite number"},
		{"one for SD", fine(stats.StdDev([]float64{1})), stats.ErrTooFew, "computing standard deviation: n is 1, need at least 2"},
		{"zero in geometric mean", fine(stats.GeoMean([]float64{1, 0})), stats.ErrRange, "computing geometric mean: value 1 is 0, not positive: out of range"},
		{"CV of zero mean", fine(stats.CV([]float64{-1, 1})), stats.ErrRange, "computing coefficient of variation: mean 0 is not positive: out of range"},
		{"p", fine(stats.Quantile(three, 1.1)), stats.ErrRange, "computing quantile: p 1.1 is not between 0 and 1: out of range"},
		{"NaN p", fine(stats.Quantile(three, nan)), stats.ErrRange, "computing quantile: p NaN is not between 0 and 1: out of range"},
		{"share", fine(stats.TrimmedMean(three, 0.5)), stats.ErrRange, "computing trimmed mean: share 0.5 is not in [0, 0.5): out of range"},
		{"level in per cent", fine(stats.MeanInterval(three, 95)), stats.ErrRange, "computing mean interval: level 95 is not between 0 and 1: out of range"},
		{"two for t", fine(stats.MeanInterval(three[:2], 0.95)), stats.ErrTooFew, "computing mean interval: n is 2, need at least 3"},
		{"lengths", fine(stats.PairedRatio(three, three[:2], 0.95)), stats.ErrLengths, "computing paired ratio: 3 and 2 values: lengths differ"},
		{"overflow", fine(stats.StdDev([]float64{-1e308, 1e308})), stats.ErrOverflow, "computing standard deviation: result out of the range of float64"},
		{"two outliers", fine(stats.Outliers(three[:2])), stats.ErrTooFew, "looking for outliers: n is 2, need at least 3"},
		{"constant", fine(stats.Kendall(three, []float64{2, 2, 2})), stats.ErrNoSpread, "computing Kendall correlation: every value is 2: values do not vary"},
		{"bootstrap of few", fine(stats.BCa(make([]float64, 19), func([]float64) float64 { return 0 }, 0.95)), stats.ErrTooFew, "computing bootstrap interval: n is 19, need at least 20"},
		{"Holm", fine(stats.Holm([]float64{2})), stats.ErrRange, "adjusting p values: value 0 is 2, not a probability: out of range"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.ErrorIs(t, c.err, c.want)
			assert.EqualError(t, c.err, c.text)
		})
	}
}

// TestNeedIsEnough: the size that a TooFewError names is one with which the same
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
			"slope": func(n int) error {
				f, err := stats.FitTheilSen(distinct(n), distinct(n))
				if err == nil {
					_, err = f.SlopeInterval(level)
				}
				return err
			},
			"shift":   func(n int) error { _, err := stats.HodgesLehmannInterval(distinct(n), distinct(n), level); return err },
			"trimmed": func(n int) error { _, err := stats.TrimmedMeanInterval(distinct(n), 0.2, level); return err },
		} {
			err := call(2)
			few, ok := errors.AsType[*stats.TooFewError](err)
			if !ok {
				require.NoError(t, err, "%s at %v", name, level)
				continue
			}
			assert.Equal(t, 2, few.Have)
			require.NoError(t, call(few.Need), "%s at %v: %d", name, level, few.Need)
			require.ErrorIs(t, call(few.Need-1), stats.ErrTooFew, "%s at %v: %d", name, level, few.Need-1)
		}
	}
}

func TestIntervalReads(t *testing.T) {
	iv := stats.Interval{Low: 1.02, High: 1.314, Level: 0.978515625, Method: stats.MethodOrder}
	assert.Equal(t, "[1.02, 1.314] (97.9 %, exact order statistics)", iv.String())
	assert.True(t, iv.Contains(1.02))
	assert.False(t, iv.Contains(1.3141))
	assert.False(t, iv.Contains(math.NaN()))
	assert.False(t, strings.Contains(iv.String(), "%!"))
}

func TestBootstrap(t *testing.T) {
	xs := make([]float64, 40)
	for i := range xs {
		xs[i] = math.Exp(float64((i*17)%40) / 10)
	}
	mean := func(v []float64) float64 {
		s := 0.0
		for _, x := range v {
			s += x
		}
		return s / float64(len(v))
	}
	iv := must(stats.BCa(xs, mean, 0.95))(t)
	assert.Equal(t, iv, must(stats.BCa(xs, mean, 0.95))(t), "the same bits twice")
	assert.Equal(t, stats.MethodBCa, iv.Method)
	m := must(stats.Mean(xs))(t)
	assert.True(t, iv.Contains(m))
	// The data are skewed to the right, and unlike t the interval leans there.
	assert.Greater(t, iv.High-m, m-iv.Low)
	plain := must(stats.MeanInterval(xs, 0.95))(t)
	assert.InEpsilon(t, plain.High-plain.Low, iv.High-iv.Low, 0.15)

	// Of symmetric data the interval is close to that of t with the divisor n.
	for i := range xs {
		xs[i] = stats.NormalQuantile((float64(i) + 0.5) / 40)
	}
	sd := must(stats.StdDev(xs))(t) * math.Sqrt(39.0/40)
	iv = must(stats.BCa(xs, mean, 0.95))(t)
	assert.InDelta(t, 1.96*sd/math.Sqrt(40), iv.High, 0.012)
	assert.InDelta(t, -1.96*sd/math.Sqrt(40), iv.Low, 0.012)

	// A ratio of sums of pairs, whose pairs must stay together: y is 2·x.
	ys := make([]float64, 40)
	for i := range xs {
		xs[i] = float64(i%9) + 1
		ys[i] = 2 * xs[i]
	}
	ratio := func(x, y []float64) float64 { return mean(y) / mean(x) }
	iv = must(stats.BCaPairs(xs, ys, ratio, 0.95))(t)
	assert.InDelta(t, 2, iv.Low, 1e-12)
	assert.InDelta(t, 2, iv.High, 1e-12)

	_, err := stats.BCa(xs, func([]float64) float64 { return math.NaN() }, 0.95)
	require.ErrorIs(t, err, stats.ErrOverflow)
	_, err = stats.BCa(xs, mean, 0.99999)
	require.ErrorIs(t, err, stats.ErrRange)
	// A statistic that reorders its resample does not reach the caller's values.
	before := append([]float64(nil), xs...)
	_, err = stats.BCa(xs, func(v []float64) float64 { v[0], v[1] = v[1], 7; return mean(v) }, 0.9)
	require.NoError(t, err)
	assert.Equal(t, before, xs)
}
