package attach

import (
	"bytes"
	"encoding/gob"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"dmgbench/internal/image/container"
)

// TestHelperEndsWithAStatus starts the serving process as an attach does: it replies once, and its exit status tells
// whether all went well.
func TestHelperEndsWithAStatus(t *testing.T) {
	privileged(t)
	valid := serveRequest{Image: newImage(t, container.UDSB, "ExFAT", 8<<20), Tag: "dmgbench:test", MountAt: t.TempDir(), End: filepath.Join(t.TempDir(), "end")}
	missing := valid
	missing.Image += ".missing"
	t.Cleanup(func() { unix.Unmount(valid.MountAt, unix.MNT_DETACH) })
	for name, test := range map[string]struct {
		mark    string
		request any
		status  int
		reply   string // its error
	}{
		"served":               {"1", valid, 0, ""},
		"image missing":        {"1", missing, 1, "no such file"},
		"started by hand":      {"", valid, 2, ""},
		"request not readable": {"1", "text", 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var in bytes.Buffer
			require.NoError(t, gob.NewEncoder(&in).Encode(test.request))
			cmd := exec.Command("/proc/self/exe", HelperVerb)
			cmd.Env = []string{helperMark + "=" + test.mark, "DMGBENCH_RUNTIME_DIR=" + RuntimeDir()}
			cmd.Stdin = &in
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			var reply serveReply
			err = gob.NewDecoder(out).Decode(&reply)
			switch test.status {
			case 0:
				require.NoError(t, err)
				require.Empty(t, reply.Error)
				assert.FileExists(t, filepath.Join(valid.MountAt, deviceName))
				require.NoError(t, unix.Unmount(valid.MountAt, 0))
			case 1:
				require.NoError(t, err)
				assert.Contains(t, reply.Error, test.reply)
			default:
				require.ErrorIs(t, err, io.EOF)
			}
			_ = cmd.Wait()
			assert.Equal(t, test.status, cmd.ProcessState.ExitCode())
			report, err := os.ReadFile(valid.End)
			assert.Equal(t, test.status == 0, err == nil, "a report of one that served")
			assert.Empty(t, report)
			_ = os.Remove(valid.End)
		})
	}
}

// TestImageDamagedBeforeItIsServed: the error is that of the process, and nothing is left.
func TestImageDamagedBeforeItIsServed(t *testing.T) {
	privileged(t)
	path := newImage(t, container.UDSB, "ExFAT", 8<<20)
	info, err := inspect(Request{Image: path})
	require.NoError(t, err)
	for _, name := range []string{"Info.plist", "Info.bckup"} {
		require.NoError(t, os.WriteFile(filepath.Join(path, name), []byte("no list"), 0o644))
	}
	_, err = Attach(t.Context(), Request{Image: path, Info: info, NoMount: true})
	require.ErrorContains(t, err, "serving ")
	require.ErrorContains(t, err, "Info.plist")
	list, err := List(t.Context())
	require.NoError(t, err)
	assert.Empty(t, list)
}

// TestServerKilledAtItsStart: the error says how the process ended, and its last words.
func TestServerKilledAtItsStart(t *testing.T) {
	privileged(t)
	path := newImage(t, container.UDSB, "ExFAT", 8<<20)
	require.NoError(t, os.Rename(path, path+killedSuffix))
	_, err := attachRequest(t.Context(), Request{Image: path + killedSuffix, NoMount: true})
	require.ErrorContains(t, err, "the process ended without a reply: EOF (signal: killed): memory is short")
}

// TestStatusOfFusermount: an error has the exit status, not what wait(2) returns.
func TestStatusOfFusermount(t *testing.T) {
	assert.EqualError(t, decodeStatus(errors.New("fusermount exited with code 256\n")), "fusermount ended with status 1")
	assert.Equal(t, unix.EPERM, decodeStatus(unix.EPERM))
	log := []byte("a: staying in memory: x\n/bin/fusermount3: failed to open /dev/fuse: Permission denied\nb: y\n")
	assert.Equal(t, "/bin/fusermount3: failed to open /dev/fuse: Permission denied", lastWords(log, "fusermount"))
	assert.Equal(t, "its log is empty", lastWords(nil, ""))
}
