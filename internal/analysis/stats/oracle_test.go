package stats_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchmath"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"dmgbench/internal/analysis/stats"
)

// draw returns n log-normal values; with a positive step they are rounded to
// it, which makes ties.
func draw(rng *rand.Rand, n int, step float64) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = math.Exp(rng.NormFloat64())
		if step > 0 {
			xs[i] = math.Round(xs[i]/step)*step + step
		}
	}
	return xs
}

func TestStudentAgainstGonum(t *testing.T) {
	for _, df := range []float64{1, 1.5, 2, 2.01, 3, 4.7, 10, 29, 30.5, 159, 1e4} {
		d := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}
		for _, x := range []float64{-40, -12.7, -3, -1, -0.05, 0, 0.3, 2.776, 8} {
			assert.InDelta(t, d.CDF(x), stats.StudentCDF(x, df), 1e-11, "df %v x %v", df, x)
		}
		for _, p := range []float64{1e-6, 0.005, 0.025, 0.2, 0.3, 0.499, 0.6, 0.75, 0.9, 0.975, 0.9995} {
			got := stats.StudentQuantile(p, df)
			assert.InEpsilon(t, d.Quantile(p), got, 1e-6, "df %v p %v", df, p)
			assert.InEpsilon(t, p, stats.StudentCDF(got, df), 1e-11, "df %v p %v", df, p)
		}
	}
}

func TestNormalAgainstGonum(t *testing.T) {
	for z := -37.0; z < 9; z += 0.173 {
		want := distuv.UnitNormal.CDF(z)
		assert.InEpsilon(t, want, stats.NormalCDF(z), 1e-12, "z %v", z)
	}
}

func TestLinesAgainstGonum(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		n := 3 + rng.IntN(60)
		x, y, w := draw(rng, n, 0), draw(rng, n, 0), draw(rng, n, 0)
		a, b := stat.LinearRegression(x, y, nil, false)
		l, err := stats.FitLine(x, y)
		require.NoError(t, err)
		assert.InDelta(t, a, l.Intercept, 1e-10)
		assert.InDelta(t, b, l.Slope, 1e-10)
		assert.InDelta(t, stat.RSquared(x, y, nil, a, b), l.R2, 1e-10)

		a, b = stat.LinearRegression(x, y, w, false)
		l, err = stats.FitWeightedLine(x, y, w)
		require.NoError(t, err)
		assert.InDelta(t, a, l.Intercept, 1e-9)
		assert.InDelta(t, b, l.Slope, 1e-9)
		assert.InDelta(t, stat.RSquared(x, y, w, a, b), l.R2, 1e-9)
	}
}

func TestMomentsAndRanksAgainstGonum(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		n := 4 + rng.IntN(40)
		x := draw(rng, n, 0)
		m, err := stats.Mean(x)
		require.NoError(t, err)
		assert.InEpsilon(t, stat.Mean(x, nil), m, 1e-13)
		sd, err := stats.StdDev(x)
		require.NoError(t, err)
		assert.InEpsilon(t, stat.StdDev(x, nil), sd, 1e-12)
		at := make([]float64, n)
		for i := range at {
			at[i] = float64(i)
		}
		k, err := stats.Trend(x) // gonum's Kendall has no tie correction, so only without ties
		require.NoError(t, err)
		assert.InDelta(t, stat.Kendall(at, x, nil), k.Coefficient, 1e-12)

		tx, ty := draw(rng, n, 0.5), draw(rng, n, 0.5)
		rx, ry := stats.Ranks(tx), stats.Ranks(ty)
		s, err := stats.Spearman(tx, ty)
		require.NoError(t, err)
		assert.InDelta(t, stat.Correlation(rx, ry, nil), s, 1e-12)
	}
}

func TestMedianIntervalAgainstBenchmath(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for n := 6; n <= 30; n++ {
		for _, level := range []float64{0.8, 0.9, 0.95} {
			xs := draw(rng, n, 0)
			got, err := stats.MedianInterval(xs, level)
			require.NoError(t, err)
			want := benchmath.AssumeNothing.Summary(benchmath.NewSample(slices.Clone(xs), &benchmath.DefaultThresholds), level)
			med, err := stats.Median(xs)
			require.NoError(t, err)
			assert.InDelta(t, want.Center, med, 1e-12)
			// benchmath may take a lopsided interval, one order statistic
			// narrower, where that still reaches the level.
			if want.Confidence > got.Level-1e-9 {
				assert.InDelta(t, want.Confidence, got.Level, 1e-9, "n %d level %v", n, level)
				assert.Equal(t, [2]float64{want.Lo, want.Hi}, [2]float64{got.Low, got.High}, "n %d level %v", n, level)
			} else {
				assert.LessOrEqual(t, got.Low, want.Lo, "n %d level %v", n, level)
				assert.GreaterOrEqual(t, got.High, want.Hi, "n %d level %v", n, level)
			}
		}
	}
}

func TestMeanIntervalAgainstBenchmath(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for n := 3; n <= 40; n += 3 {
		xs := draw(rng, n, 0)
		got, err := stats.MeanInterval(xs, 0.95)
		require.NoError(t, err)
		want := benchmath.AssumeNormal.Summary(benchmath.NewSample(slices.Clone(xs), &benchmath.DefaultThresholds), 0.95)
		assert.InDelta(t, want.Lo, got.Low, 1e-6, "n %d", n)
		assert.InDelta(t, want.Hi, got.High, 1e-6, "n %d", n)

		ys := draw(rng, n+1, 0)
		w, err := stats.WelchContrast(xs, ys)
		require.NoError(t, err)
		cmp := benchmath.AssumeNormal.Compare(
			benchmath.NewSample(slices.Clone(xs), &benchmath.DefaultThresholds),
			benchmath.NewSample(slices.Clone(ys), &benchmath.DefaultThresholds))
		assert.InDelta(t, cmp.P, w.P(0), 1e-9, "n %d", n)
		edge, err := w.Interval(1 - w.P(0)) // the interval of level 1-P ends at zero
		require.NoError(t, err)
		assert.InDelta(t, 0, min(math.Abs(edge.Low), math.Abs(edge.High)), 1e-6)
	}
}
