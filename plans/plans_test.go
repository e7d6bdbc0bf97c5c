package plans_test

import (
	"slices"
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

// What an edit frees is given back when the image is mounted again. So that a
// manifest has the whole cost of the edits before it, and the next one none of it,
// the image is attached and detached without an edit before each manifest.
func TestManifestsHaveTheWholeCostOfTheirEdits(t *testing.T) {
	changing := []string{"write", "edit", "delete", "tree", "copy", "stream", "random", "mkdir"}
	checked := 0
	for _, name := range plans.Names() {
		p := load(t, name)
		for _, c := range p.Cases() {
			changed := map[string]bool{} // containers that were not attached again since
			for _, s := range c.Steps {
				switch {
				case slices.Contains(changing, s.Do) && s.Action != "list" && s.Action != "read":
					changed[s.On] = true
				case s.Do == "attach":
					changed[s.On] = false
				case s.Do == "manifest":
					checked++
					assert.False(t, changed[s.On], "%s, %s: manifest %s", name, c.ID, s.Phase)
				}
			}
		}
	}
	assert.Positive(t, checked)
}

// Advice on speed is not judged by bytes: it names the criteria that its author
// spoke of, unless the first of them is a speed, too.
func TestAdviceIsJudgedByWhatItIsAbout(t *testing.T) {
	for _, name := range plans.Names() {
		for _, u := range load(t, name).Uses {
			for _, a := range u.Advice {
				isSpeed := u.Decide[0].Quantity.Unit() == "1/s"
				assert.True(t, isSpeed || len(a.Criteria) > 0, "%s, %s: %s", name, u.Name, a.Says)
			}
		}
	}
}

func TestGet(t *testing.T) {
	for _, name := range []string{"", ".", "no-such-plan", "plans.go", "../go.mod", "plans"} {
		_, ok := plans.Get(name)
		assert.False(t, ok, name)
	}
}
