package analysis

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/result"
)

func TestOverRounds(t *testing.T) {
	t.Parallel()
	e := MeanOverRounds(&result.Result{}, "B/s", map[int]float64{1: 1, 2: 10, 3: 100})
	assert.InDelta(t, 10, e.Value, 1e-9, "geometric")
	require.NotNil(t, e.CI)
	assert.Equal(t, "round", e.CI.Unit)
	assert.InDelta(t, 10*10, e.CI.Low*e.CI.High, 1e-6, "symmetric in logarithms")
	assert.InDelta(t, 0, MeanOverRounds(&result.Result{}, "", map[int]float64{1: -1, 2: 0, 3: 1}).Value, 1e-12, "differences as they are")

	few := MeanOverRounds(&result.Result{}, "s", map[int]float64{1: 1, 2: 2})
	assert.Nil(t, few.CI)
	assert.Contains(t, few.Why, "2 rounds")

	auto := MeanOverRounds(&result.Result{Auto: &result.AutoRounds{Looks: []int{5, 9}}}, "B/s", map[int]float64{1: 1, 2: 10, 3: 100})
	require.NotNil(t, auto.CI)
	assert.Less(t, auto.CI.Low, e.CI.Low, "two looks cost width")

	// Three pooled runs are three values, however many rounds each has.
	pooled := &result.Result{Runs: []result.PooledRun{{First: 1, Last: 2}, {First: 3, Last: 4}, {First: 5, Last: 6}}}
	p := MeanOverRounds(pooled, "B/s", map[int]float64{1: 1, 2: 1, 3: 10, 4: 10, 5: 100, 6: 100})
	assert.Equal(t, 3, p.N)
	require.NotNil(t, p.CI)
	assert.Equal(t, "session", p.CI.Unit)
	assert.InDelta(t, e.CI.Low, p.CI.Low, 1e-9)
}
