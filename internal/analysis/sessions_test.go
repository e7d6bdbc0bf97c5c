package analysis

import (
	"fmt"
	"math/rand/v2"
	"slices"
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

// The value of a session is the centre of its rounds: the pooled estimate of each quantity is the mean of by_session on the
// scale of its unit, and what by_session has is in the report of the run alone.
func TestPooledEstimateIsTheMeanOfSessions(t *testing.T) {
	p := planOf(t, twoFormats)
	rng := rand.New(rand.NewPCG(7, 1))
	var runs []*result.Result
	var alone [][]result.Summary
	for i := range 3 {
		r := play(p, 1, steady(flat(), 0.01))
		r.Run, r.Rounds, r.Cases = fmt.Sprintf("run-%d", i+1), 3, r.Cases[:1]
		c := &r.Cases[0]
		c.Target.Format, c.Steps, c.Rounds = "UDSB", nil, nil
		for round := 1; round <= 3; round++ {
			c.Rounds = append(c.Rounds, result.CaseRound{Round: round, Status: result.Done})
			var kinds []string
			for _, q := range plan.Quantities {
				if !slices.Contains(kinds, q.Do) {
					kinds = append(kinds, q.Do)
					c.Steps = append(c.Steps, randomStep(rng, q.Do, len(kinds), round))
				}
			}
		}
		own := *r
		require.NoError(t, Analyze(p, &own, Options{}))
		runs, alone = append(runs, r), append(alone, own.Summaries)
	}
	pooled, err := result.Pool(runs)
	require.NoError(t, err)
	require.NoError(t, Analyze(p, pooled, Options{}))
	seen := map[string]bool{}
	for i, s := range pooled.Summaries {
		seen[s.Op] = true
		e := headOf(t, s)
		var values []float64
		for k, v := range s.BySession {
			values = append(values, v.Value)
			assert.InEpsilon(t, headOf(t, alone[k][i]).Value, v.Value, 1e-12, s.Op)
		}
		require.Len(t, values, 3, s.Op)
		assert.InEpsilon(t, centre(e.Unit, values), e.Value, 1e-12, "%s %s", s.Op, s.Operation)
		if least, ok := findEstimate(s.Estimates, minimum); ok && !isPerFile(plan.Quantity(s.Op)) {
			assert.LessOrEqual(t, least.Value, slices.Min(values), "the least of all rounds")
		}
	}
	for _, q := range plan.Quantities {
		assert.True(t, seen[string(q.Name)], "%s was not pooled", q.Name)
	}
}

// randomStep is a step of a kind with random values wherever a quantity is read from.
func randomStep(rng *rand.Rand, do string, index, round int) result.Step {
	n := func() int64 { return 1_000_000 + rng.Int64N(9_000_000) }
	st := result.Step{Index: index, Do: do, Phase: "p", Round: round, Session: 1, DurationNS: n(), Live: n(), BytesFreed: n(), AttachNS: n(),
		Disk: &result.DiskUse{Attached: true, Allocated: n(), Apparent: n(), Bands: int(n()), BandsFull: int(n()), VolumeFree: n(), HostFree: n()},
		Made: &result.DiskUse{Allocated: n()}, Stream: &result.Stream{In: n(), Out: n(), Ratio: float64(n()), Saving: float64(n())},
		Changes:  &result.Changes{Changed: int(n()), Added: 1, Removed: 1, Bytes4K: n(), Bytes64K: n(), Bytes1M: n(), BytesWhole: n(), Edited: n()},
		Recovery: &result.Recovery{Noticed: "attach", Lost: int(n()), Damaged: int(n())}, OperationsSpan: &result.OperationsSpan{DurationNS: n()}}
	if do == "write" || do == "read" {
		st.Stream = nil
		for i := range 3 {
			st.Samples = append(st.Samples, result.Sample{File: fmt.Sprint(i), Bytes: n(), DurationNS: n(), Set: 1, Order: i})
		}
	}
	for _, kind := range []string{"read", "write"} {
		var l result.Latencies
		for range 100 {
			l.Add(n())
		}
		st.Operations = append(st.Operations, result.Operations{Kind: kind, Count: 100, Bytes: n(), Latency: l.Histogram()})
	}
	return st
}
