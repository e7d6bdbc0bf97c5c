package analysis

import (
	"math"
	"testing"

	"dmgbench/internal/result"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The value of an estimate is the centre of its own interval: latencies are
// averaged as they are, rates through their logarithms.
func TestIntervalsBelongToTheirValues(t *testing.T) {
	seen := 0
	for _, s := range analysed(t, planOf(t, twoFormats), 4, steady(flat(), 0.05)).Summaries {
		for _, e := range s.Estimates {
			if e.CI == nil || e.CI.Unit != "round" {
				continue
			}
			seen++
			middle := (e.CI.Low + e.CI.High) / 2
			if e.CI.Method == "Student t of logarithms" {
				middle = math.Sqrt(e.CI.Low * e.CI.High)
			}
			assert.InEpsilon(t, 1+e.Value, 1+middle, 1e-9, "%s of %s", e.Name, s.Op)
			if e.Name == "latency" {
				assert.Equal(t, "Student t", e.CI.Method)
			}
		}
	}
	require.NotZero(t, seen)
}

// Of one round, the interval of the latency comes from resampled files and holds it.
func TestLatencyOfOneRound(t *testing.T) {
	r := analysed(t, planOf(t, twoFormats), 1, steady(flat(), 0.05))
	found := false
	for _, s := range r.Summaries {
		for _, e := range s.Estimates {
			if e.Name != "latency" {
				continue
			}
			if e.N < 20 {
				assert.Nil(t, e.CI)
				assert.Contains(t, e.Why, "need at least 20")
				continue
			}
			require.NotNil(t, e.CI, "%s", e.Why)
			assert.Equal(t, result.CI{Low: e.CI.Low, High: e.CI.High, Level: 0.95, Method: e.CI.Method, Unit: "file within one mount"}, *e.CI)
			assert.LessOrEqual(t, e.CI.Low, e.Value)
			assert.GreaterOrEqual(t, e.CI.High, e.Value)
			found = true
		}
	}
	assert.True(t, found)
}
