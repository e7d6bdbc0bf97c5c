package plan_test

import (
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
)

// mustParse reads a plan that has to be right.
func mustParse(t require.TestingT, text string) *plan.Plan {
	p, problems := plan.Parse("test.toml", []byte(text))
	require.Empty(t, problems.Errors())
	require.NotNil(t, p)
	return p
}
