package attach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/container"
	"dmgbench/internal/image/exfat"
	"dmgbench/internal/image/gpt"
	"dmgbench/internal/system/hostio"
)

// served attaches an exFAT image in mode fuse.
func served(t *testing.T, size int64) (string, Attached) {
	t.Helper()
	t.Cleanup(func() { kernelMounts = kernelDriver })
	kernelMounts = func(name string) bool { return name != "exfat" && kernelDriver(name) }
	path := made(t, container.UDSB, "ExFAT", size)
	a := attach(t, path)
	require.Equal(t, ModeFUSE, a.Mode)
	return path, a
}

// checked detaches and looks at the volume with the checker.
func checked(t *testing.T, path string, a Attached) {
	t.Helper()
	detach(t, a)
	dir, err := hostio.OpenDir(filepath.Dir(path))
	require.NoError(t, err)
	defer dir.Close()
	image, err := container.Open(dir, filepath.Base(path), container.OpenOptions{ReadOnly: true})
	require.NoError(t, err)
	defer image.Close()
	table, _, err := gpt.Read(image)
	require.NoError(t, err)
	part, err := blockdev.Section(image, table.Partitions[0].Offset(), table.Partitions[0].Size())
	require.NoError(t, err)
	report, err := exfat.Check(part, exfat.CheckOptions{})
	require.NoError(t, err)
	require.True(t, report.Clean(), "%v", report.Findings)
}

// TestServedVolume does to a served volume what programs do.
func TestServedVolume(t *testing.T) {
	privileged(t)
	path, a := served(t, 64<<20)
	at := func(name string) string { return filepath.Join(a.MountPoint, name) }
	require.NoError(t, os.MkdirAll(at("a/b/c"), 0o755))
	require.ErrorIs(t, os.Mkdir(at("a"), 0o755), fs.ErrExist)
	require.ErrorIs(t, os.Remove(at("a")), unix.ENOTEMPTY)
	data := noise(5<<20 + 77)
	require.NoError(t, os.WriteFile(at("a/file"), data, 0o644))
	requireFile(t, at("a/FILE"), data)
	_, err := os.Stat(at("a/none"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, os.WriteFile(at("a/x:y"), nil, 0o644), unix.EINVAL)
	for i := range 300 { // more than one answer to a listing holds
		require.NoError(t, os.WriteFile(at(fmt.Sprintf("a/b/%03d %s", i, strings.Repeat("n", 60))), nil, 0o644))
	}
	entries, err := os.ReadDir(at("a/b"))
	require.NoError(t, err)
	assert.Len(t, entries, 301)

	require.NoError(t, os.Rename(at("a/file"), at("a/b/c/moved")))
	require.NoError(t, os.WriteFile(at("target"), noise(9000), 0o644))
	require.NoError(t, os.Rename(at("a/b/c/moved"), at("target")), "takes the place of another")
	requireFile(t, at("target"), data)
	require.ErrorIs(t, os.Rename(at("target"), at("a")), unix.EEXIST, "package os looks first")
	require.ErrorIs(t, unix.Rename(at("target"), at("a")), unix.EISDIR)
	require.NoError(t, os.Rename(at("a/b"), at("b")))

	require.NoError(t, os.Truncate(at("target"), 1<<20+1))
	requireFile(t, at("target"), data[:1<<20+1])
	require.NoError(t, os.Truncate(at("target"), 2<<20))
	requireFile(t, at("target"), append(slices.Clone(data[:1<<20+1]), make([]byte, 1<<20-1)...))

	require.NoError(t, os.Chown(at("target"), os.Geteuid(), os.Getegid()))
	require.ErrorIs(t, os.Chown(at("target"), os.Geteuid()+1, -1), unix.EPERM)
	require.ErrorIs(t, os.Chown(at("target"), -1, os.Getegid()+1), unix.EPERM)
	info, err := os.Stat(at("target"))
	require.NoError(t, err)
	assert.WithinDuration(t, time.Now(), info.ModTime(), time.Minute)
	var st unix.Statfs_t
	require.NoError(t, unix.Statfs(a.MountPoint, &st))
	assert.InDelta(t, 60<<20, float64(st.Bavail)*float64(st.Bsize), 4<<20)
	checked(t, path, a)
}

// TestDeletedWhileOpen goes on with a file whose name is gone.
func TestDeletedWhileOpen(t *testing.T) {
	privileged(t)
	path, a := served(t, 64<<20)
	name := filepath.Join(a.MountPoint, "file")
	data := noise(3 << 20)
	put(t, name, data)
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	require.NoError(t, err)
	require.NoError(t, os.Remove(name))
	_, err = os.Stat(name)
	require.ErrorIs(t, err, fs.ErrNotExist)
	entries, err := os.ReadDir(a.MountPoint)
	require.NoError(t, err)
	assert.Empty(t, entries)
	put(t, name, noise(100))
	_, err = f.WriteAt([]byte("more"), 3<<20)
	require.NoError(t, err)
	got := make([]byte, 3<<20+4)
	_, err = io.ReadFull(io.NewSectionReader(f, 0, 4<<20), got)
	require.NoError(t, err)
	assert.Equal(t, "more", string(got[3<<20:]))
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())

	// The process dies while another deleted file is open; the next one takes that file away.
	f, err = os.Open(name)
	require.NoError(t, err)
	require.NoError(t, os.Remove(name))
	require.NoError(t, syncFolder(a.MountPoint))
	kill(t, a.HelperPID)
	f.Close()
	b := attach(t, path)
	entries, err = os.ReadDir(b.MountPoint)
	require.NoError(t, err)
	assert.Empty(t, entries)
	var st unix.Statfs_t
	require.NoError(t, unix.Statfs(b.MountPoint, &st))
	assert.Greater(t, float64(st.Bfree)*float64(st.Bsize), float64(60<<20))
	assert.Equal(t, []string{"the volume was not unmounted cleanly, and was repaired"}, b.Warnings)
	checked(t, path, b)
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// TestServedFilesAtOnce writes and reads many files from many sides, past the page cache too.
func TestServedFilesAtOnce(t *testing.T) {
	privileged(t)
	path, a := served(t, 64<<20)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 4 {
				name := filepath.Join(a.MountPoint, fmt.Sprintf("%d %d", i, j))
				buffer, err := hostio.AlignedBuffer(1 << 20)
				if !assert.NoError(t, err) {
					return
				}
				copy(buffer.Bytes(), noise(1<<20))
				f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR|unix.O_DIRECT, 0o644)
				if !assert.NoError(t, err) {
					return
				}
				_, err = f.WriteAt(buffer.Bytes(), 0)
				assert.NoError(t, errors.Join(err, f.Sync()))
				back, err := hostio.AlignedBuffer(1 << 20)
				assert.NoError(t, err)
				_, err = f.ReadAt(back.Bytes(), 0)
				assert.NoError(t, err)
				assert.True(t, slices.Equal(buffer.Bytes(), back.Bytes()))
				assert.NoError(t, f.Close())
				back.Free()
				buffer.Free()
			}
		})
	}
	wg.Wait()
	checked(t, path, a)
}

// TestWithoutPrivileges is the life of a volume for a user who has nothing but fusermount3.
func TestWithoutPrivileges(t *testing.T) {
	privileged(t)
	for _, name := range []string{"fusermount3", "unshare", "setpriv"} {
		tool(t, name)
	}
	path := made(t, container.UDSB, "ExFAT", 64<<20)
	home, err := os.MkdirTemp("/tmp", "attach-user-")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(home)) })
	run(t, "cp", "-a", path, filepath.Join(home, "image.sparsebundle"))
	self, err := os.Executable()
	require.NoError(t, err)
	run(t, "cp", self, filepath.Join(home, "program"))
	run(t, "chown", "-R", "65534:65534", home)
	// On some machines /dev/fuse is root's alone: the program sees another, which every user may open.
	require.NoError(t, os.Mkdir(filepath.Join(home, "dev"), 0o755))
	cmd := exec.Command("unshare", "--mount", "sh", "-ec", `
		mount -t tmpfs none dev
		mknod -m 666 dev/fuse c 10 229
		mount --bind dev/fuse /dev/fuse
		exec setpriv --reuid 65534 --regid 65534 --clear-groups ./program "$@"`, "sh", userVerb, filepath.Join(home, "image.sparsebundle"))
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "DMGBENCH_RUNTIME_DIR=" + filepath.Join(home, "run")}
	cmd.Dir = home
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), "user: fine")
}

// userVerb makes the test program live through it.
const userVerb = "live-as-user"

func liveAsUser(path string) error {
	ctx := context.Background()
	data := noise(3<<20 + 5)
	for i := range 2 {
		a, err := attachRequest(ctx, Request{Image: path})
		if err != nil {
			return err
		}
		name := filepath.Join(a.MountPoint, "file")
		if i == 0 {
			err = os.WriteFile(name, data, 0o644)
		} else if got, e := os.ReadFile(name); e != nil || !slices.Equal(got, data) {
			err = fmt.Errorf("read back %d bytes: %w", len(got), e)
		}
		list, e := List(ctx)
		if e == nil && (len(list) != 1 || list[0].MountPoint != a.MountPoint) {
			e = fmt.Errorf("listed: %v", list)
		}
		lost, e2 := Detach(ctx, a, false)
		if err := errors.Join(err, e, e2); err != nil || len(lost) > 0 {
			return fmt.Errorf("%w %v", err, lost)
		}
	}
	a, err := attachRequest(ctx, Request{Image: path, NoMount: true})
	if err != nil {
		return err
	}
	info, err := os.Stat(a.Partition)
	if err == nil && info.Size() < 60<<20 {
		err = fmt.Errorf("the partition has %d bytes", info.Size())
	}
	_, e := Detach(ctx, a, false)
	return errors.Join(err, e)
}
