package runner

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A temporary file without an entry, of a run that was killed while it wrote its first one, is removed with the run's end.
func TestUnregisterWithoutAnEntry(t *testing.T) {
	state := t.TempDir()
	dir := filepath.Join(state, RegistryFolder)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	for _, name := range []string{".a.json.tmp-X", ".b.json.tmp-X", "b.json"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	unregisterEnded(state, "a")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 2, "another run's files stay")
	assert.Equal(t, ".b.json.tmp-X", left[0].Name())
}
