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

// killedProbe is a state folder in which a probe was killed, and the folder that it left.
func killedProbe(t *testing.T) (state, left string) {
	t.Helper()
	state = t.TempDir()
	left = filepath.Join(state, "probes", "dmgbench-probe-20260102T030405Z-000000")
	require.NoError(t, os.MkdirAll(left, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(left, ".dmgbench-run"), []byte(`{"run":"probe-20260102T030405Z-000000"}`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(left, ".dmgbench-probe.dmg"), []byte("x"), 0o600))
	return state, left
}

func TestCleanAndTheNextProbeRemoveWhatAKilledProbeLeft(t *testing.T) {
	state, left := killedProbe(t)
	foreign := filepath.Join(state, "probes", "dmgbench-probe-mine")
	require.NoError(t, os.Mkdir(foreign, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(foreign, "thesis.txt"), []byte("x"), 0o600))
	var said strings.Builder
	require.NoError(t, runner.Clean(t.Context(), state, runner.CleanOptions{}, &said))
	assert.Contains(t, said.String(), "probe-20260102T030405Z-000000: removed its leftovers")
	require.NoDirExists(t, left)
	require.FileExists(t, filepath.Join(foreign, "thesis.txt"))

	state, left = killedProbe(t)
	tried := ""
	require.NoError(t, runner.WithProbeFolder(state, time.Unix(0, 0), func(d *hostio.Dir) error {
		tried = d.Path()
		require.NoDirExists(t, left)
		said.Reset()
		require.NoError(t, runner.Clean(t.Context(), state, runner.CleanOptions{}, &said))
		assert.Equal(t, "no leftovers found\n", said.String(), "a probe that is going on is left alone")
		require.DirExists(t, tried)
		return nil
	}))
	assert.NotEmpty(t, tried)
	require.NoDirExists(t, tried)
}
