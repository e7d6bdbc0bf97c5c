package runner_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/runner"
	"dmgbench/internal/system/hostio"
)

// Clean removes what a killed probe left; a probe that ends leaves nothing.
func TestCleanRemovesWhatAKilledProbeLeft(t *testing.T) {
	state, left := t.TempDir(), ""
	foreign := filepath.Join(state, "probes", "dmgbench-probe-mine")
	require.NoError(t, os.MkdirAll(foreign, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(foreign, "thesis.txt"), []byte("x"), 0o600))
	assert.PanicsWithValue(t, "killed", func() {
		_ = runner.WithProbeFolder(state, time.Unix(0, 0), func(d *hostio.Dir) error {
			left = d.Path()
			require.NoError(t, os.WriteFile(filepath.Join(left, ".dmgbench-probe.dmg"), []byte("x"), 0o600))
			panic("killed")
		})
	})
	require.DirExists(t, left)
	require.Len(t, runner.Leftovers(state), 1)
	var said strings.Builder
	require.NoError(t, runner.Clean(t.Context(), state, runner.CleanOptions{}, &said))
	assert.Contains(t, said.String(), `leftover images in place "probes" deleted`)
	require.NoDirExists(t, left)
	require.FileExists(t, filepath.Join(foreign, "thesis.txt"))

	tried := ""
	require.NoError(t, runner.WithProbeFolder(state, time.Unix(0, 0), func(d *hostio.Dir) error {
		tried = d.Path()
		return nil
	}))
	require.NoDirExists(t, tried)
	assert.Empty(t, runner.Leftovers(state))
	said.Reset()
	require.NoError(t, runner.Clean(t.Context(), state, runner.CleanOptions{}, &said))
	assert.Equal(t, "no leftovers found\n", said.String())
}

// Clean keeps the entry of sessions, of which some have not started, as long as their folder is there.
func TestCleanKeepsSessionsThatGoOn(t *testing.T) {
	c := lived(t, life)
	c.Out = t.TempDir()
	c.Inputs = map[string]string{"in": "/in"}
	id, err := runner.RegisterSessions(c, c.Out)
	require.NoError(t, err)
	clean := func() map[string]string {
		require.NoError(t, runner.Clean(t.Context(), c.StateDir, runner.CleanOptions{}, new(strings.Builder)))
		return runner.InputsOf(c.StateDir, id)
	}
	assert.Equal(t, "/in", clean()["in"])
	require.NoError(t, os.Remove(c.Out))
	assert.Empty(t, clean())
}
