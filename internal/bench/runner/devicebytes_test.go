package runner_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/runner"
	"dmgbench/internal/system/host"
)

// Where the disk below cannot be told, the record has no device bytes and says why, without a path.
func TestDeviceBytesThatCannotBeTold(t *testing.T) {
	at, err := os.MkdirTemp("/dev/shm", "runner")
	if err != nil {
		t.Skipf("no /dev/shm: %v", err)
	}
	defer os.RemoveAll(at)
	c := lived(t, once)
	c.Places = []runner.Place{{Path: at}}
	_, _, known := host.DeviceBytes(at)
	_, err = runner.Run(t.Context(), c)
	require.NoError(t, err)
	seen := 0
	for _, cs := range fold(t, c.Out).Cases {
		for _, st := range cs.Steps {
			if !slices.Contains([]string{"write", "read", "verify", "delete"}, st.Do) {
				assert.Empty(t, st.DeviceWhy, st.Do)
				continue
			}
			seen++
			assert.Equal(t, known != nil, st.Device == nil)
			assert.Equal(t, known != nil, st.DeviceWhy != "", st.DeviceWhy)
			assert.NotContains(t, st.DeviceWhy, filepath.Base(at))
		}
	}
	assert.Positive(t, seen)
}
