package runner_test

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/runner"
	"dmgbench/internal/result"
)

// fillDisk lets every later write of the journal fail, as on a full disk: it is open as /dev/full from then on.
func fillDisk(t *testing.T, c runner.Config) {
	t.Helper()
	full, err := syscall.Open("/dev/full", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	require.NoError(t, err)
	defer syscall.Close(full)
	links, err := filepath.Glob("/proc/self/fd/*")
	require.NoError(t, err)
	found := false
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == filepath.Join(c.Out, result.JournalFile) {
			fd, err := strconv.Atoi(filepath.Base(link))
			require.NoError(t, err)
			require.NoError(t, syscall.Dup3(full, fd, syscall.O_CLOEXEC))
			found = true
		}
	}
	require.True(t, found, "the run has its journal open")
}

// A run whose journal cannot be written is not over: nothing that was written is lost, and resume does the rest.
func TestARunWhoseJournalCannotBeWrittenIsResumed(t *testing.T) {
	for name, fill := range map[string]func(c *runner.Config){
		"in the middle of a case": func(c *runner.Config) {
			full := *c
			c.Progress = &at{when: step("UDRW", "read", "new"), do: func() { fillDisk(t, full) }}
		},
		"when all cases are measured": func(c *runner.Config) {
			full := *c
			c.Changes = func() []result.Warning { fillDisk(t, full); return nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := lived(t, once)
			harmed := c
			fill(&harmed)
			_, err := runner.Run(t.Context(), harmed)
			require.ErrorIs(t, err, syscall.ENOSPC)
			var told *result.Error
			require.ErrorAs(t, err, &told)
			assert.Contains(t, told.Hint, "dmgbench resume "+c.Out)

			out, err := resumed(t.Context(), t, c)
			require.NoError(t, err)
			assert.Equal(t, runner.StatusDone, out.Status)
			nothingLeft(t, c)
		})
	}
}
