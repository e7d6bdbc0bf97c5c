package analysis

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// verbCase is a case with attach steps, one a round.
func verbCase(id string, steps ...result.Step) result.Case {
	c := result.Case{ID: id, Keys: [][2]string{{"format", id}}, Status: result.Done}
	for i, st := range steps {
		st.Do, st.Round = "attach", i+1
		status := result.Done
		if st.Error != "" {
			status = result.Failed
		}
		c.Rounds = append(c.Rounds, result.CaseRound{Round: i + 1, Status: status})
		c.Steps = append(c.Steps, st)
	}
	return c
}

func TestFailuresAndRetriesAreCountedByVerb(t *testing.T) {
	busy := []result.Warning{{Kind: "cache", Text: "another"}, {Kind: "engine", Text: "Resource busy"}}
	again := result.Step{Retries: 2, Warnings: busy}
	old := result.Step{RetryNS: 5e6} // of a version that counted no tries
	bad := result.Step{Error: "no space", Retries: 3, Warnings: busy}
	found := result.Step{Error: "2 problems", Findings: []string{"a", "b"}}
	wanted := result.Step{Error: "refused", Expect: "fail"}
	native := verbCase("native", bad)
	open := verbCase("open", bad, result.Step{})
	open.Rounds[0].Status = result.Discarded // its steps do not count
	r := &result.Result{Cases: []result.Case{verbCase("UDRW", again, result.Step{RetryNS: 95}, result.Step{}), verbCase("UDSB", old, bad, bad, wanted),
		verbCase("UDZO", found), native, open}}
	s, err := newRunData(&plan.Plan{}, r)
	require.NoError(t, err)
	s.cases[3].plan.Baseline = true
	got := s.verbs()
	require.Len(t, got, 3)
	type counts struct {
		do, id                 string
		steps, failed, retried int
		reason                 string
	}
	var have []counts
	for _, v := range got {
		have = append(have, counts{v.Do, v.Case, v.Steps, v.Failed, v.Retried, v.Reason})
	}
	assert.Equal(t, []counts{
		{"attach", "", 8, 2, 2, "Resource busy"},
		{"attach", "UDRW", 3, 0, 1, "Resource busy"},
		{"attach", "UDSB", 3, 2, 1, "no space"},
	}, have)
	assert.Equal(t, "step", got[0].FailedCI.Unit)
	assert.Equal(t, "Clopper-Pearson", got[0].FailedCI.Method)
	assert.InDelta(t, 0.03185, got[0].FailedCI.Low, 1e-4)
	assert.InDelta(t, 0.65086, got[0].RetriedCI.High, 1e-4)
}
