package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The limit of what is followed counts steps and files together.
func TestLimitOfWorkIsASum(t *testing.T) {
	f := &stepChecker{checker: &checker{work: maxWork / 2}, e: &estimator{Totals: Totals{Files: maxWork / 2}}}
	require.False(t, f.checkStep(&Step{Do: "settle"}))
	assert.True(t, f.e.stop)
}
