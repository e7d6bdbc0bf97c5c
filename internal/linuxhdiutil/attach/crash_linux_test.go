package attach

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"dmgbench/internal/image/container"
)

// moments is how often something is killed: enough for every part of a write, many more in long tests.
func moments() int {
	if os.Getenv("DMGBENCH_LONG") != "" {
		return 60
	}
	return 3
}

// TestKilledHelper kills the serving process while files are written, and expects everything that was flushed.
func TestKilledHelper(t *testing.T) {
	for _, fs := range []string{"ext4", "ExFAT"} {
		t.Run(fs, func(t *testing.T) {
			privileged(t)
			path := made(t, container.UDSB, fs, 64<<20)
			flushed := map[string][]byte{}
			for i := range moments() {
				a := attach(t, path)
				for name, data := range flushed {
					requireFile(t, filepath.Join(a.MountPoint, name), data)
				}
				writeUntilKilled(t, a, i, flushed)
				list, err := List(t.Context())
				require.NoError(t, err)
				require.Len(t, list, 1)
				assert.True(t, list[0].Dead)
				assert.NoDirExists(t, a.MountPoint)
				list, err = List(t.Context())
				require.NoError(t, err)
				assert.Empty(t, list, "told once")
			}
			a := attach(t, path)
			for name, data := range flushed {
				requireFile(t, filepath.Join(a.MountPoint, name), data)
			}
			detach(t, a)
			if fs == "ext4" {
				checkExt4(t, path)
			}
		})
	}
}

// writeUntilKilled writes and flushes files, deletes some, and kills the process somewhere in the middle of one.
func writeUntilKilled(t *testing.T, a Attached, round int, flushed map[string][]byte) {
	t.Helper()
	for name := range flushed {
		if len(flushed) > 3 {
			require.NoError(t, os.Remove(filepath.Join(a.MountPoint, name)))
			delete(flushed, name)
		}
	}
	for i := range 2 {
		name, data := fmt.Sprintf("flushed %d %d", round, i), noise(64<<10+rand.IntN(1<<20))
		put(t, filepath.Join(a.MountPoint, name), data)
		flushed[name] = data
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f, err := os.Create(filepath.Join(a.MountPoint, "under way"))
		if err != nil {
			return
		}
		defer f.Close()
		for range 64 {
			if _, err := f.Write(noise(128 << 10)); err != nil {
				return
			}
			if f.Sync() != nil {
				return
			}
		}
	}()
	require.NoError(t, wall.Sleep(t.Context(), time.Duration(rand.IntN(20))*time.Millisecond))
	kill(t, a.HelperPID)
	<-done
}

// kill ends a process without asking it, and waits until it is gone.
func kill(t *testing.T, pid int) {
	t.Helper()
	require.NoError(t, unix.Kill(pid, unix.SIGKILL))
	require.NoError(t, waitUntil(t.Context(), helperTimeout, func() bool {
		_, lives := processStart(pid)
		return !lives
	}))
}

// TestKilledAttach kills the attaching program at many moments; whatever state that leaves, the next one goes on from
// it.
func TestKilledAttach(t *testing.T) {
	privileged(t)
	path := made(t, container.UDSB, "ext4", 64<<20)
	for i := range moments() + 1 {
		cmd := exec.Command("/proc/self/exe", onceVerb, path)
		cmd.Stderr = os.Stderr
		require.NoError(t, cmd.Start())
		require.NoError(t, wall.Sleep(t.Context(), time.Duration(i*37%140)*time.Millisecond))
		cmd.Process.Kill()
		cmd.Wait()
		if i%2 == 0 {
			_, err := List(t.Context()) // cleans what is incomplete
			require.NoError(t, err)
		}
		a := attach(t, path)
		put(t, filepath.Join(a.MountPoint, "file"), noise(1<<20))
		detach(t, a)
	}
	checkExt4(t, path)
}

// TestDeadWhileBusy has a file open on the volume when the process dies: its owner gets errors, not a hanging call.
func TestDeadWhileBusy(t *testing.T) {
	privileged(t)
	path := made(t, container.UDSB, "ext4", 64<<20)
	a := attach(t, path)
	f, err := os.Create(filepath.Join(a.MountPoint, "open"))
	require.NoError(t, err)
	defer f.Close()
	kill(t, a.HelperPID)
	lost, err := Detach(t.Context(), a, false)
	require.NoError(t, err)
	require.NotEmpty(t, lost)
	assert.Contains(t, fmt.Sprint(lost), "died")
	_, err = f.Write(noise(1 << 20))
	if err == nil {
		err = f.Sync()
	}
	require.Error(t, err)
	b := attach(t, path)
	require.NoError(t, f.Close())
	detach(t, b)
}

// TestHostFull lets the disk of the host run full below a volume: an error to who writes, an attachment that can be
// ended, and a loss that is told.
func TestHostFull(t *testing.T) {
	privileged(t)
	small := t.TempDir()
	require.NoError(t, unix.Mount("tmpfs", small, "tmpfs", 0, "size=8m"))
	t.Cleanup(func() { assert.NoError(t, unix.Unmount(small, 0)) })
	path := made(t, container.UDSB, "ExFAT", 64<<20)
	inside := filepath.Join(small, "image.sparsebundle")
	run(t, "cp", "-a", path, inside)
	a := attach(t, inside)
	f, err := os.Create(filepath.Join(a.MountPoint, "large"))
	require.NoError(t, err)
	for range 40 {
		if _, err = f.Write(noise(1 << 20)); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, unix.ENOSPC)
	f.Close()
	log, err := os.ReadFile(filepath.Join(RuntimeDir(), "attach", a.ID+".log"))
	require.NoError(t, err)
	assert.Contains(t, string(log), "no space left", "the log of the process, for whoever looks for the cause now")
	lost, err := Detach(context.Background(), a, true)
	require.NoError(t, err)
	require.NotEmpty(t, lost)
	assert.Contains(t, fmt.Sprint(lost), "no space left")
	list, err := List(t.Context())
	require.NoError(t, err)
	assert.Empty(t, list)
}
