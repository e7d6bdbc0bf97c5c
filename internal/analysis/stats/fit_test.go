package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/analysis/stats"
)

// TestLineByHand: (1,2) (2,3) (3,5) (4,6) has means 2.5 and 4, squares 5, 7, 10
// and so slope 1.4, intercept 0.5, residual squares 0.2, s² = 0.1.
func TestLineByHand(t *testing.T) {
	l := must(stats.FitLine([]float64{1, 2, 3, 4}, []float64{2, 3, 5, 6}))(t)
	assert.InDelta(t, 1.4, l.Slope, 1e-14)
	assert.InDelta(t, 0.5, l.Intercept, 1e-13)
	assert.InDelta(t, 0.2, l.SSE, 1e-13)
	assert.InDelta(t, 0.98, l.R2, 1e-13)
	assert.InDelta(t, math.Sqrt(0.1/5), l.SlopeSE, 1e-13)
	assert.InDelta(t, math.Sqrt(0.1*(0.25+6.25/5)), l.InterceptSE, 1e-13)

	q := 0.95 / math.Sqrt(2*0.025*0.975) // t of two degrees of freedom
	slope := must(l.SlopeInterval(0.95))(t)
	assert.InDelta(t, 1.4+q*math.Sqrt(0.02), slope.High, 1e-8)
	assert.True(t, must(l.InterceptInterval(0.95))(t).Contains(0.5))
}

func TestLineThatDoesNotVary(t *testing.T) {
	l := must(stats.FitLine([]float64{1, 2, 3}, []float64{0.1, 0.1, 0.1}))(t)
	assert.Zero(t, l.R2)
	assert.InDelta(t, 0, l.Slope, 1e-15)
	_, err := stats.FitLine([]float64{0.1, 0.1, 0.1}, []float64{1, 2, 3})
	require.ErrorIs(t, err, stats.ErrNoSpread)
	_, err = stats.FitLine([]float64{1, 2}, []float64{1, 2})
	require.ErrorIs(t, err, stats.ErrTooFew)
}

// TestWeightsCountAsRepeats: a whole weight is as many copies of the point, for
// the line itself.
func TestWeightsCountAsRepeats(t *testing.T) {
	x, y, w := []float64{1, 2, 4, 7}, []float64{2, 3, 5, 6}, []float64{1, 3, 2, 1}
	var rx, ry []float64
	for i := range w {
		for range int(w[i]) {
			rx, ry = append(rx, x[i]), append(ry, y[i])
		}
	}
	a, b := must(stats.FitWeightedLine(x, y, w))(t), must(stats.FitLine(rx, ry))(t)
	assert.InDelta(t, b.Slope, a.Slope, 1e-13)
	assert.InDelta(t, b.Intercept, a.Intercept, 1e-13)
	assert.InDelta(t, b.R2, a.R2, 1e-13)
}

// goldSizes are 160 file sizes in bytes, 16 sizes of 10 files.
func goldSizes() []float64 {
	var out []float64
	for range 10 {
		for _, mb := range []float64{2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400, 600, 800, 1000, 2000} {
			out = append(out, mb*1e6)
		}
	}
	return out
}

// TestLatencyNeedsWeights repeats a simulation whose results are known (linux-io
// notes, section 6): a latency of 0.5 ms at 6 GB/s with 5 % noise. The plain fit
// puts it anywhere from below zero to over a millisecond; weights find it to a
// few per cent, with an interval that keeps its level where the noise is on the
// transfer alone.
func TestLatencyNeedsWeights(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	sizes := goldSizes()
	weights, seconds := make([]float64, len(sizes)), make([]float64, len(sizes))
	plainLow, plainHigh := 1.0, -1.0
	const runs = 400
	held := map[string]int{}
	for i, s := range sizes {
		weights[i] = 1 / (s * s)
	}
	check := func(name string, l stats.Line) {
		assert.InDelta(t, 0.0005, l.Intercept, 0.00006, name)
		assert.InEpsilon(t, 6e9, 1/l.Slope, 0.05, name)
		if must(l.InterceptInterval(0.95))(t).Contains(0.0005) {
			held[name]++
		}
	}
	for range runs {
		for i, s := range sizes { // noise on the transfer, as the weights suppose
			seconds[i] = 0.0005 + s/6e9*(1+0.05*rng.NormFloat64())
		}
		plain := must(stats.FitLine(sizes, seconds))(t)
		plainLow, plainHigh = min(plainLow, plain.Intercept), max(plainHigh, plain.Intercept)
		check("size", must(stats.FitWeightedLine(sizes, seconds, weights))(t))
		for i, s := range sizes { // noise on all of it
			seconds[i] = (0.0005 + s/6e9) * (1 + 0.05*rng.NormFloat64())
		}
		check("size, noise on all", must(stats.FitWeightedLine(sizes, seconds, weights))(t))
	}
	assert.Less(t, plainLow, 0.0)
	assert.Greater(t, plainHigh, 0.001)
	assert.InDelta(t, 0.95, float64(held["size"])/runs, 0.03)
	assert.Less(t, float64(held["size, noise on all"])/runs, 0.9)
}

func TestPowerLaw(t *testing.T) {
	x := []float64{1, 2, 4, 8, 16}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = 49.9 / math.Pow(v, 0.9)
	}
	p := must(stats.FitPower(x, y))(t)
	assert.InEpsilon(t, 49.9, p.Coefficient, 1e-12)
	assert.InEpsilon(t, -0.9, p.Exponent, 1e-12)
	assert.InEpsilon(t, 49.9/math.Pow(32, 0.9), p.At(32), 1e-12)

	host := must(stats.FitPower(hostThreads, hostSeconds))(t)
	assert.True(t, must(host.Log.SlopeInterval(0.95))(t).Contains(-0.91169))
	assert.True(t, must(host.CoefficientInterval(0.95))(t).Contains(49.886))
	assert.InDelta(t, 49.8863/math.Pow(10, 0.91169), host.At(10), 1e-3)
	_, err := stats.FitPower([]float64{0, 1, 2}, []float64{1, 2, 3})
	require.ErrorIs(t, err, stats.ErrRange)
}

// TestTheilSenByHand works Sen's own definition through on five points.
func TestTheilSenByHand(t *testing.T) {
	// Slopes: (1,1)-(2,2) 1, -(3,9) 4, -(4,4) 1, -(5,5) 1, (2,2)-(3,9) 7,
	// -(4,4) 1, -(5,5) 1, (3,9)-(4,4) -5, -(5,5) -2, (4,4)-(5,5) 1.
	f := must(stats.FitTheilSen([]float64{1, 2, 3, 4, 5}, []float64{1, 2, 9, 4, 5}))(t)
	assert.Equal(t, 1.0, f.Slope)
	assert.Equal(t, 0.0, f.Intercept)
}

func TestTheilSenLeavesEqualSizesOut(t *testing.T) {
	sizes := goldSizes()
	seconds := make([]float64, len(sizes))
	rng := rand.New(rand.NewPCG(13, 14))
	for i, s := range sizes {
		seconds[i] = (0.0005 + s/6e9) * (1 + 0.01*rng.NormFloat64())
		if i%7 == 0 {
			seconds[i] *= 20 // one in seven stalls
		}
	}
	f := must(stats.FitTheilSen(sizes, seconds))(t)
	assert.InEpsilon(t, 6e9, 1/f.Slope, 0.05)
	assert.True(t, must(f.SlopeIntervalByGroup(sizes, seconds, 0.95))(t).Contains(f.Slope))

	_, err := stats.FitTheilSen([]float64{2, 2}, []float64{1, 3})
	require.ErrorIs(t, err, stats.ErrNoSpread)
	_, err = stats.FitTheilSen(make([]float64, 4001), make([]float64, 4001))
	require.ErrorIs(t, err, stats.ErrRange)
	two := must(stats.FitTheilSen([]float64{1, 3}, []float64{1, 5}))(t)
	assert.Equal(t, 2.0, two.Slope)
}

func TestTwoLinesFindTheThrottle(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	x, y := make([]float64, 60), make([]float64, 60)
	for i := range x { // 2 GB/s, and 0.6 GB/s once 40 GB are written
		x[i] = float64((i*37)%60) + 1
		y[i] = x[i] / 2
		if x[i] > 40 {
			y[i] = 20 + (x[i]-40)/0.6
		}
		y[i] += 0.3 * rng.NormFloat64()
	}
	two := must(stats.FitTwoLines(x, y))(t)
	assert.InDelta(t, 40.5, two.Break, 1)
	assert.InEpsilon(t, 2, 1/two.Left.Slope, 0.03)
	assert.InEpsilon(t, 0.6, 1/two.Right.Slope, 0.03)
	assert.Equal(t, 60, two.Left.N+two.Right.N)
	assert.InDelta(t, two.Left.At(10), two.At(10), 0)
	assert.InDelta(t, two.Right.At(50), two.At(50), 0)
	assert.Greater(t, two.R2, 0.999)

	straight := must(stats.FitTwoLines([]float64{1, 2, 3, 4, 5, 6}, []float64{2, 4, 6, 8, 10, 12}))(t)
	assert.InDelta(t, 1, straight.R2, 1e-12)
	assert.Equal(t, 3.5, straight.Break)
}

func TestTwoLinesRefusals(t *testing.T) {
	x := []float64{1, 2, 3, 4, 5, 6}
	_, err := stats.FitTwoLines(x[:5], x[:5])
	require.EqualError(t, err, "fitting two lines: n is 5, need at least 6: too few values")
	_, err = stats.FitTwoLines([]float64{1, 1, 1, 2, 2, 2}, x)
	require.ErrorIs(t, err, stats.ErrNoSpread)
}
