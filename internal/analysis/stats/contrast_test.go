package stats

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Welch's and the pooled contrast agree with their formulas, worked out by hand.
func TestContrasts(t *testing.T) {
	a, b := []float64{5.1, 4.9, 5.6, 5.2}, []float64{4.2, 4.8, 4.1}
	w, err := WelchContrast(a, b)
	require.NoError(t, err)
	// Means 5.2 and 4.3667, variances 0.26/3 and 0.286667/2, by hand.
	va, vb := 0.26/3/4, 0.28666666666666666/2/3
	assert.InDelta(t, math.Sqrt(va+vb), w.SE, 1e-12)
	assert.InDelta(t, (va+vb)*(va+vb)/(va*va/3+vb*vb/2), w.DF, 1e-9)
	assert.Equal(t, MethodWelch, w.Method)

	p, err := PooledContrast(a, b)
	require.NoError(t, err)
	// s² = (0.26 + 0.286667) / 5, by hand.
	assert.InDelta(t, math.Sqrt((0.26+0.28666666666666666)/5*(1./4+1./3)), p.SE, 1e-12)
	assert.EqualValues(t, 5, p.DF)

	one, err := PooledContrast(a, []float64{4})
	require.NoError(t, err)
	sd := stdDev(a)
	assert.InDelta(t, sd*math.Sqrt(1+1./4), one.SE, 1e-12, "the spread of a single value is that of the other side")
	_, err = PooledContrast([]float64{1, 2}, []float64{3})
	require.ErrorIs(t, err, ErrTooFew)
	_, err = WelchContrast([]float64{1, 2}, a)
	require.ErrorIs(t, err, ErrTooFew)

	still, err := MeanContrast([]float64{2, 2, 2})
	require.NoError(t, err)
	assert.Zero(t, still.P(1))
	assert.EqualValues(t, 1, still.P(2))
}

// p is at most 1 - level exactly where the interval leaves the value out.
func TestContrastPAndIntervalAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(rapid.Float64Range(-10, 10), 3, 8)
		a, b := xs.Draw(t, "a"), xs.Draw(t, "b")
		at := rapid.Float64Range(-5, 5).Draw(t, "at")
		for _, of := range []func(a, b []float64) (Contrast, error){WelchContrast, PooledContrast} {
			c, err := of(a, b)
			require.NoError(t, err)
			back, err := of(b, a)
			require.NoError(t, err)
			assert.InDelta(t, c.Estimate, -back.Estimate, 1e-9)
			assert.InDelta(t, c.P(0), back.P(0), 1e-9)
			iv, err := c.Interval(0.95)
			require.NoError(t, err)
			if p := c.P(at); math.Abs(p-0.05) > 1e-6 && c.SE > 0 {
				assert.Equal(t, p > 0.05, iv.Contains(at), "p %v, %v at %v", p, iv, at)
			}
		}
	})
}
