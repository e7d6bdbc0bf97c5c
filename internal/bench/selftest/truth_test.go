package selftest

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/analysis/stats"
)

// The truths that are computed from a law are what a very large sample gives.
func TestTruthsAreLimits(t *testing.T) {
	for _, slow := range []string{"", ";slow = 30% x 2 in 1 files"} {
		t.Run(slow, func(t *testing.T) { checkTruths(t, slow) })
	}
}

func checkTruths(t *testing.T, slow string) {
	device := law("write = 5 GB/s;read = 5 GB/s;latency = 200 us;file_noise = 20%;outliers = 3% x 4" + slow).Law
	sizes := []int64{2e6, 10e6, 100e6}
	want := truths(device, sizes)
	rng := rand.New(rand.NewPCG(1, 1))
	var size, time, rate []float64
	for i := range 60_000 {
		s := float64(sizes[i%3])
		f := math.Exp(0.2*rng.NormFloat64() - 0.02)
		if rng.Float64() < 0.03 {
			f *= 4
		}
		if rng.Float64() < device.Slow {
			f *= device.SlowFactor
		}
		d := (200e-6 + s/5e9) * f
		size, time, rate = append(size, s), append(time, d), append(rate, s/d)
	}
	check := func(name string, got float64, err error) {
		require.NoError(t, err)
		assert.InEpsilon(t, want[name], got, 0.02, name)
	}
	check("aggregate", sumOf(size)/sumOf(time), nil)
	mean, err := stats.Mean(rate)
	check("mean", mean, err)
	median, err := stats.Median(rate)
	check("median", median, err)
	trimmed, err := stats.TrimmedMean(rate, 0.2)
	check("trimmed", trimmed, err)
	line, err := stats.FitLine(size, time)
	check("least-squares", 1/line.Slope, err)
	weights := make([]float64, len(size))
	for i, s := range size {
		weights[i] = 1 / (s * s)
	}
	weighted, err := stats.FitWeightedLine(size, time, weights)
	check("weighted", 1/weighted.Slope, err)
	check("latency", weighted.Intercept, err)
	sen, err := stats.FitTheilSen(size[:1500], time[:1500]) // the slopes between all pairs
	require.NoError(t, err)
	assert.InEpsilon(t, want["theil-sen"], 1/sen.Slope, 0.02)
}

func sumOf(xs []float64) (s float64) {
	for _, x := range xs {
		s += x
	}
	return s
}
