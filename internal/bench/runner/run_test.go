package runner_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine/directory"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/clock"
)

const small = `
schema = 1
title = "Small"
[target]
kind = "directory"
[io]
cache = "buffered"
[files.few]
sizes = ["10 kB", "4097 B", "1 B"]
sets = 2
[run]
rounds = 2
canary = false
[matrix]
workers = [1, 2]
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "write", phase = "new", files = "few" },
  { do = "settle", at_least = "10 min" },
  { do = "remount" },
  { do = "read", phase = "new" },
  { do = "verify", phase = "new" },
  { do = "delete", last_sets = 1 },
  { do = "verify", phase = "rest", batch = "all" },
  { do = "measure", phase = "end" },
]
`

// withCanary writes and reads more for its canaries than for all of its steps.
var withCanary = strings.Replace(small, "canary = false", "canary = true", 1)

func config(t *testing.T, text string) runner.Config {
	t.Helper()
	p, problems := plan.Parse("small", []byte(text))
	if problems != nil {
		require.Empty(t, problems.Errors(), "%v", problems)
	}
	dir := t.TempDir()
	return runner.Config{
		Plan: p, Tool: result.Tool{Name: "dmgbench", Version: "test"}, Out: filepath.Join(dir, "run"),
		Engine: directory.Engine{}, Why: "a test", Clock: clock.NewVirtual(time.Unix(0, 0)), StateDir: filepath.Join(dir, "state"),
		Volatile: true, // no test cuts the power
	}
}

func fold(t *testing.T, dir string) *result.Result {
	t.Helper()
	rd, err := result.OpenRun(dir)
	require.NoError(t, err)
	defer rd.Close()
	recs, err := rd.Journal()
	require.NoError(t, err)
	r, err := result.Fold(recs)
	require.NoError(t, err)
	return r
}

func TestRunMeasuresEveryCaseAndLeavesNothing(t *testing.T) {
	c, seen := config(t, withCanary), &far{}
	c.Progress = seen
	out, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusDone, out.Status)
	assert.Equal(t, []int{3, 4}, []int{seen.last.CaseRound, seen.last.OfRounds}, "two cases, two rounds; the last is under way")
	assert.Equal(t, seen.last.OfRunBytes, seen.last.RunBytes, "canaries are not in the plan")
	r := fold(t, c.Out)
	require.Len(t, r.Cases, 2)
	for _, cs := range r.Cases {
		require.Equal(t, result.Done, cs.Status, cs.Reason)
		assert.Len(t, cs.Steps, 2*(10+2), "two rounds of ten steps and the canary's two")
	}
	left, err := filepath.Glob(filepath.Join(c.Out, "dmgbench-*"))
	require.NoError(t, err)
	assert.Empty(t, left)
	registered, err := os.ReadDir(filepath.Join(c.StateDir, "runs"))
	require.NoError(t, err)
	assert.Empty(t, registered)
}

// stopper cancels the run when it has seen a number of statuses.
type stopper struct {
	left   int
	cancel context.CancelFunc
}

func (s *stopper) Status(runner.Status) {
	if s.left--; s.left == 0 {
		s.cancel()
	}
}
func (*stopper) Message(string)         {}
func (*stopper) Warning(string)         {}
func (*stopper) Failure(runner.Failure) {}

func TestInterruptedRunsResumeWithoutMeasuringTwice(t *testing.T) {
	apart := map[bool]int{false: 11, true: 7}[long]
	for stop := 1; stop < 60; stop += apart {
		text := small
		if stop%2 == 1 {
			text = withCanary
		}
		c := config(t, text)
		ctx, cancel := context.WithCancel(t.Context())
		c.Progress = &stopper{left: stop, cancel: cancel}
		out, err := runner.Run(ctx, c)
		cancel()
		require.NoError(t, err)
		if out.Status == runner.StatusDone {
			continue
		}
		require.Equal(t, runner.StatusInterrupted, out.Status)
		c.Plan, c.Progress = nil, nil
		out, err = runner.Resume(t.Context(), c.Out, c)
		require.NoError(t, err)
		require.Equal(t, runner.StatusDone, out.Status)
		r := fold(t, c.Out)
		require.Len(t, r.Sessions, 2)
		for _, cs := range r.Cases {
			require.Equal(t, result.Done, cs.Status, cs.Reason)
		}
	}
}

func TestPausedRunGoesOnInsideTheCase(t *testing.T) {
	text := `
schema = 1
title = "Paused"
[target]
kind = "directory"
[io]
cache = "buffered"
[files.few]
sizes = ["10 kB", "4097 B"]
sets = 2
[run]
rounds = 1
[[protocol]]
steps = [
  { do = "create" }, { do = "attach" }, { do = "write", phase = "new" },
  { do = "pause", message = "Restart the machine." },
  { do = "read", phase = "new" }, { do = "verify" },
]
`
	c := config(t, text)
	out, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusPaused, out.Status)
	require.Contains(t, out.Message, "Restart the machine")
	c.Plan = nil
	out, err = runner.Resume(t.Context(), c.Out, c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusDone, out.Status)
	r := fold(t, c.Out)
	require.Len(t, r.Cases, 1)
	require.Equal(t, result.Done, r.Cases[0].Status, r.Cases[0].Reason)
}

func TestTooLittleSpaceIsSaidBeforeTheFirstByte(t *testing.T) {
	c := config(t, small)
	c.Plan.Files[0].Parts[0].Sets = 1
	c.Plan.Files[0].Parts[0].Sizes[0] = 1 << 60
	_, err := runner.Run(t.Context(), c)
	var unfit *runner.NotFitError
	require.ErrorAs(t, err, &unfit)
	require.NoDirExists(t, c.Out)
}
