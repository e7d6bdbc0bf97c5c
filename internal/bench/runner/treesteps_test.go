package runner_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/bench/engine/simulated"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/clock"
)

const treePlan = `
schema = 1
title = "Trees"
[image]
format = "UDSB"
size = "64 MB"
[io]
files = "small"
[files.small]
tree = { files = 40, folders = 5, depth = 2, sizes = ["1 kB", "9 kB"], links = "10%", executables = "10%" }
[files.other]
data = "zero"
tree = { files = 12, folders = 2, sizes = ["3 kB"] }
[files.plain]
sizes = ["100 kB"]
[inputs.input]
about = "any file"
size = "100 kB"
optional = true
[run]
rounds = 1
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "write", files = "plain" },
  { do = "tree", action = "create" },
  { do = "tree", action = "create", files = "other", phase = "other" },
  { do = "mkdir", dir = "a/b" },
  { do = "copy", from = "input", to = "a/b/file" },
  { do = "remount" },
  { do = "tree", action = "list" },
  { do = "tree", action = "rewrite", share = "50%" },
  { do = "tree", action = "rename", files = "small" },
  { do = "tree", action = "list", files = "small", phase = "small-list" },
  { do = "tree", action = "read" },
  { do = "verify", batch = "all" },
  { do = "read" },
  { do = "copy_out" },
  { do = "tree", action = "delete" },
  { do = "tree", action = "delete", files = "small", phase = "small" },
  { do = "measure", phase = "end" },
  { do = "detach" },
]
[[protocol]]
when = { target = "image" }
steps = [
  { do = "convert", as = "zip", format = "UDZO" },
  { do = "attach", on = "zip" },
  { do = "copy_out", on = "zip", phase = "zip" },
  { do = "detach", on = "zip" },
]
`

// operationsOf are the numbers of operations of a step by kind.
func operationsOf(st result.Step) map[string]int64 {
	n := map[string]int64{}
	for _, o := range st.Operations {
		n[o.Kind] = o.Count
	}
	return n
}

// TestTreesOnImagesAndFolders: every step on trees leaves the files that verify
// expects, copies are removed, and what was written is counted.
func TestTreesOnImagesAndFolders(t *testing.T) {
	c, seen := config(t, treePlan), &far{}
	c.Engine, c.Clock, c.Progress = inprocess.New(nil), clock.NewReal(), seen
	out, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusDone, out.Status)
	assert.Equal(t, seen.last.OfRunBytes, seen.last.RunBytes, "the estimate has what was written")
	for _, cs := range fold(t, c.Out).Cases {
		require.Equal(t, result.Done, cs.Status, cs.Reason)
		steps := map[string]result.Step{}
		for _, st := range cs.Steps {
			steps[st.Do+" "+st.Phase] = st
			if st.Do == "tree" || st.Do == "copy_out" {
				assert.Positive(t, st.OperationsSpan.DurationNS)
				assert.LessOrEqual(t, st.OperationsSpan.DurationNS, st.DurationNS)
				assert.Positive(t, st.OperationsSpan.OwnNS)
				assert.Less(t, st.OperationsSpan.OwnNS, int64(100*time.Microsecond))
			}
		}
		assert.Equal(t, map[string]int64{"list": 3, "stat": 12}, operationsOf(steps["tree list"]), "the newest tree")
		assert.Equal(t, map[string]int64{"rewrite": 6}, operationsOf(steps["tree rewrite"]))
		assert.Equal(t, map[string]int64{"rename": 40}, operationsOf(steps["tree rename"]))
		assert.Len(t, steps["read "].Samples, 1, "only the file outside of trees")
		all, links := steps["copy_out "], map[bool]int64{false: 0, true: 4}[cs.Baseline]
		assert.EqualValues(t, 40+12+1+1, operationsOf(all)["copy"])
		assert.Equal(t, links, operationsOf(all)["symlink"])
		assert.Positive(t, all.AttachNS)
		assert.Less(t, all.AttachNS, int64(time.Hour))
		assert.Zero(t, operationsOf(steps["tree delete"])["rename"])
		assert.EqualValues(t, 200_000, steps["measure end"].Live, "the file, and the input")
		if !cs.Baseline {
			assert.Positive(t, operationsOf(steps["copy_out zip"])["copy"])
		}
	}
	left, err := filepath.Glob(filepath.Join(c.Out, "*", "*-out"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

// TestTreesOnTheSimulatedDevice: times follow the law, and two runs are alike.
func TestTreesOnTheSimulatedDevice(t *testing.T) {
	var spans [2][]int64
	for i := range spans {
		c := config(t, treePlan)
		c.Plan.Protocol = c.Plan.Protocol[:1] // the device converts nothing, and has no content
		steps := &c.Plan.Protocol[0].Steps
		*steps = slices.DeleteFunc(*steps, func(st plan.Step) bool { return st.Do == "verify" })
		m, err := simulated.Parse("write = 1 GB/s\nread = 1 GB/s\nlatency = 1 ms\nmount_noise = 5%")
		require.NoError(t, err)
		e, err := simulated.New(m, c.Clock, 1, 1)
		require.NoError(t, err)
		c.Engine = e
		out, err := runner.Run(t.Context(), c)
		require.NoError(t, err)
		require.Equal(t, runner.StatusDone, out.Status)
		for _, st := range fold(t, c.Out).Cases[0].Steps {
			if st.OperationsSpan != nil {
				assert.Positive(t, st.OperationsSpan.DurationNS, st.Phase)
				assert.Zero(t, st.OperationsSpan.OwnNS)
				spans[i] = append(spans[i], st.OperationsSpan.DurationNS)
			}
		}
	}
	assert.Len(t, spans[0], 10)
	assert.Equal(t, spans[0], spans[1])
}

// meddler changes copies as soon as they are made.
type meddler struct {
	far
	out string
}

func (m *meddler) Status(s runner.Status) {
	if s.Do != "copy_out" {
		return
	}
	copies, _ := filepath.Glob(filepath.Join(m.out, "*", "*-out", "batch003", "*.dat"))
	for _, name := range copies {
		_ = os.WriteFile(name, []byte("other"), 0o600)
	}
}

// TestCopyThatDiffersFailsTheStep: the copy is compared with the volume.
func TestCopyThatDiffersFailsTheStep(t *testing.T) {
	c := config(t, treePlan)
	c.Engine, c.Clock, c.Progress = inprocess.New(nil), clock.NewReal(), &meddler{out: c.Out}
	_, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	cs := fold(t, c.Out).Cases[0]
	require.Equal(t, result.Failed, cs.Status)
	assert.Contains(t, cs.Rounds[0].Reason, "files were not copied as they are, first: file \"batch003/")
	left, err := filepath.Glob(filepath.Join(c.Out, "*", "*-out"))
	require.NoError(t, err)
	assert.Empty(t, left)
}
