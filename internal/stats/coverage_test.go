package stats_test

import (
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/stats"
)

// coverage returns how often an interval holds the truth.
func coverage(t *testing.T, runs int, truth float64, interval func(rng *rand.Rand) (stats.Interval, error)) float64 {
	t.Helper()
	rng := rand.New(rand.NewPCG(21, 22))
	held := 0
	for range runs {
		iv, err := interval(rng)
		require.NoError(t, err)
		if iv.Contains(truth) {
			held++
		}
	}
	return float64(held) / float64(runs)
}

func normalDraw(rng *rand.Rand, n int) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = rng.NormFloat64()
	}
	return xs
}

// TestCoverage simulates every interval whose level is claimed exact or about
// nominal. With 4,000 runs the standard error is 0.35 %.
func TestCoverage(t *testing.T) {
	const runs = 4000
	for _, n := range []int{3, 5, 10, 40} {
		got := coverage(t, runs, 0, func(rng *rand.Rand) (stats.Interval, error) {
			return stats.MeanInterval(normalDraw(rng, n), 0.95)
		})
		assert.InDelta(t, 0.95, got, 0.012, "t, n %d", n)

		got = coverage(t, runs, 1, func(rng *rand.Rand) (stats.Interval, error) {
			a, b := draw(rng, n, 0), draw(rng, n, 0)
			r, err := stats.PairedRatio(a, b, 0.9)
			return r.Interval, err
		})
		assert.InDelta(t, 0.9, got, 0.016, "paired ratio, n %d", n)
	}
	for _, n := range []int{6, 10, 16, 41} { // skewed on purpose: the median of log-normal values is 1
		var real float64
		got := coverage(t, runs, 1, func(rng *rand.Rand) (stats.Interval, error) {
			iv, err := stats.MedianInterval(draw(rng, n, 0), 0.95)
			real = iv.Level
			return iv, err
		})
		assert.GreaterOrEqual(t, real, 0.95)
		assert.InDelta(t, real, got, 0.012, "median, n %d", n)
	}
	for _, n := range []int{10, 20, 50} {
		got := coverage(t, runs, 0, func(rng *rand.Rand) (stats.Interval, error) {
			xs := normalDraw(rng, n)
			for i := range xs {
				if rng.IntN(10) == 0 {
					xs[i] *= 10
				}
			}
			return stats.TrimmedMeanInterval(xs, 0.2, 0.95)
		})
		assert.InDelta(t, 0.955, got, 0.02, "trimmed mean, n %d", n)
	}
}

// TestRankIntervalCoverage: Sen's interval with tied sizes and errors of heavy
// tails, and the shift interval, have the level they state.
func TestRankIntervalCoverage(t *testing.T) {
	const runs = 3000
	cauchy := func(rng *rand.Rand) float64 { return math.Tan(math.Pi * (rng.Float64() - 0.5)) }
	for _, x := range [][]float64{{1, 2, 3, 4, 5, 6}, {1, 1, 2, 2, 2, 5, 5, 9}} {
		var real float64
		got := coverage(t, runs, 3, func(rng *rand.Rand) (stats.Interval, error) {
			y := make([]float64, len(x))
			for i := range y {
				y[i] = 7 + 3*x[i] + cauchy(rng)
			}
			f, err := stats.FitTheilSen(x, y)
			require.NoError(t, err)
			iv, err := f.SlopeInterval(0.9)
			real = iv.Level
			return iv, err
		})
		assert.InDelta(t, real, got, 0.017, "Theil-Sen over %v", x)
	}
	var real float64
	got := coverage(t, runs, 2, func(rng *rand.Rand) (stats.Interval, error) {
		a, b := draw(rng, 5, 0), draw(rng, 7, 0)
		for i := range a {
			a[i] += 2
		}
		iv, err := stats.HodgesLehmannInterval(a, b, 0.9)
		real = iv.Level
		return iv, err
	})
	assert.InDelta(t, real, got, 0.017, "shift")
}

// TestTestsKeepTheirLevel: under the null hypothesis the p values must not fall
// below a level more often than it says.
func TestTestsKeepTheirLevel(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	alarms := map[string]int{}
	const runs = 4000
	for range runs {
		a, b := draw(rng, 7, 0.5), draw(rng, 9, 0.5)
		for name, p := range map[string]float64{
			"Mann-Whitney": must(stats.MannWhitneyU(a, b))(t).P,
			"Welch":        must(stats.WelchT(normalDraw(rng, 5), normalDraw(rng, 9), 0.95))(t).P,
			"Trend":        must(stats.Trend(normalDraw(rng, 12)))(t).P,
			"Spearman":     must(stats.Spearman(normalDraw(rng, 6), normalDraw(rng, 6)))(t).P,
			"Kendall":      must(stats.Kendall(normalDraw(rng, 9), draw(rng, 9, 0.01)))(t).P,
		} {
			if p <= 0.05 {
				alarms[name]++
			}
		}
	}
	for name, n := range alarms {
		assert.LessOrEqual(t, float64(n)/runs, 0.062, name)
		assert.GreaterOrEqual(t, float64(n)/runs, 0.012, name)
	}
	assert.Len(t, alarms, 5)
}

// TestLongBootstrapCoverage is the study that MinForBCa rests on.
func TestLongBootstrapCoverage(t *testing.T) {
	if os.Getenv("DMGBENCH_LONG") == "" {
		t.Skip("long: set DMGBENCH_LONG=1 (make test-long)")
	}
	mean := func(xs []float64) float64 {
		s := 0.0
		for _, x := range xs {
			s += x
		}
		return s / float64(len(xs))
	}
	for _, c := range []struct {
		n           int
		normal, log float64
	}{{20, 0.935, 0.885}, {40, 0.945, 0.91}, {160, 0.95, 0.93}} {
		got := coverage(t, 1500, 0, func(rng *rand.Rand) (stats.Interval, error) {
			return stats.BCa(normalDraw(rng, c.n), mean, 0.95)
		})
		t.Logf("n %d normal %.3f", c.n, got)
		assert.InDelta(t, c.normal, got, 0.02, "normal, n %d", c.n)
		got = coverage(t, 1500, math.Exp(0.5), func(rng *rand.Rand) (stats.Interval, error) {
			return stats.BCa(draw(rng, c.n, 0), mean, 0.95)
		})
		t.Logf("n %d log-normal %.3f", c.n, got)
		assert.InDelta(t, c.log, got, 0.025, "log-normal, n %d", c.n)
	}
}
