package stats_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/analysis/stats"
)

// The published measurements of a compression of 15.517 GB with 1 to 5 threads
// on the host and 2 to 5 virtual cores in a virtual machine, and what their
// author fitted to them (16 Dec 2024; methodology.md sections 3.5 and 4).
var (
	hostThreads = []float64{1, 2, 3, 4, 5}
	hostSeconds = []float64{49.32, 26.74, 18.60, 14.29, 11.21}
	vmThreads   = []float64{2, 3, 4, 5}
	vmSeconds   = []float64{30.13, 21.36, 17.18, 13.59}
)

func rates(seconds []float64) []float64 {
	out := make([]float64, len(seconds))
	for i, s := range seconds {
		out[i] = 15.517 / s
	}
	return out
}

func TestPublishedLines(t *testing.T) {
	for _, c := range []struct {
		name                         string
		threads, seconds             []float64
		intercept, slope, r2         string
		printedIntercept, printedSlp string
	}{
		{"host", hostThreads, hostSeconds, "0.04642", "0.26448", "0.9991", "0.0464", "0.264"},
		{"virtual machine", vmThreads, vmSeconds, "0.10162", "0.20571", "0.9969", "0.102", "0.206"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := stats.FitLine(c.threads, rates(c.seconds))
			require.NoError(t, err)
			assert.Equal(t, c.intercept, fmt.Sprintf("%.5f", l.Intercept))
			assert.Equal(t, c.slope, fmt.Sprintf("%.5f", l.Slope))
			assert.Equal(t, c.r2, fmt.Sprintf("%.4f", l.R2))
			assert.Equal(t, c.printedIntercept, fmt.Sprintf("%.*f", len(c.printedIntercept)-2, l.Intercept))
			assert.Equal(t, c.printedSlp, fmt.Sprintf("%.3f", l.Slope))
		})
	}
}

func TestPublishedPowerLaws(t *testing.T) {
	for _, c := range []struct {
		name             string
		threads, seconds []float64
		a, k             string
		printedA         string
	}{
		{"host", hostThreads, hostSeconds, "49.88625", "0.911690", "49.8863"},
		{"virtual machine", vmThreads, vmSeconds, "54.73701", "0.854318", "54.737"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := stats.FitPower(c.threads, c.seconds)
			require.NoError(t, err)
			a, k := p.Coefficient, -p.Exponent
			assert.Equal(t, c.a, fmt.Sprintf("%.5f", a))
			assert.Equal(t, c.k, fmt.Sprintf("%.6f", k))
			assert.Equal(t, c.printedA, fmt.Sprintf("%.*f", len(c.printedA)-3, a))
			assert.InDelta(t, a, p.At(1), 1e-12)
		})
	}
}

func TestPublishedPredictionAndSlopeRatio(t *testing.T) {
	host, err := stats.FitLine(hostThreads, rates(hostSeconds))
	require.NoError(t, err)
	vm, err := stats.FitLine(vmThreads, rates(vmSeconds))
	require.NoError(t, err)
	assert.Equal(t, "0.778", fmt.Sprintf("%.3f", vm.Slope/host.Slope))

	// The run with 10 threads made 2.28 GB/s, which the article calls lower than predicted.
	assert.Equal(t, "2.69", fmt.Sprintf("%.2f", host.At(10)))
	assert.Greater(t, 10.0, host.MaxX)
}

// TestAnscombe holds the fit against the data set made to be hard to tell apart
// (Anscombe, The American Statistician 27, 1973), and its printed statistics.
func TestAnscombe(t *testing.T) {
	x := []float64{10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5}
	x4 := []float64{8, 8, 8, 8, 8, 8, 8, 19, 8, 8, 8}
	for i, c := range []struct {
		x, y   []float64
		theil  float64
		robust bool
	}{
		{x: x, y: []float64{8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68}},
		{x: x, y: []float64{9.14, 8.14, 8.74, 8.77, 9.26, 8.10, 6.13, 3.10, 9.13, 7.26, 4.74}},
		{x: x, y: []float64{7.46, 6.77, 12.74, 7.11, 7.81, 8.84, 6.08, 5.39, 8.15, 6.42, 5.73}, robust: true, theil: 0.3454},
		{x: x4, y: []float64{6.58, 5.76, 7.71, 8.84, 8.47, 7.04, 5.25, 12.50, 5.56, 7.91, 6.89}},
	} {
		l, err := stats.FitLine(c.x, c.y)
		require.NoError(t, err)
		assert.InDelta(t, 0.5, l.Slope, 0.0005, "set %d", i+1)
		assert.InDelta(t, 3.0, l.Intercept, 0.0035, "set %d", i+1)
		assert.InDelta(t, 0.667, l.R2, 0.001, "set %d", i+1)
		assert.InDelta(t, 0.118, l.SlopeSE, 0.0005, "set %d", i+1)
		assert.InDelta(t, 13.75, l.SSE, 0.03, "set %d", i+1)
		if c.robust { // ten of the points lie on y = 4 + 0.346 x, one does not
			ts, err := stats.FitTheilSen(c.x, c.y)
			require.NoError(t, err)
			assert.InDelta(t, 0.3455, ts.Slope, 0.0015)
			assert.InDelta(t, 4.0, ts.Intercept, 0.02)
		}
	}
}

// TestNorris holds the fit against a data set with certified values: NIST
// Statistical Reference Datasets, Norris (calibration of ozone monitors).
func TestNorris(t *testing.T) {
	y := []float64{0.1, 338.8, 118.1, 888.0, 9.2, 228.1, 668.5, 998.5, 449.1, 778.9, 559.2, 0.3, 0.1, 778.1, 668.8,
		339.3, 448.9, 10.8, 557.7, 228.3, 998.0, 888.8, 119.6, 0.3, 0.6, 557.6, 339.3, 888.0, 998.5, 778.9, 10.2, 117.6,
		228.9, 668.4, 449.2, 0.2}
	x := []float64{0.2, 337.4, 118.2, 884.6, 10.1, 226.5, 666.3, 996.3, 448.6, 777.0, 558.2, 0.4, 0.6, 775.5, 666.9,
		338.0, 447.5, 11.6, 556.0, 228.1, 995.8, 887.6, 120.2, 0.3, 0.3, 556.8, 339.1, 887.2, 999.0, 779.0, 11.1, 118.3,
		229.2, 669.1, 448.9, 0.5}
	l, err := stats.FitLine(x, y)
	require.NoError(t, err)
	assert.InEpsilon(t, -0.262323073774029, l.Intercept, 1e-11)
	assert.InEpsilon(t, 1.00211681802045, l.Slope, 1e-13)
	assert.InEpsilon(t, 0.232818234301152, l.InterceptSE, 1e-11)
	assert.InEpsilon(t, 0.429796848199937e-3, l.SlopeSE, 1e-11)
	assert.InEpsilon(t, 0.884796396144373, l.ResidualSD, 1e-11)
	assert.InEpsilon(t, 0.999993745883712, l.R2, 1e-13)
}
