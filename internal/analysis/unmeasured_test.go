package analysis

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// endRounds makes the rounds of a case that are named end with a status, as a step that was not played did.
func endRounds(r *result.Result, id, status string, rounds ...int) {
	for i := range r.Cases {
		c := &r.Cases[i]
		if c.ID != id {
			continue
		}
		c.Status, c.Reason = status, "compact: the disk is full"
		for _, n := range rounds {
			c.Rounds[n-1].Status, c.Rounds[n-1].Reason = status, c.Reason
		}
	}
}

// A case that was not measured to the end decides no claim, however many of its rounds were.
func TestNoVerdictOfACaseThatIsNotMeasured(t *testing.T) {
	for name, pair := range kinds(t) {
		for _, status := range []string{result.Failed, result.Discarded} {
			t.Run(name+" "+status, func(t *testing.T) {
				p := withFit(planOf(t, threeFormats))
				p.Claims = []plan.Claim{claimOf(pair[0])}
				r := play(p, 5, threeRates(0.01))
				for _, id := range []string{"format=UDRW", "format=UDSB", "format=UDSP"} {
					endRounds(r, id, status, 5)
				}
				require.NoError(t, Analyze(p, r, Options{}))
				assert.Equal(t, result.NotMeasured, r.Claims[0].Verdict, r.Claims[0].Reason)
				assert.Contains(t, r.Claims[0].Reason, status+": compact: the disk is full")
				assert.NotEmpty(t, r.Summaries, "four rounds were")
			})
		}
	}
}

// What was measured before a step failed in every round keeps its rows, and says so; where a round counts, only such do.
func TestRowsOfACaseThatEndedEarly(t *testing.T) {
	for _, status := range []string{result.Failed, result.Skipped} {
		p := planOf(t, threeFormats)
		r := play(p, 3, threeRates(0.01))
		endRounds(r, "format=UDRW", status, 1, 2, 3)
		endRounds(r, "format=UDSB", status, 2, 3)
		require.NoError(t, Analyze(p, r, Options{}))
		s := summaryOf(t, r, "format=UDRW", "last", "write")
		assert.Equal(t, 3, s.Rounds)
		assert.Contains(t, s.Warnings, result.Warning{Kind: "incomplete", Text: fmt.Sprintf("the case was %s, and this was measured before: compact: the disk is full", status)})
		assert.Equal(t, 1, summaryOf(t, r, "format=UDSB", "last", "write").Rounds)
		judged, _, err := Widths(p, r)
		require.NoError(t, err)
		for _, other := range []string{"format=UDSB", "format=UDSP", "baseline=true"} {
			endRounds(r, other, status, 1, 2, 3)
		}
		none, _, err := Widths(p, r)
		require.NoError(t, err)
		assert.Positive(t, judged)
		assert.Zero(t, none, "more rounds of cases that fail narrow nothing")
	}
}

// Steps that moved no bytes have no rate: one of nothing would be below every bound.
func TestNoVerdictOfTheRateOfNothing(t *testing.T) {
	p := planOf(t, twoFormats)
	p.Claims = []plan.Claim{claimOf(plan.Assert{Kind: "bound", Left: op("write", "format", "UDSB", "phase", "new"),
		Bound: bound(t, "< 1 GB/s", "B/s")})}
	r := play(p, 3, steady(flat(), 0))
	for _, c := range r.Cases {
		for _, st := range c.Steps {
			if st.Span != nil {
				st.Span.Bytes = 0
			}
		}
	}
	require.NoError(t, Analyze(p, r, Options{}))
	assert.Equal(t, result.CannotTell, r.Claims[0].Verdict)
	assert.Contains(t, r.Claims[0].Reason, "nothing was transferred")
}
