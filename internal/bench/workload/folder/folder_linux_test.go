package folder_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"dmgbench/internal/bench/workload/folder"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/hostio/hostiotest"
)

const nobody = 65534

// macOS keeps folders of its own on every volume that root alone may open.
func TestSyncPassesOverFoldersOfTheSystem(t *testing.T) {
	at := t.TempDir()
	require.NoError(t, os.Chmod(at, 0o755))
	for name, mode := range map[string]os.FileMode{".fseventsd": 0, "test": 0o755} {
		require.NoError(t, os.Mkdir(filepath.Join(at, name), 0o755))
		require.NoError(t, os.Chmod(filepath.Join(at, name), mode))
	}
	seen := &hostiotest.Recorder{}
	dir, err := hostio.OpenDir(at, hostio.WithHook(seen))
	require.NoError(t, err)
	defer dir.Close()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread, which may be another user's, ends here
		if os.Geteuid() == 0 { // root may open everything
			_, _ = unix.SetfsuidRetUid(nobody)
		}
		_, err := dir.Sub(".fseventsd")
		assert.ErrorIs(t, err, os.ErrPermission)
		done <- folder.New(dir, false).Sync()
	}()
	require.NoError(t, <-done)
	var flushed []string
	for _, op := range seen.Ops() {
		flushed = append(flushed, op.Path)
	}
	assert.Equal(t, []string{"test", "."}, flushed)
}
