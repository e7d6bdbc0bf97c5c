package plans_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/plans"
)

// TestShipped: every plan reads without a word, has cases that do something, and
// can be made small.
func TestShipped(t *testing.T) {
	for _, name := range plans.Names() {
		t.Run(name, func(t *testing.T) {
			p := load(t, name)
			assert.Equal(t, name, p.Name)
			assert.NotEmpty(t, p.Summary)
			for _, c := range p.Cases() {
				assert.NotEmpty(t, c.Steps, c.ID)
				assert.NotEmpty(t, plan.Estimate(p, c).Steps, c.ID)
			}
			small, changes, err := p.Apply(plan.Overrides{Sets: 1, Scale: 0.001, Rounds: 1})
			require.NoError(t, err)
			assert.NotEmpty(t, changes)
			assert.Len(t, small.Cases(), len(p.Cases()), "a small run has the same cases")
			for _, c := range small.Cases() {
				e := plan.Estimate(small, c)
				if c.Settings.Target == "image" {
					assert.LessOrEqual(t, float64(e.LivePeak), float64(c.Settings.Size)*float64(small.Run.FitsIn), c.ID)
				}
			}
		})
	}
}

func TestGet(t *testing.T) {
	for _, name := range []string{"", ".", "no-such-plan", "plans.go", "../go.mod", "plans"} {
		_, ok := plans.Get(name)
		assert.False(t, ok, name)
	}
}
