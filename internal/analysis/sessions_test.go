package analysis

import (
	"fmt"
	"testing"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sessions plays a plan once for each factor, which all rates of that run share,
// and pools the runs.
func sessions(t *testing.T, p *plan.Plan, rounds int, factors ...float64) *result.Result {
	t.Helper()
	var runs []*result.Result
	for i, f := range factors {
		l := steady(flat(), 0.01)
		rate := l.rate
		l.rate = func(m moment) float64 { return f * rate(m) }
		r := play(p, rounds, l)
		r.Run = fmt.Sprintf("run-%d", i+1)
		runs = append(runs, r)
	}
	r, err := result.Pool(runs)
	require.NoError(t, err)
	require.NoError(t, Analyze(p, r, Options{}))
	return r
}

func headOf(t *testing.T, s result.Summary) result.Estimate {
	t.Helper()
	e, ok := findEstimate(s.Estimates, s.Headline)
	require.True(t, ok)
	return e
}

// Three sessions that differ by far more than their rounds: the interval has to
// say so, whatever the number of rounds.
func TestSessionsAreTheUnit(t *testing.T) {
	p := planOf(t, twoFormats)
	r := sessions(t, p, 5, 1, 1.2, 0.85)
	s := summaryOf(t, r, "format=UDSB", "new", "write")
	e := headOf(t, s)
	require.NotNil(t, e.CI)
	assert.Equal(t, "session", e.CI.Unit)
	assert.Greater(t, e.CI.High/e.CI.Low, 1.8)
	assert.Equal(t, 15, s.Rounds)
	require.Len(t, s.BySession, 3)
	assert.InEpsilon(t, 1.2, s.BySession[1].Value/s.BySession[0].Value, 0.02)
	assert.Equal(t, []any{"run-3", 5}, []any{s.BySession[2].Run, s.BySession[2].Rounds})

	single := summaryOf(t, analysed(t, p, 5, steady(flat(), 0.01)), "format=UDSB", "new", "write")
	assert.InEpsilon(t, headOf(t, single).Value, s.BySession[0].Value, 1e-9, "a session shows what its own report shows")
}

// What all sessions share cancels in paired ratios: the verdict stays, and says its unit.
func TestClaimsPairSessions(t *testing.T) {
	p := planOf(t, twoFormats)
	a := plan.Assert{Kind: "ratio", Left: op("write", "format", "UDSB"), Right: op("write", "format", "UDRW"), Bound: bound(t, "> 0", "1")}
	p.Claims = []plan.Claim{claimOf(a)}
	c := sessions(t, p, 3, 1, 1.2, 0.85).Claims[0]
	assert.Equal(t, result.Holds, c.Verdict, c.Reason)
	assert.Contains(t, c.Reason, "3 sessions")
	assert.NotContains(t, c.Reason, "round")
}

// Two sessions are too few to be the unit: rounds are, with a warning where the two differ.
func TestTwoSessionsAreWarnedOf(t *testing.T) {
	p := planOf(t, twoFormats)
	s := summaryOf(t, sessions(t, p, 3, 1, 1.2), "format=UDSB", "new", "write")
	assert.Equal(t, "round", headOf(t, s).CI.Unit)
	kinds := map[string]string{}
	for _, w := range s.Warnings {
		kinds[w.Kind] = w.Text
	}
	assert.Contains(t, kinds["sessions"], "differ by a factor of 1.")
	s = summaryOf(t, sessions(t, p, 3, 1, 1.001), "format=UDSB", "new", "write")
	for _, w := range s.Warnings {
		assert.NotEqual(t, "sessions", w.Kind)
	}
}
