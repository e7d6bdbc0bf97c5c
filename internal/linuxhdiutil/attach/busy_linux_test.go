package attach

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"dmgbench/internal/image/container"
	"dmgbench/internal/system/hostio"
)

// sit starts a process in the folder, and ends it with the test or when told.
func sit(t *testing.T, dir string) (*exec.Cmd, func()) {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	cmd.Dir = dir
	require.NoError(t, cmd.Start())
	end := sync.OnceFunc(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	t.Cleanup(end)
	return cmd, end
}

func TestBusy(t *testing.T) {
	for _, test := range []struct{ format, fs string }{
		{container.UDRW, "ext4"}, {container.UDSB, "ext4"}, {container.UDSB, "ExFAT"},
	} {
		t.Run(test.format+" "+test.fs, func(t *testing.T) {
			privileged(t)
			path := made(t, test.format, test.fs, 64<<20)
			a := attach(t, path)
			data := noise(3 << 20)
			require.NoError(t, os.WriteFile(filepath.Join(a.MountPoint, "unflushed"), data, 0o644))
			cmd, end := sit(t, a.MountPoint)
			_, err := Detach(t.Context(), a, false)
			require.ErrorIs(t, err, unix.EBUSY)
			require.ErrorContains(t, err, fmt.Sprintf("sleep (process %d)", cmd.Process.Pid))
			requireFile(t, filepath.Join(a.MountPoint, "unflushed"), data)

			lost, err := Detach(t.Context(), a, true)
			require.NoError(t, err)
			assert.Contains(t, lost[0], "sleep")
			list, err := List(t.Context())
			require.NoError(t, err)
			assert.Empty(t, list)
			if test.format == container.UDRW {
				// The loop device, and the lock that it holds, end with the process.
				_, err = attachRequest(t.Context(), Request{Image: path})
				require.ErrorIs(t, err, container.ErrInUse)
				end()
				require.NoError(t, waitUntil(t.Context(), helperTimeout, func() bool { return !anyLoopOf(path) }))
			}
			a = attach(t, path)
			requireFile(t, filepath.Join(a.MountPoint, "unflushed"), data)
			detach(t, a)
			end()
		})
	}
}

// anyLoopOf says whether some loop device has the file.
func anyLoopOf(path string) bool {
	files, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, f := range files {
		if b, _ := os.ReadFile(f); string(b) == path+"\n" {
			return true
		}
	}
	return false
}

// TestTwoAtOnce attaches one image from many sides at the same time.
func TestTwoAtOnce(t *testing.T) {
	for _, format := range []string{container.UDRW, container.UDSB} {
		t.Run(format, func(t *testing.T) {
			privileged(t)
			path := made(t, format, "ext4", 64<<20)
			var wg sync.WaitGroup
			results := make([]Attached, 6)
			for i := range results {
				wg.Go(func() {
					a, err := attachRequest(t.Context(), Request{Image: path})
					assert.NoError(t, err)
					results[i] = a
				})
			}
			wg.Wait()
			for _, a := range results {
				assert.Equal(t, results[0].Device, a.Device)
				assert.Equal(t, results[0].MountPoint, a.MountPoint)
			}
			list, err := List(t.Context())
			require.NoError(t, err)
			require.Len(t, list, 1)
			assert.Equal(t, results[0].Device, list[0].Device)
			assert.False(t, list[0].Dead)
			detach(t, list[0])
			_, err = Detach(t.Context(), list[0], false)
			require.ErrorIs(t, err, ErrNotAttached)
		})
	}
}

// TestLocked holds that an attached image cannot be opened by another writer, and an open one not be attached.
func TestLocked(t *testing.T) {
	for _, format := range []string{container.UDRW, container.UDSB} {
		t.Run(format, func(t *testing.T) {
			privileged(t)
			path := made(t, format, "ext4", 64<<20)
			dir, err := hostio.OpenDir(filepath.Dir(path))
			require.NoError(t, err)
			defer dir.Close()
			a := attach(t, path)
			_, err = container.Open(dir, filepath.Base(path), container.OpenOptions{})
			require.ErrorIs(t, err, container.ErrInUse)
			detach(t, a)
			image, err := container.Open(dir, filepath.Base(path), container.OpenOptions{})
			require.NoError(t, err)
			_, err = attachRequest(t.Context(), Request{Image: path})
			require.ErrorIs(t, err, container.ErrInUse)
			require.NoError(t, image.Close())
			list, err := List(t.Context())
			require.NoError(t, err)
			assert.Empty(t, list)
		})
	}
}

// TestAttachedUnderAnotherRuntimeFolder: an attach that fails, as the image is attached by a command with another folder
// for its state, leaves that one's device alone.
func TestAttachedUnderAnotherRuntimeFolder(t *testing.T) {
	privileged(t)
	path, data := made(t, container.UDRW, "ext4", 64<<20), noise(1<<20)
	a := attach(t, path)
	put(t, filepath.Join(a.MountPoint, "file"), data)
	runtime := RuntimeDir()
	t.Setenv("DMGBENCH_RUNTIME_DIR", t.TempDir())
	_, err := attachRequest(t.Context(), Request{Image: path})
	require.ErrorIs(t, err, container.ErrInUse)
	t.Setenv("DMGBENCH_RUNTIME_DIR", runtime)
	requireFile(t, filepath.Join(a.MountPoint, "file"), data)
	assert.True(t, anyLoopOf(path))
	list, err := List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, a.MountPoint, list[0].MountPoint)
	detach(t, a)
}

func TestManyRemounts(t *testing.T) {
	for _, format := range []string{container.UDRW, container.UDSB} {
		t.Run(format, func(t *testing.T) {
			privileged(t)
			turns := 20
			if os.Getenv("DMGBENCH_LONG") == "" {
				turns = map[string]int{container.UDRW: 4, container.UDSB: 8}[format]
			}
			path := made(t, format, "ext4", 64<<20)
			data := noise(2 << 20)
			for i := range turns {
				a := attach(t, path)
				if i > 0 {
					requireFile(t, filepath.Join(a.MountPoint, "file"), data)
				}
				data[i] ^= 1
				require.NoError(t, os.WriteFile(filepath.Join(a.MountPoint, "file"), data, 0o644))
				detach(t, a)
			}
			checkExt4(t, path)
		})
	}
}

// TestMountChoices goes through where and how a volume is mounted.
func TestMountChoices(t *testing.T) {
	privileged(t)
	path := made(t, container.UDSB, "ext4", 64<<20)
	point := t.TempDir()
	a, err := attachRequest(t.Context(), Request{Image: path, MountPoint: point, ReadOnly: true})
	require.NoError(t, err)
	assert.Equal(t, point, a.MountPoint)
	require.ErrorIs(t, os.WriteFile(filepath.Join(point, "no"), nil, 0o644), unix.EROFS)
	require.NoError(t, Unmount(t.Context(), a, false))
	list, err := List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Empty(t, list[0].MountPoint)
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "Test"), 0o700))
	a, err = Mount(t.Context(), a, Request{MountRoot: root})
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(root, "Test 1"), a.MountPoint)
	var st unix.Statfs_t
	require.NoError(t, unix.Statfs(a.MountPoint, &st))
	assert.Equal(t, int64(unix.ST_NOSUID|unix.ST_NODEV|unix.ST_RDONLY), st.Flags&(unix.ST_NOSUID|unix.ST_NODEV|unix.ST_RDONLY))
	detach(t, a)
	assert.NoDirExists(t, filepath.Join(root, "Test 1"))
	assert.DirExists(t, point)

	a, err = attachRequest(t.Context(), Request{Image: path, MountRoot: root, RandomName: true})
	require.NoError(t, err)
	assert.Regexp(t, "^"+root+"/dmg\\.[0-9]+$", a.MountPoint)
	detach(t, a)
	assert.NoDirExists(t, a.MountPoint)

	_, err = attachRequest(t.Context(), Request{Image: path, MountPoint: filepath.Join(point, "missing", "too")})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = attachRequest(t.Context(), Request{Image: newImage(t, container.UDSB, "ext4", 64<<20)})
	require.ErrorIs(t, err, ErrNoFileSystem)
}
