package attach

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/system/host"
)

// TestListWaitsForNoCommand: another command may work on an image for as long as a process takes to start. What it has
// not finished is not listed, and cleaned up only when that command is gone.
func TestListWaitsForNoCommand(t *testing.T) {
	t.Setenv("DMGBENCH_RUNTIME_DIR", t.TempDir())
	s, err := openStore(t.Context(), "unfinished", 0)
	require.NoError(t, err)
	require.NoError(t, s.save(&record{Attached: Attached{ID: "unfinished"}, Boot: host.BootID()}))
	for range 2 {
		list, err := List(t.Context())
		require.NoError(t, err)
		assert.Empty(t, list)
	}
	_, err = openStore(t.Context(), "unfinished", 0)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "one command at a time")
	other, err := openStore(t.Context(), "another image", 0)
	require.NoError(t, err)
	other.close()
	s.close()
	list, err := List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.True(t, list[0].Unfinished)
}
