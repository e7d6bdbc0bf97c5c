package stats_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"dmgbench/internal/stats"
)

// TestStudentTable holds the quantiles against the printed table (Abramowitz and
// Stegun, table 26.10).
func TestStudentTable(t *testing.T) {
	for _, c := range []struct{ df, p, want float64 }{
		{1, 0.975, 12.706}, {2, 0.975, 4.303}, {3, 0.975, 3.182}, {4, 0.975, 2.776}, {5, 0.975, 2.571},
		{9, 0.975, 2.262}, {15, 0.975, 2.131}, {30, 0.975, 2.042}, {120, 0.975, 1.980},
		{1, 0.995, 63.657}, {2, 0.995, 9.925}, {4, 0.995, 4.604}, {10, 0.995, 3.169},
		{1, 0.75, 1.000}, {5, 0.75, 0.727}, {30, 0.9, 1.310},
	} {
		assert.InDelta(t, c.want, stats.StudentQuantile(c.p, c.df), 0.0005, "df %v p %v", c.df, c.p)
		assert.InDelta(t, -c.want, stats.StudentQuantile(1-c.p, c.df), 0.0005, "df %v p %v", c.df, c.p)
	}
}

// TestStudentClosedForms holds the CDF against the closed forms for 1, 2 and 4
// degrees of freedom, where gonum itself loses digits: far out and near zero.
func TestStudentClosedForms(t *testing.T) {
	for _, x := range []float64{1e-12, 1e-6, 1e-3, 0.1, 1, 3, 30, 1e4, 1e7} {
		assert.InEpsilon(t, math.Atan(1/x)/math.Pi, stats.StudentCDF(-x, 1), 1e-13, "df 1, %v", x)
		two := 1 / (math.Sqrt(2+x*x) * (math.Sqrt(2+x*x) + x)) // (1 - x/√(2+x²))/2 without the subtraction
		assert.InEpsilon(t, two, stats.StudentCDF(-x, 2), 1e-13, "df 2, %v", x)
	}
	// The two methods meet at 100,000 degrees of freedom.
	for _, x := range []float64{1e-6, 0.3, 1.96, 5, 12} {
		below, above := stats.StudentCDF(-x, 1e5), stats.StudentCDF(-x, math.Nextafter(1e5, 2e5))
		assert.InEpsilon(t, below, above, 1e-9, "%v", x)
	}
	assert.InEpsilon(t, stats.NormalCDF(-3), stats.StudentCDF(-3, 1e12), 1e-9)
	assert.InEpsilon(t, stats.NormalQuantile(0.975), stats.StudentQuantile(0.975, 1e300), 1e-12)
}

// TestStudentQuantileNearTheMiddle: the density of four degrees of freedom at 0
// is 3/8, so a quantile close by is known to the last digits.
func TestStudentQuantileNearTheMiddle(t *testing.T) {
	assert.InEpsilon(t, 0x1p-40/0.375, stats.StudentQuantile(0.5+0x1p-40, 4), 1e-12)
	assert.InEpsilon(t, 0x1p-40*math.Sqrt(2*math.Pi), stats.StudentQuantile(0.5+0x1p-40, 1e9), 1e-8)
	assert.InEpsilon(t, -0x1p-50/0.375, stats.StudentQuantile(0.5-0x1p-50, 4), 1e-12)
}

func TestNormalTails(t *testing.T) {
	assert.InDelta(t, 1.959963984540054, stats.NormalQuantile(0.975), 1e-14)
	assert.InDelta(t, -6.361340902404056, stats.NormalQuantile(1e-10), 1e-13)
	assert.InDelta(t, -37.0471, stats.NormalQuantile(1e-300), 1e-4)
	for _, p := range []float64{1e-300, 1e-100, 1e-20, 1e-13, 1e-11, 1e-3, 0.0999, 0.1001, 0.4999999} {
		assert.InEpsilon(t, p, stats.NormalCDF(stats.NormalQuantile(p)), 1e-12, "p %v", p)
	}
	assert.Zero(t, stats.NormalQuantile(0.5))
	assert.Less(t, stats.NormalQuantile(math.Nextafter(0.5, 0)), 0.0)
	assert.Greater(t, stats.StudentQuantile(math.Nextafter(0.5, 1), 7), 0.0)
}

func TestDistributionDomains(t *testing.T) {
	for _, p := range []float64{-0.1, 1.1, math.NaN(), math.Inf(1)} {
		assert.True(t, math.IsNaN(stats.NormalQuantile(p)))
		assert.True(t, math.IsNaN(stats.StudentQuantile(p, 3)))
	}
	for _, df := range []float64{0, 0.5, -1, math.NaN()} {
		assert.True(t, math.IsNaN(stats.StudentCDF(1, df)))
		assert.True(t, math.IsNaN(stats.StudentQuantile(0.3, df)))
	}
	assert.Equal(t, math.Inf(1), stats.NormalQuantile(1))
	assert.Equal(t, math.Inf(-1), stats.StudentQuantile(0, 3))
	assert.Equal(t, 1.0, stats.StudentCDF(math.Inf(1), 3))
	assert.Equal(t, 0.0, stats.StudentCDF(math.Inf(-1), 3))
	assert.Equal(t, 0.5, stats.StudentCDF(0, 3))
}
