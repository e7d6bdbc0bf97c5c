package inprocess_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"dmgbench/internal/system/hostio"
)

// fast is a folder for tests that make hundreds of images and flush them: in memory where there is room for that, since
// what they ask is answered by the order of the calls, not by a disk.
func fast(t *testing.T, o ...hostio.Option) *hostio.Dir {
	t.Helper()
	const shm = "/dev/shm"
	path := ""
	if d, err := hostio.OpenDir(shm); err == nil {
		free, _, kind, err := d.FreeSpace()
		d.Close()
		if err == nil && kind == "tmpfs" && free > 1<<30 {
			path, err = os.MkdirTemp(shm, "dmgbench-test-")
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, os.RemoveAll(path)) })
		}
	}
	if path == "" {
		path = t.TempDir()
	}
	dir, err := hostio.OpenDir(path, o...)
	require.NoError(t, err)
	t.Cleanup(func() { dir.Close() })
	return dir
}
