package attach

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"dmgbench/internal/image/blockdev/blockdevtest"
	"dmgbench/internal/image/container"
	"dmgbench/internal/image/exfat"
	"dmgbench/internal/system/hostio"
)

// TestTemporaryEndsWithItsProcess: what a command attached for its own work is released when the command has died.
func TestTemporaryEndsWithItsProcess(t *testing.T) {
	for _, format := range []string{container.UDRW, container.UDSB} {
		privileged(t)
		path := made(t, format, "ext4", 64<<20)
		open := func() error {
			dir, err := hostio.OpenDir(filepath.Dir(path))
			require.NoError(t, err)
			defer dir.Close()
			image, err := container.Open(dir, filepath.Base(path), container.OpenOptions{})
			if err == nil {
				err = image.Close()
			}
			return err
		}
		run(t, "/proc/self/exe", onceVerb, path, "temporarily")
		require.ErrorIs(t, open(), container.ErrInUse, "it is still attached, as after a kill")
		list, err := List(t.Context())
		require.NoError(t, err)
		assert.Empty(t, list)
		require.NoError(t, open())

		a, err := attachRequest(t.Context(), Request{Image: path, NoMount: true, Temporary: true})
		require.NoError(t, err)
		list, err = List(t.Context())
		require.NoError(t, err)
		assert.Len(t, list, 1, "we live")
		detach(t, a)
	}
}

// TestTrimRefusesWhatItCannotAnswer: the request of a trim has an argument of 24 bytes, and so has its answer.
func TestTrimRefusesWhatItCannotAnswer(t *testing.T) {
	r := newRequests(t)
	n, full := &node{v: r.fs}, make([]byte, 24)
	for _, test := range []struct {
		cmd     uint32
		in, out []byte
		want    unix.Errno
	}{
		{fitrim, full, full, 0}, {fitrim, full[1:], full, unix.EINVAL}, {fitrim, full, full[1:], unix.EINVAL},
		{fitrim + 1, full, full, unix.ENOTTY},
	} {
		_, errno := n.Ioctl(t.Context(), nil, test.cmd, 0, test.in, test.out)
		assert.Equal(t, test.want, errno, "%x %d %d", test.cmd, len(test.in), len(test.out))
	}
	r.fs.readOnly = true
	_, errno := n.Ioctl(t.Context(), nil, fitrim, 0, full, full)
	assert.Equal(t, unix.EROFS, errno)
	require.NoError(t, r.fs.close())
}

var errDamaged = errors.New("chunk 3 is damaged")

// TestFailedReadsLoseNothing: of reads that fail the one who detaches is not told that something was lost.
func TestFailedReadsLoseNothing(t *testing.T) {
	r := newRequests(t)
	a := r.create("a")
	r.write(a, noise(70_000))
	r.fsync(a)
	r.dev.Hook = func(op blockdevtest.Op, _, _ int64) error {
		if op == blockdevtest.OpRead {
			return errDamaged
		}
		return nil
	}
	_, status := r.raw.Read(nil, &fuse.ReadIn{InHeader: fuse.InHeader{NodeId: a.NodeId}, Fh: a.Fh, Size: 4096}, make([]byte, 4096))
	require.Equal(t, fuse.EIO, status)
	assert.Empty(t, r.fs.fails.lost)
	r.dev.Hook = nil
	r.release(a)
	require.NoError(t, r.fs.close())

	fails := &failures{}
	dev := blockdevtest.NewMem(1 << 20)
	require.NoError(t, exfat.Format(dev, exfat.FormatOptions{}))
	fs, err := newDeviceFS(dev, nil, false, fails)
	require.NoError(t, err)
	dev.Hook = func(blockdevtest.Op, int64, int64) error { return errDamaged }
	_, status = fs.Read(nil, &fuse.ReadIn{InHeader: fuse.InHeader{NodeId: 2}}, make([]byte, 4096))
	require.Equal(t, fuse.EIO, status)
	assert.Empty(t, fails.lost)
	_, status = fs.Write(nil, &fuse.WriteIn{InHeader: fuse.InHeader{NodeId: 2}}, make([]byte, 4096))
	require.Equal(t, fuse.EIO, status)
	assert.Len(t, fails.lost, 1, "of writes it is")
}
