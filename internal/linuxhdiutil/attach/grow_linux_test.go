package attach

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"dmgbench/internal/image/container"
	"dmgbench/internal/image/gpt"
	"dmgbench/internal/system/hostio"
)

// TestGrow enlarges container, partition and file system, and finds the files and the space.
func TestGrow(t *testing.T) {
	for _, test := range []struct {
		fs      string
		mounted bool // before it is grown
	}{{"ext4", false}, {"xfs", false}, {"xfs", true}} {
		t.Run(fmt.Sprintf("%s mounted=%t", test.fs, test.mounted), func(t *testing.T) {
			privileged(t)
			fs := test.fs
			size := map[string]int64{"ext4": 64 << 20, "xfs": 320 << 20}[fs]
			path := made(t, container.UDSB, fs, size)
			a := attach(t, path)
			data := noise(1 << 20)
			put(t, filepath.Join(a.MountPoint, "file"), data)
			before := capacity(t, a.MountPoint)
			detach(t, a)

			dir, err := hostio.OpenDir(filepath.Dir(path))
			require.NoError(t, err)
			defer dir.Close()
			image, err := container.Open(dir, filepath.Base(path), container.OpenOptions{})
			require.NoError(t, err)
			require.NoError(t, image.Resize(2*size))
			_, err = gpt.Resize(image, 2*size, 0)
			require.NoError(t, err)
			require.NoError(t, image.Close())

			a, err = attachRequest(t.Context(), Request{Image: path, NoMount: !test.mounted})
			require.NoError(t, err)
			require.NoError(t, Grow(t.Context(), a))
			list, err := List(t.Context())
			require.NoError(t, err)
			require.Len(t, list, 1)
			assert.Empty(t, list[0].MountPoint, "what was mounted to be grown is not mounted any more")
			a, err = Mount(t.Context(), a, Request{})
			require.NoError(t, err)
			assert.Greater(t, capacity(t, a.MountPoint), before+size*8/10)
			requireFile(t, filepath.Join(a.MountPoint, "file"), data)
			detach(t, a)
		})
	}
}

func capacity(t *testing.T, path string) int64 {
	t.Helper()
	var st unix.Statfs_t
	require.NoError(t, unix.Statfs(path, &st))
	return int64(st.Blocks) * st.Bsize
}

// TestAskedToEnd holds that a process which is asked to end goes on: below a mounted volume there is nobody else.
func TestAskedToEnd(t *testing.T) {
	privileged(t)
	path := made(t, container.UDSB, "ext4", 64<<20)
	a := attach(t, path)
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGHUP, unix.SIGINT} {
		require.NoError(t, unix.Kill(a.HelperPID, signal))
	}
	data := noise(4 << 20)
	put(t, filepath.Join(a.MountPoint, "file"), data)
	list, err := List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.False(t, list[0].Dead)
	sid, err := unix.Getsid(a.HelperPID)
	require.NoError(t, err)
	assert.Equal(t, a.HelperPID, sid, "a session of its own")
	cwd, err := os.Readlink(filepath.Join("/proc", "self", "cwd"))
	require.NoError(t, err)
	assert.NotContains(t, fmt.Sprint(holders(cwd)), fmt.Sprintf("process %d", a.HelperPID), "it holds the folder that it was started in")
	detach(t, a)
}

// TestNoHelperOfAHelper ends what would be an endless chain: a program that takes its start as a serving process for
// its own.
func TestNoHelperOfAHelper(t *testing.T) {
	privileged(t)
	path := made(t, container.UDSB, "ExFAT", 64<<20)
	t.Setenv(helperMark, "1")
	_, err := attachRequest(t.Context(), Request{Image: path})
	require.ErrorContains(t, err, HelperVerb)
	list, err := List(t.Context())
	require.NoError(t, err)
	assert.Empty(t, list)
}
