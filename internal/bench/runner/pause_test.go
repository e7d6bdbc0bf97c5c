package runner_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/runner"
	"dmgbench/internal/result"
)

const paused = `
schema = 1
title = "Paused inside a case"
[image]
size = "12 MB"
band_size = "1 MiB"
filesystem_preference = ["exFAT"]
[matrix]
format = ["UDRW", "UDSB"]
[files.few]
sizes = ["64 kB", "300001 B"]
sets = 2
[run]
rounds = 1
baseline = false
canary = false
[[protocol]]
steps = [
  { do = "create" }, { do = "attach" }, { do = "write", phase = "new" },
  { do = "delete", last_sets = 1 },
  { do = "pause", message = "Restart the machine." },
  { do = "read", phase = "rest", batch = "all" }, { do = "verify", phase = "rest", batch = "all" },
]
`

// resumed goes on with a run as a new process would.
func resumed(ctx context.Context, t *testing.T, c runner.Config) (runner.Outcome, error) {
	t.Helper()
	c.Plan, c.Places = nil, nil
	return runner.Resume(ctx, c.Out, c)
}

// atPause is a run that waits at its first pause, and the container that it left.
func atPause(t *testing.T) (runner.Config, string) {
	t.Helper()
	c := lived(t, paused)
	out, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusPaused, out.Status)
	list, err := filepath.Glob(filepath.Join(work(t, c), "case*"))
	require.NoError(t, err)
	require.Len(t, list, 1)
	return c, list[0]
}

func TestAPausedImageGoesOnInsideTheCase(t *testing.T) {
	c, _ := atPause(t)
	out, err := resumed(t.Context(), t, c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusPaused, out.Status, "the second case pauses as well")
	out, err = resumed(t.Context(), t, c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusDone, out.Status)
	nothingLeft(t, c)
	for _, cs := range fold(t, c.Out).Cases {
		require.Equal(t, result.Done, cs.Status, cs.Reason)
		var did []string
		for _, s := range cs.Steps {
			did = append(did, s.Do)
		}
		assert.Equal(t, []string{"create", "attach", "write", "delete", "read", "verify"}, did)
	}
}

func TestAContainerThatWasChangedDuringAPauseIsToldApart(t *testing.T) {
	change := map[string]func(t *testing.T, path string){
		"deleted": func(t *testing.T, path string) { require.NoError(t, os.RemoveAll(path)) },
		"written to": func(t *testing.T, path string) {
			if strings.HasSuffix(path, "sparsebundle") {
				path = filepath.Join(path, "bands", "0")
			}
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			require.NoError(t, err)
			_, err = f.WriteAt([]byte("x"), 0)
			require.NoError(t, err)
			require.NoError(t, f.Close())
		},
		"swapped for a copy": func(t *testing.T, path string) {
			if strings.HasSuffix(path, "sparsebundle") {
				require.NoError(t, os.CopyFS(path+".copy", os.DirFS(path)))
				require.NoError(t, os.RemoveAll(path))
				require.NoError(t, os.Rename(path+".copy", path))
				return
			}
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path+".copy", b, 0o600))
			require.NoError(t, os.Rename(path+".copy", path))
		},
		"swapped for a link": func(t *testing.T, path string) {
			require.NoError(t, os.Rename(path, path+".moved"))
			require.NoError(t, os.Symlink(path+".moved", path))
		},
	}
	for name, do := range change {
		t.Run(name, func(t *testing.T) {
			c, path := atPause(t)
			do(t, path)
			out, err := resumed(t.Context(), t, c)
			require.NoError(t, err)
			require.Equal(t, runner.StatusPaused, out.Status, "the other case goes on to its pause")
			out, err = resumed(t.Context(), t, c)
			require.NoError(t, err)
			require.Equal(t, runner.StatusFailed, out.Status)
			_, reasons := failed(t, c)
			require.Len(t, reasons, 1)
			assert.Contains(t, reasons[0], "the container is gone or was replaced")
			nothingLeft(t, c)
		})
	}
}

// An interrupt before anything was done behind the pause leaves the pause as it was.
func TestInterruptingAResumeBeforeItsFirstStepKeepsThePause(t *testing.T) {
	c, path := atPause(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out, err := resumed(ctx, t, c)
	require.NoError(t, err)
	require.Contains(t, []string{runner.StatusPaused, runner.StatusInterrupted}, out.Status)
	require.FileExists(t, filepath.Join(filepath.Dir(path), ".dmgbench-run"))
	for range 2 {
		out, err = resumed(t.Context(), t, c)
		require.NoError(t, err)
	}
	require.Equal(t, runner.StatusDone, out.Status)
	nothingLeft(t, c)
}

// An interrupt behind the first step begins the case anew: it comes to its pause again.
func TestInterruptingAResumeLaterBeginsTheCaseAnew(t *testing.T) {
	c, _ := atPause(t)
	ctx, cancel := context.WithCancel(t.Context())
	c.Progress = &stopper{left: 2, cancel: cancel}
	out, err := resumed(ctx, t, c)
	cancel()
	require.NoError(t, err)
	require.Equal(t, runner.StatusInterrupted, out.Status)
	c.Progress = nil
	for i := range 3 {
		out, err = resumed(t.Context(), t, c)
		require.NoError(t, err)
		if i < 2 {
			require.Equal(t, runner.StatusPaused, out.Status)
		}
	}
	require.Equal(t, runner.StatusDone, out.Status)
	nothingLeft(t, c)
}

// Also where nothing was attached at the pause, so that the first step attaches it.
func TestInterruptingAResumeBehindItsFirstStepBeginsTheCaseAnew(t *testing.T) {
	c := lived(t, strings.NewReplacer(`["UDRW", "UDSB"]`, `["UDRW"]`, `{ do = "pause"`, `{ do = "detach" }, { do = "pause"`,
		`{ do = "read"`, `{ do = "attach", phase = "again" }, { do = "read"`).Replace(paused))
	out, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusPaused, out.Status)
	ctx, cancel := context.WithCancel(t.Context())
	c.Progress = &at{when: step("", "verify", "rest"), do: cancel}
	out, err = resumed(ctx, t, c)
	cancel()
	require.NoError(t, err)
	require.Equal(t, runner.StatusInterrupted, out.Status)
	c.Progress = nil
	out, err = resumed(t.Context(), t, c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusPaused, out.Status, "it comes to its pause again")
	toTheEnd(t, c)
	nothingLeft(t, c)
}

// Cleaning takes the images of a paused run; the case cannot go on, the others can.
func TestCleanEndsAPause(t *testing.T) {
	c, path := atPause(t)
	var said strings.Builder
	require.NoError(t, runner.Clean(t.Context(), c.StateDir, runner.CleanOptions{}, &said))
	assert.Contains(t, said.String(), `leftover images in folder "`)
	require.NoDirExists(t, filepath.Dir(path))
	out, err := resumed(t.Context(), t, c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusPaused, out.Status)
	out, err = resumed(t.Context(), t, c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusFailed, out.Status)
	nothingLeft(t, c)
}
