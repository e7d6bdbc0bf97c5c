package runner_test

import (
	"os"
	"path/filepath"
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
[inputs.movie]
about = "any file"
size = "50 kB"
optional = true
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
  { do = "copy", from = "movie", to = "movie" },
  { do = "detach" },
  { do = "manifest", phase = "copied" },
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
	seen := &far{}
	c.Progress = seen
	out, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusDone, out.Status)
	assert.GreaterOrEqual(t, seen.last.RunBytes, int64(3*(600_000+200_000+10_000+50_000)), "edits count as written")
	for _, cs := range fold(t, c.Out).Cases {
		require.Equal(t, result.Done, cs.Status, cs.Reason)
		var edited []int64
		for _, st := range cs.Steps {
			switch st.Do + " " + st.Phase {
			case "edit log":
				assert.EqualValues(t, 610_000, st.Live)
				assert.EqualValues(t, 10_000, st.Written)
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
			case "manifest copied":
				assert.EqualValues(t, 50_000, st.Changes.Edited, "a copy to the volume counts, too")
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
	assert.EqualValues(t, 600_000+300_000+10_000+50_000, totals.BytesWritten)
	assert.EqualValues(t, 660_000, totals.LivePeak)
	assert.True(t, totals.Approximate, "which files are edited is drawn")
	_, problems = plan.Parse("edits", []byte(strings.Replace(editPlan, `amount = "10 kB"`, `amount = "40 MB"`, 1)))
	require.Len(t, problems.Errors(), 2, "the edit, and the copy after it")
	assert.ErrorContains(t, problems, "the files cannot fit")
}

// The setting of the case decides unless the step does; a checksum of UDZO is
// verified in both engines of this program.
func TestVerifyIsAnAxis(t *testing.T) {
	c := config(t, `
schema = 1
title = "Verified"
[image]
size = "8 MB"
format = "UDRW"
[matrix]
verify = ["on", "off"]
[files.f]
sizes = ["100 kB"]
[run]
rounds = 1
canary = false
baseline = false
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "write", phase = "new" },
  { do = "detach" },
  { do = "convert", as = "small", format = "UDZO" },
  { do = "damage", on = "small", as = "hurt", kind = "volume" },
  { do = "attach", phase = "forced", on = "hurt", mount = false, verify = true, expect = "fail" },
  { do = "attach", phase = "own", on = "hurt", mount = false },
]
`)
	c.Engine = inprocess.New(nil)
	_, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	cases := fold(t, c.Out).Cases
	require.Len(t, cases, 2)
	assert.Contains(t, cases[0].Reason, "checksum")
	assert.Equal(t, result.Failed, cases[0].Status)
	assert.Equal(t, result.Done, cases[1].Status, cases[1].Reason)
}

const backedPlan = `
schema = 1
title = "Backed"
[target]
kind = "directory"
place = "vault"
[files.f]
sizes = ["100 kB"]
[run]
rounds = 1
canary = false
baseline = false
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "write", phase = "new" },
  { do = "detach" },
  { do = "measure", phase = "before" },
  { do = "manifest", phase = "before" },
  { do = "pause", message = "add a file" },
  { do = "measure", phase = "after" },
  { do = "manifest", phase = "after" },
  { do = "manifest", phase = "again" },
]
`

// Sizes and changes of a native folder at a place are those of the folder in
// which the place keeps its files, as of when the container was made.
func TestSizesAreThoseOfTheBackingFolder(t *testing.T) {
	c := config(t, backedPlan)
	place, backing := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(backing, "old"), make([]byte, 1<<20), 0o600))
	c.Places = []runner.Place{{Name: "vault", Path: place, Backing: backing}}
	out, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusPaused, out.Status)
	require.NoError(t, os.Mkdir(filepath.Join(backing, "deep"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(backing, "deep", "new"), make([]byte, 50_000), 0o600))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(backing, "link")))
	c.Places = nil // known from the registry
	out, err = runner.Resume(t.Context(), c.Out, c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusDone, out.Status)
	cs := fold(t, c.Out).Cases[0]
	require.Equal(t, result.Done, cs.Status, cs.Reason)
	for _, st := range cs.Steps {
		switch st.Do + " " + st.Phase {
		case "measure before":
			assert.Zero(t, st.Disk.Apparent, "the files of this test are elsewhere")
		case "measure after":
			assert.EqualValues(t, 50_000, st.Disk.Apparent)
			assert.GreaterOrEqual(t, st.Disk.Allocated, int64(50_000))
		case "manifest after":
			assert.Nil(t, st.Changes, "manifests end with the session")
		case "manifest again":
			assert.Equal(t, &result.Changes{}, st.Changes)
		}
	}
	c.Places = []runner.Place{{Name: "vault", Path: place, Backing: filepath.Join(backing, "missing")}}
	c.Out = filepath.Join(t.TempDir(), "run")
	_, err = runner.Run(t.Context(), c)
	require.ErrorContains(t, err, `opening the backing folder of place "vault"`)
}
