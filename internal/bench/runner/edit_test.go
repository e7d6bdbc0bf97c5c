package runner_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

const editPlan = `
schema = 1
title = "Edits"
[image]
size = "32 MB"
[matrix]
format = ["UDRW", "UDSB"]
[files.f]
sizes = ["100 kB", "200 kB"]
sets = 2
[run]
rounds = 1
canary = false
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "write", phase = "new" },
  { do = "detach" },
  { do = "manifest", phase = "new" },
  { do = "attach" },
  { do = "edit", phase = "blocks", kind = "overwrite", share = "100%", count = 2 },
  { do = "edit", phase = "log", kind = "append", amount = "10 kB" },
  { do = "verify" },
  { do = "detach" },
  { do = "manifest", phase = "edited" },
  { do = "manifest", phase = "again" },
  { do = "attach" },
  { do = "delete", phase = "all", all = true },
  { do = "detach" },
]
`

// The files that were edited are no longer compared with what was written, and
// are deleted with the others; a manifest counts what was edited since the last.
func TestEditedFilesAreCountedOnce(t *testing.T) {
	c := config(t, editPlan)
	c.Engine = inprocess.New(nil)
	out, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusDone, out.Status)
	for _, cs := range fold(t, c.Out).Cases {
		require.Equal(t, result.Done, cs.Status, cs.Reason)
		var edited []int64
		for _, st := range cs.Steps {
			switch st.Do + " " + st.Phase {
			case "edit log":
				assert.EqualValues(t, 610_000, st.Live)
			case "delete all":
				assert.Zero(t, st.Live)
			case "manifest new":
				assert.Nil(t, st.Changes, "the first has none to compare with")
			case "manifest edited":
				edited = append(edited, st.Changes.Edited)
				assert.GreaterOrEqual(t, st.Changes.Bytes4K, st.Changes.Edited)
				assert.LessOrEqual(t, st.Changes.Bytes4K, st.Changes.Bytes64K)
				assert.LessOrEqual(t, st.Changes.Bytes1M, st.Changes.BytesWhole)
			case "manifest again":
				assert.Equal(t, &result.Changes{}, st.Changes)
			}
		}
		require.Len(t, edited, 1)
		assert.Contains(t, []int64{210_000, 310_000, 410_000}, edited[0], "two files of 100 or 200 kB, and 10 kB")
	}
}

func TestEditsAreEstimatedForTheRoomThatTheyTake(t *testing.T) {
	p, problems := plan.Parse("edits", []byte(editPlan))
	require.Empty(t, problems.Errors())
	totals := plan.Estimate(p, p.Cases()[0])
	assert.EqualValues(t, 600_000+300_000+10_000, totals.BytesWritten)
	assert.EqualValues(t, 610_000, totals.LivePeak)
	assert.True(t, totals.Approximate, "which files are edited is drawn")
	_, problems = plan.Parse("edits", []byte(strings.Replace(editPlan, `amount = "10 kB"`, `amount = "40 MB"`, 1)))
	require.Len(t, problems.Errors(), 1)
	assert.ErrorContains(t, problems, "the files cannot fit")
}
