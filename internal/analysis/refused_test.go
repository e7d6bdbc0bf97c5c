package analysis

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// An estimator that one round refuses is left out: the rounds in which the line
// happened to rise are no sample of anything.
func TestNoEstimateOfChosenRounds(t *testing.T) {
	l := steady(flat(), 0)
	rate := l.rate
	l.rate = func(m moment) float64 {
		if m.round == 2 {
			return rate(m) * float64(m.size) * float64(m.size) / 4e12 // larger files take less time
		}
		return rate(m)
	}
	s := summaryOf(t, analysed(t, planOf(t, twoFormats), 4, l), "format=UDSB", "new", "write")
	for _, name := range []string{theilSen, leastSquares, weighted} {
		_, ok := findEstimate(s.Estimates, name)
		assert.False(t, ok, name)
	}
	e, ok := findEstimate(s.Estimates, aggregate)
	assert.True(t, ok)
	assert.NotNil(t, e.CI)
}
