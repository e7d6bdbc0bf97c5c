package runner_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/runner"
	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/hostio/hostiotest"
)

// several is a case that pauses with three containers besides its own, of
// another format, harmed, and attached; and whose files two steps wrote at once.
const several = `
schema = 1
title = "Paused with several containers"
[image]
size = "12 MB"
band_size = "1 MiB"
filesystem_preference = ["exFAT"]
format = "UDRW"
[io]
files = "few"
[files.few]
sizes = ["64 kB", "300001 B"]
sets = 2
[files.more]
sizes = ["40 kB"]
sets = 3
[run]
rounds = 1
baseline = false
canary = true
[[protocol]]
steps = [
  { do = "create" }, { do = "attach" }, { do = "write", phase = "new" },
  { do = "parallel", steps = [ { do = "read", phase = "beside" }, { do = "write", phase = "beside", files = "more" } ] },
  { do = "detach" },
  { do = "convert", as = "bundle", format = "UDSB", band_size = "2 MiB" },
  { do = "transfer", as = "copy", on = "bundle" },
  { do = "damage", as = "harmed", kind = "volume" },
  { do = "attach", phase = "bundle", on = "bundle" },
  { do = "write", phase = "bundle", on = "bundle" },
  { do = "pause", message = "Restart the machine." },
  { do = "read", phase = "bundle", on = "bundle" },
  { do = "verify", phase = "bundle", on = "bundle", batch = "all" },
  { do = "check", phase = "harmed", on = "harmed", expect = "fail" },
  { do = "attach", phase = "copy", on = "copy" }, { do = "verify", phase = "copy", on = "copy", batch = "all" },
  { do = "pause", message = "Again." },
  { do = "attach", phase = "main" }, { do = "verify", phase = "main", batch = "all" },
  { do = "delete", phase = "copy", on = "copy", all = true }, { do = "write", phase = "copy", on = "copy" },
  { do = "verify", phase = "copied", on = "copy" },
]
`

func TestAPauseKeepsEveryContainerOfTheCase(t *testing.T) {
	c := lived(t, several)
	out, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusPaused, out.Status)
	list, err := filepath.Glob(filepath.Join(work(t, c), "case*"))
	require.NoError(t, err)
	require.Len(t, list, 4)
	for range 2 {
		out, err = resumed(t.Context(), t, c)
		require.NoError(t, err)
	}
	_, reasons := failed(t, c)
	require.Equal(t, runner.StatusDone, out.Status, reasons)
	nothingLeft(t, c)
	files := map[string]int{}
	for _, s := range fold(t, c.Out).Cases[0].Steps {
		if s.Op != "" {
			files[s.Op+" "+s.Phase] = len(s.Samples)
		}
	}
	assert.Equal(t, map[string]int{"write canary": 4, "read canary": 4, "write new": 4, "read beside": 4, "write beside": 3,
		"write bundle": 4, "read bundle": 4, "write copy": 4}, files)
}

// Whichever of the containers is not as it was left: the case fails, and says so.
func TestEveryContainerOfAPauseHasToBeTheSame(t *testing.T) {
	for _, name := range []string{"case01-round1.dmg", "case01-round1-bundle.sparsebundle", "case01-round1-copy.sparsebundle", "case01-round1-harmed.dmg"} {
		t.Run(name, func(t *testing.T) {
			c := lived(t, several)
			out, err := runner.Run(t.Context(), c)
			require.NoError(t, err)
			require.Equal(t, runner.StatusPaused, out.Status)
			path := filepath.Join(work(t, c), name)
			if strings.HasSuffix(path, "sparsebundle") {
				path = filepath.Join(path, "bands", "0")
			}
			require.NoError(t, os.Chtimes(path, c.Clock.Wall(), c.Clock.Wall()))
			out, err = resumed(t.Context(), t, c)
			require.NoError(t, err)
			require.Equal(t, runner.StatusFailed, out.Status)
			_, reasons := failed(t, c)
			require.Len(t, reasons, 1)
			assert.Contains(t, reasons[0], name)
			assert.Contains(t, reasons[0], "the container is gone or was replaced")
			nothingLeft(t, c)
		})
	}
}

// A block that has to fail ends where it fails, and the case goes on behind it.
func TestABlockThatHasToFailEndsAtItsFirstFailingStep(t *testing.T) {
	plan := strings.NewReplacer("canary = true", "canary = false").Replace(several[:strings.Index(several, "[[protocol]]")]) + `
[[protocol]]
steps = [
  { do = "create" }, { do = "attach" },
  { do = "repeat", times = 100, expect = "fail", steps = [ { do = "write", phase = "full" }, { do = "verify", phase = "full" } ] },
  { do = "verify", phase = "all", batch = "all" },
  { do = "delete", phase = "all", all = true },
]
`
	c := lived(t, plan)
	out, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	_, reasons := failed(t, c)
	require.Equal(t, runner.StatusDone, out.Status, reasons)
	cs := fold(t, c.Out).Cases[0]
	var wrong []result.Step
	for _, s := range cs.Steps {
		if s.Error != "" {
			wrong = append(wrong, s)
		}
	}
	require.Len(t, wrong, 1)
	assert.Equal(t, "write", wrong[0].Do)
	assert.Equal(t, "fail", wrong[0].Expect)
	assert.Greater(t, wrong[0].Cycle, 5, "728 kB a cycle do not fill 12 MB so soon")
	assert.Equal(t, "delete", cs.Steps[len(cs.Steps)-1].Do)

	c = lived(t, strings.Replace(plan, "times = 100", "times = 2", 1))
	out, err = runner.Run(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusFailed, out.Status)
	_, reasons = failed(t, c)
	assert.Equal(t, []string{"repeat: a step in it was expected to fail and none did in 2 cycles"}, reasons)
}

// What fails beside another step fails the case as if it had been alone.
func TestAStepThatFailsBesideAnotherFailsTheCase(t *testing.T) {
	text := strings.Replace(several[:strings.Index(several, `  { do = "detach" }`)]+"]\n", "canary = true", "canary = false", 1)
	c, faults := lived(t, text), &hostiotest.Faults{}
	c.Hook = faults
	c.Progress = &at{when: func(s runner.Status) bool { return s.Do == "parallel" }, do: func() {
		faults.FailNth(hostio.OpRead, "*.dmg", 1, syscall.EIO)
	}}
	out, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	assert.Equal(t, runner.StatusFailed, out.Status)
	_, reasons := failed(t, c)
	require.Len(t, reasons, 1)
	assert.Contains(t, reasons[0], "input/output error")
	nothingLeft(t, c)
}
