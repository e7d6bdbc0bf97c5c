package stats_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"dmgbench/internal/analysis/stats"
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
	assert.InEpsilon(t, 1.959963984540054, stats.StudentQuantile(0.975, 1e300), 1e-12)
}

func TestDistributionDomains(t *testing.T) {
	for _, p := range []float64{-0.1, 1.1, math.NaN(), math.Inf(1)} {
		assert.True(t, math.IsNaN(stats.StudentQuantile(p, 3)))
	}
	for _, df := range []float64{0, 0.5, -1, math.NaN()} {
		assert.True(t, math.IsNaN(stats.StudentCDF(1, df)))
		assert.True(t, math.IsNaN(stats.StudentQuantile(0.3, df)))
	}
	assert.Equal(t, math.Inf(-1), stats.StudentQuantile(0, 3))
	assert.Equal(t, 1.0, stats.StudentCDF(math.Inf(1), 3))
	assert.Equal(t, 0.0, stats.StudentCDF(math.Inf(-1), 3))
	assert.Equal(t, 0.5, stats.StudentCDF(0, 3))
}
