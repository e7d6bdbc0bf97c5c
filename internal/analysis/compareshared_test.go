package analysis

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/result"
)

// Cases of two runs share two sessions, which are too few: the row is of their rounds,
// and says in how many sessions these were.
func TestCompareCasesOfTwoRuns(t *testing.T) {
	by := CompareOptions{By: []string{"format"}}
	for _, r := range compared(t, by, sessionsOf(t, "4", 0.01, 1, 2)).Rows {
		assert.Equal(t, perRound, r.CI.Unit)
		assert.Equal(t, []string{"both sides were measured in 2 shared sessions, round by round: what another session would show is not known"}, r.Warnings)
	}
	for _, r := range compared(t, by, sessionsOf(t, "4", 0.01, 1)).Rows {
		assert.Equal(t, []string{"both sides were measured in 1 shared session, round by round: what another session would show is not known"}, r.Warnings)
	}
	// Of one round each, nothing: two sessions on both sides are not what is missing.
	for runs, where := range map[int]string{1: "1 shared session, with 1 round", 2: "2 shared sessions, with 2 rounds"} {
		short := sessionsOf(t, "4", 0.01, 1, 2)[:runs]
		for _, r := range short {
			onlyRound(r, 1)
		}
		for _, r := range compared(t, by, short).Rows {
			assert.Equal(t, RowSessionUnknown, r.Status)
			assert.Contains(t, r.Reason, "both sides were measured in "+where+" that both have; three sessions that both have would show")
			assert.NotContains(t, r.Reason, "two on both")
		}
	}
}

// onlyRound leaves one round of a run.
func onlyRound(r *result.Result, n int) {
	r.Rounds = 1
	for i := range r.Cases {
		var kept []result.CaseRound
		for _, x := range r.Cases[i].Rounds {
			if x.Round == n {
				kept = append(kept, x)
			}
		}
		r.Cases[i].Rounds = kept
	}
}

// Rounds that were added until intervals were narrow pay for the looks also where they are compared.
func TestCompareRoundsPayForTheLooks(t *testing.T) {
	looks := []int{5, 9, 17, 30}
	by := CompareOptions{By: []string{"format"}}
	run := sessionsOf(t, "4", 0.3, 1)
	fixed := compared(t, by, run).Rows[0]
	run[0].Auto = &result.AutoRounds{Looks: looks}
	auto := compared(t, by, run).Rows[0]
	assert.InEpsilon(t, min(1, 4**fixed.P), *auto.P, 1e-12)
	assert.Equal(t, fixed.Ratio, auto.Ratio)
	assert.Equal(t, fixed.CI.Level, auto.CI.Level)
	assert.Equal(t, fixed.CI.Method+", 4 looks", auto.CI.Method)
	assert.Greater(t, auto.CI.High/auto.CI.Low, fixed.CI.High/fixed.CI.Low)

	// One session a side: the interval over rounds alone is of the same kind.
	a, b := sessionsOf(t, "4", 0.1, 1), sessionsOf(t, "5", 0.1, 1)
	fixed = compared(t, CompareOptions{}, a, b).Rows[0]
	b[0].Auto = &result.AutoRounds{Looks: looks}
	auto = compared(t, CompareOptions{}, a, b).Rows[0]
	require.NotNil(t, auto.CI)
	assert.Equal(t, stats.MethodWelch+", 4 looks", auto.CI.Method)
	assert.Less(t, auto.CI.Low, fixed.CI.Low)

	// Sessions are not what was looked at.
	a, b = sessionsOf(t, "4", 0.1, 1, 1, 1), sessionsOf(t, "5", 0.1, 1, 1, 1)
	os := CompareOptions{By: []string{"os"}}
	fixed = compared(t, os, a, b).Rows[0]
	for _, r := range append(a, b...) {
		r.Auto = &result.AutoRounds{Looks: looks}
	}
	assert.Equal(t, fixed, compared(t, os, a, b).Rows[0])
}
