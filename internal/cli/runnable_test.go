package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/plans"
)

// No plan that the program brings is refused by it: every one can be run as it is.
func TestShippedPlansCanBeRun(t *testing.T) {
	for _, name := range plans.Names() {
		text, ok := plans.Get(name)
		require.True(t, ok)
		p, problems := plan.Parse(name, text)
		require.NotNil(t, p, "%v", problems)
		require.NoError(t, checkRunnable(p), name)
	}
}
