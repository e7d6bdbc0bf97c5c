package attach

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"dmgbench/internal/image/container"
)

// TestFailedMountReleasesTheLock: a command after one that failed in the same process does not wait for ever.
func TestFailedMountReleasesTheLock(t *testing.T) {
	t.Setenv("DMGBENCH_RUNTIME_DIR", t.TempDir())
	_, err := Mount(t.Context(), Attached{ID: "none"}, Request{})
	require.ErrorIs(t, err, ErrNotAttached)
	s, err := openStore(t.Context(), "none", 0)
	require.NoError(t, err)
	s.close()
	_, err = s.all()
	assert.Error(t, err, "a folder that cannot be read is not an empty one")
}

// TestIdentityOfAReplacedImage: numbers of inodes are used again, for another image.
func TestIdentityOfAReplacedImage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "image")
	seen := map[string]bool{}
	for range 5 {
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		id, err := identity(path)
		require.NoError(t, err)
		assert.False(t, seen[id])
		seen[id] = true
		again, err := identity(path)
		require.NoError(t, err)
		assert.Equal(t, id, again)
		require.NoError(t, os.Remove(path))
		require.NoError(t, wall.Sleep(t.Context(), 20*time.Millisecond)) // more than a tick of the file system's clock
	}
	_, err := identity(path)
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// TestImageReplacedBeforeItsLoopDevice: the device is made of the image that was looked at, or not at all.
func TestImageReplacedBeforeItsLoopDevice(t *testing.T) {
	path := newImage(t, container.UDRW, "ExFAT", 8<<20)
	id, err := identity(path)
	require.NoError(t, err)
	r := &record{Attached: Attached{Image: path, ID: id, Mode: ModeLoop}}
	file, _, err := openBackingFile(r)
	require.NoError(t, err)
	_, _, err = openBackingFile(r)
	require.ErrorIs(t, err, container.ErrInUse)
	require.NoError(t, file.Close())
	r.ID += "0"
	_, _, err = openBackingFile(r)
	require.ErrorContains(t, err, "it was replaced by something else")
}

// TestOwnerUnderSudo: volumes belong to the user who called sudo, if it names one.
func TestOwnerUnderSudo(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	for _, test := range []struct {
		uid, gid string
		want     [2]int
	}{
		{"", "", [2]int{0, os.Getegid()}}, {"1234", "5678", [2]int{1234, 5678}}, {"1234", "", [2]int{0, os.Getegid()}},
		{"", "5678", [2]int{0, os.Getegid()}}, {"-1", "5678", [2]int{0, os.Getegid()}},
	} {
		t.Setenv("SUDO_UID", test.uid)
		t.Setenv("SUDO_GID", test.gid)
		uid, gid := owner()
		assert.Equal(t, test.want, [2]int{uid, gid}, "%q %q", test.uid, test.gid)
	}

	privileged(t)
	t.Setenv("SUDO_UID", "1234")
	path := made(t, container.UDRW, "ext4", 64<<20)
	for i, want := range []uint32{1234, 1234} {
		a := attach(t, path)
		var st unix.Stat_t
		require.NoError(t, unix.Stat(a.MountPoint, &st))
		assert.Equal(t, [2]uint32{want, 5678}, [2]uint32{st.Uid, st.Gid}, "mount %d", i)
		if i == 0 {
			put(t, filepath.Join(a.MountPoint, "file"), noise(10))
			t.Setenv("SUDO_UID", "4321") // the root of a volume that is used stays as it is
		}
		detach(t, a)
	}
}

// TestQueueOfTheDevice: settings outlive a device, and what another program has left there is set anew.
func TestQueueOfTheDevice(t *testing.T) {
	privileged(t)
	path, device, same := made(t, container.UDRW, "ext4", 64<<20), "", 0
	for i := range 6 {
		by, request := []string{ServedByKernel, ServedByHelper}[i%2], []string{"1280", "512"}[i%2]
		a, err := attachRequest(t.Context(), Request{Image: path, NoMount: true, ServedBy: by})
		require.NoError(t, err)
		if a.Device == device {
			same++
			for file, want := range map[string]string{"max_sectors_kb": request, "read_ahead_kb": "512", "scheduler": "[none]"} {
				got, err := os.ReadFile(sysfs(device, "queue/"+file))
				require.NoError(t, err)
				assert.Contains(t, " "+string(got), want, "%s %s", by, file)
			}
		}
		device = a.Device
		for file, value := range map[string]string{"max_sectors_kb": "64", "read_ahead_kb": "128", "scheduler": "mq-deadline"} {
			_ = os.WriteFile(sysfs(device, "queue/"+file), []byte(value), 0) // not every kernel has that scheduler
		}
		detach(t, a)
		if same == 2 {
			return
		}
	}
	t.Skip("other programs take the loop devices")
}
