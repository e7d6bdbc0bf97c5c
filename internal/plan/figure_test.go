package plan_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
)

func TestParseFigure(t *testing.T) {
	for _, c := range []struct {
		text, unit, kind string
		low, high        float64
	}{
		{"6.13 GB/s", "B/s", "is", 6.13e9, 6.13e9},
		{"about 2.2 GB/s", "B/s", "about", 2.2e9, 2.2e9},
		{"below 0.92 GB/s", "B/s", "below", 0.92e9, 0.92e9},
		{"above 2.6 GB/s", "B/s", "above", 2.6e9, 2.6e9},
		{"6 GB/s to 7 GB/s", "B/s", "range", 6e9, 7e9},
		{"49.32 s", "s", "is", 49.32, 49.32},
		{"53.3 GB", "B", "is", 53.3e9, 53.3e9},
		{"6359", "1", "is", 6359, 6359},
		{"6000 to 7000", "1", "range", 6000, 7000},
		{"57%", "1", "is", 0.57, 0.57},
		{"-0.91169", "1", "is", -0.91169, -0.91169},
		{"−0.0214 s", "s", "is", -0.0214, -0.0214},
	} {
		f, err := plan.ParseFigure(c.text, c.unit)
		require.NoError(t, err, c.text)
		assert.Equal(t, plan.Figure{Kind: c.kind, Low: c.low, High: c.high, Unit: c.unit, Text: c.text}, f)
	}
	for _, c := range [][2]string{
		{"6.13", "B/s"}, {"6.13 GB", "B/s"}, {"", "1"}, {"1e9", "1"}, {"NaN", "1"}, {"inf", "1"}, {"0x10", "1"}, {"7 GB/s to 6 GB/s", "B/s"},
		{"about 1 to 2", "1"}, {"1 to 1", "1"}, {"5 m", "s"}, {"1,000", "1"}, {"--1", "1"},
	} {
		_, err := plan.ParseFigure(c[0], c[1])
		assert.Error(t, err, c)
	}
}

func TestParseBound(t *testing.T) {
	in := math.Inf(1)
	for _, c := range []struct {
		text, unit          string
		low, high           float64
		lowOpen, highOpen   bool
		holds, doesNotHolds []float64
	}{
		{">= 2", "1", 2, in, false, false, []float64{2, 3, in}, []float64{1.999, math.NaN()}},
		{"> 2", "1", 2, in, true, false, []float64{2.001}, []float64{2, 1}},
		{"≤ 50%", "1", -in, 0.5, false, false, []float64{0.5, -1}, []float64{0.51}},
		{"< 0.5 GB/s", "B/s", -in, 0.5e9, false, true, []float64{0.4e9}, []float64{0.5e9}},
		{"0.9 to 1.1", "1", 0.9, 1.1, false, false, []float64{0.9, 1.1}, []float64{0.89, 1.11}},
		{"about 2", "1", 1.7, 2.3, false, false, []float64{1.7, 2.3}, []float64{1.6, 2.4}},
		{"-1 GB/s to 1 GB/s", "B/s", -1e9, 1e9, false, false, []float64{0}, []float64{2e9}},
	} {
		b, err := plan.ParseBound(c.text, c.unit)
		require.NoError(t, err, c.text)
		assert.InDelta(t, 0, diff(b.Low, c.low), 1e-12, c.text)
		assert.InDelta(t, 0, diff(b.High, c.high), 1e-12, c.text)
		assert.Equal(t, [2]bool{c.lowOpen, c.highOpen}, [2]bool{b.LowOpen, b.HighOpen}, c.text)
		for _, v := range c.holds {
			assert.True(t, b.Holds(v), "%s holds %g", c.text, v)
		}
		for _, v := range c.doesNotHolds {
			assert.False(t, b.Holds(v), "%s holds %g", c.text, v)
		}
	}
	for _, c := range [][2]string{{"2", "1"}, {">= 2", "B/s"}, {"=> 2", "1"}, {"below 2", "1"}, {">=", "1"}} {
		_, err := plan.ParseBound(c[0], c[1])
		assert.Error(t, err, c)
	}
}

func diff(a, b float64) float64 {
	if a == b {
		return 0
	}
	return a - b
}

func TestQuantities(t *testing.T) {
	seen := map[plan.Quantity]bool{}
	for _, q := range plan.Quantities {
		assert.False(t, seen[q.Name], q.Name)
		seen[q.Name] = true
		assert.Contains(t, []string{"B/s", "1/s", "s", "B", "1"}, q.Unit)
		assert.Equal(t, q.Unit, q.Name.Unit())
		assert.NotEmpty(t, q.Doc)
	}
	assert.Empty(t, plan.Quantity("speed").Unit())
}

// FuzzFigure: whatever is accepted is finite, in order, and reads the same again.
func FuzzFigure(f *testing.F) {
	for _, text := range []string{"6.13 GB/s", "about 2.2 GB/s", "-0.5 s to 1 s", ">= 57%", "≤ 3", "0.9 to 1.1", "99999999999999999999999999999999999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, unit := range []string{"B/s", "1/s", "s", "B", "1"} {
			if fig, err := plan.ParseFigure(text, unit); err == nil {
				require.LessOrEqual(t, fig.Low, fig.High)
				require.False(t, math.IsInf(fig.Low, 0) || math.IsInf(fig.High, 0))
				same, err := plan.ParseFigure(fig.Text, unit)
				require.NoError(t, err)
				require.Equal(t, fig, same)
			}
			if b, err := plan.ParseBound(text, unit); err == nil {
				require.LessOrEqual(t, b.Low, b.High)
				same, err := plan.ParseBound(b.Text, unit)
				require.NoError(t, err)
				require.Equal(t, b, same)
			}
		}
	})
}
