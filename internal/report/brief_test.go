package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/report/reporttest"
	"dmgbench/internal/result"
)

// The report without Verbose is one screen, whatever was measured.
func TestBriefIsOneScreen(t *testing.T) {
	t.Parallel()
	for name := range makers {
		t.Run(name, func(t *testing.T) {
			out := text(t, shared(name), TextOptions{})
			assert.LessOrEqual(t, strings.Count(out, "\n"), 60, out) // of quick 40: see screen.txtar
			for line := range strings.Lines(out) {
				assert.LessOrEqual(t, Width(strings.TrimSuffix(line, "\n")), 80, line)
			}
		})
	}
}

// Of the verdicts only those that do not hold or are undecided are named; a warning is printed once, with how often it was found.
func TestBriefNamesWhatMatters(t *testing.T) {
	t.Parallel()
	p, r := reporttest.Sample()
	r.Warnings = nil
	r.Departures = nil
	for i := range r.Cases {
		for k := range r.Cases[i].Steps {
			r.Cases[i].Steps[k].Warnings = nil
		}
	}
	busy := []result.Warning{{Kind: "busy", Text: "other work was going on: load average 10 on 2 processors"}}
	for k := range 7 {
		r.Cases[0].Steps[k].Warnings = busy
	}
	out := text(t, func() (*plan.Plan, *result.Result) { return p, r }, TextOptions{})
	assert.Contains(t, out, "on 2 processors (7 times)")
	assert.Equal(t, 1, strings.Count(out, "other work was going on"))
	for _, c := range r.Claims {
		says := strings.Join(strings.Fields(out), " ")
		named := c.Verdict == result.DoesNotHold || c.Verdict == result.CannotTell
		assert.Equal(t, named, strings.Contains(says, c.Says), c.Says)
	}
	require.NotEmpty(t, r.Claims)
}
