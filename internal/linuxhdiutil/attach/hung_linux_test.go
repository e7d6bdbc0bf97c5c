package attach

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"dmgbench/internal/image/container"
)

// stop stops the serving process, as one that hangs, until the test or its caller lets it go on.
func stop(t *testing.T, a Attached) (resume func()) {
	t.Helper()
	require.NoError(t, unix.Kill(a.HelperPID, unix.SIGSTOP))
	resume = func() { _ = unix.Kill(a.HelperPID, unix.SIGCONT) }
	t.Cleanup(resume)
	return resume
}

// TestServerThatDoesNotAnswer: a detach of its image ends with an error after its bound, or with its context, and
// blocks no command of another image. Once the process goes on, nothing is lost.
func TestServerThatDoesNotAnswer(t *testing.T) {
	for _, fs := range []string{"ext4", "ExFAT"} {
		t.Run(fs, func(t *testing.T) {
			privileged(t)
			path, data := made(t, container.UDSB, fs, 64<<20), noise(100_000)
			a := attach(t, path)
			put(t, filepath.Join(a.MountPoint, "file"), data)
			resume := stop(t, a)

			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() {
				_, err := Detach(ctx, a, false)
				ended <- err
			}()
			b := attach(t, made(t, container.UDSB, fs, 64<<20))
			list, err := List(t.Context())
			require.NoError(t, err)
			assert.Len(t, list, 2)
			detach(t, b)
			select {
			case err := <-ended:
				require.Fail(t, "the detach has ended", "%v", err)
			default:
			}
			cancel()
			require.ErrorIs(t, <-ended, context.Canceled)

			answerTimeout = 500 * time.Millisecond
			t.Cleanup(func() { answerTimeout = helperTimeout })
			_, err = Detach(t.Context(), a, false)
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			answerTimeout = helperTimeout
			list, err = List(t.Context())
			require.NoError(t, err)
			require.Len(t, list, 1)
			assert.Equal(t, a.MountPoint, list[0].MountPoint, "it is still attached")
			resume()
			var lost Lost
			require.Eventually(t, func() bool { // the calls that this process gave up still have the folder open
				lost, err = Detach(t.Context(), a, false)
				return err == nil
			}, 20*time.Second, 20*time.Millisecond)
			assert.Empty(t, lost)
			a = attach(t, path)
			requireFile(t, filepath.Join(a.MountPoint, "file"), data)
			detach(t, a)
		})
	}
}

// TestForcedDetachOfAServerThatDoesNotAnswer kills it, and says so.
func TestForcedDetachOfAServerThatDoesNotAnswer(t *testing.T) {
	for _, fs := range []string{"ext4", "ExFAT"} {
		t.Run(fs, func(t *testing.T) {
			privileged(t)
			path := made(t, container.UDSB, fs, 64<<20)
			a := attach(t, path)
			stop(t, a)
			answerTimeout = 500 * time.Millisecond
			t.Cleanup(func() { answerTimeout = helperTimeout })
			lost, err := Detach(t.Context(), a, true)
			require.NoError(t, err)
			require.NotEmpty(t, lost)
			assert.NoDirExists(t, a.MountPoint)
			answerTimeout = helperTimeout
			detach(t, attach(t, path))
		})
	}
}

// TestRenamedMountPoint: the mount is found wherever its folder is now, with force too, and nothing is lost.
func TestRenamedMountPoint(t *testing.T) {
	for _, force := range []bool{false, true} {
		privileged(t)
		path, data, root := made(t, container.UDSB, "ExFAT", 64<<20), noise(100_000), filepath.Join(t.TempDir(), "d")
		require.NoError(t, os.Mkdir(root, 0o755))
		a, err := attachRequest(t.Context(), Request{Image: path, MountRoot: root})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(a.MountPoint, "file"), data, 0o600))
		require.NoError(t, os.Rename(root, root+"2"))
		list, err := List(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 1)
		assert.Equal(t, filepath.Join(root+"2", filepath.Base(a.MountPoint)), list[0].MountPoint)
		lost, err := Detach(t.Context(), a, force)
		require.NoError(t, err)
		assert.Empty(t, lost)
		a = attach(t, path)
		requireFile(t, filepath.Join(a.MountPoint, "file"), data)
		detach(t, a)
	}
}

// TestAnotherMountNamespace: a process that is mounted where the caller does not see it is asked to unmount. If it
// cannot, the error says where to look.
func TestAnotherMountNamespace(t *testing.T) {
	privileged(t)
	path := made(t, container.UDSB, "ExFAT", 64<<20)
	self, err := os.Executable()
	require.NoError(t, err)
	run(t, tool(t, "unshare"), "-m", "--propagation", "private", self, onceVerb, path)
	list, err := List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Empty(t, list[0].MountPoint)
	pid := strconv.Itoa(list[0].HelperPID)
	points, err := os.ReadDir(filepath.Join(RuntimeDir(), "volumes"))
	require.NoError(t, err)
	require.Len(t, points, 1)
	busy := exec.Command(tool(t, "nsenter"), "-t", pid, "-m", "sh", "-c",
		"cd "+filepath.Join(RuntimeDir(), "volumes", points[0].Name())+" && echo in && exec sleep 100")
	out, err := busy.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, busy.Start())
	_, err = out.Read(make([]byte, 3))
	require.NoError(t, err)
	answerTimeout = 500 * time.Millisecond
	t.Cleanup(func() { answerTimeout = helperTimeout })
	_, err = Detach(t.Context(), list[0], false)
	require.ErrorContains(t, err, "in another mount namespace: see /proc/"+pid+"/mountinfo")
	answerTimeout = helperTimeout
	require.NoError(t, busy.Process.Kill())
	_ = busy.Wait()
	detach(t, list[0])
}
