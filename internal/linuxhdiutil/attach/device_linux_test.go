package attach

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/blockdev/blockdevtest"
	"dmgbench/internal/system/hostio"
)

// counted is a device in memory that counts the flushes and remembers the buffers' alignment.
type counted struct {
	blockdev.Device
	flushes  atomic.Int64
	unpaged  atomic.Int64 // transfers of whole pages from or to memory that is none
	discards atomic.Int64
}

func (d *counted) Flush() error {
	d.flushes.Add(1)
	return d.Device.Flush()
}

func (d *counted) Discard(off, n int64) error {
	d.discards.Add(n)
	return d.Device.Discard(off, n)
}

func (d *counted) ReadAt(p []byte, off int64) (int, error) {
	d.look(p)
	return d.Device.ReadAt(p, off)
}

func (d *counted) WriteAt(p []byte, off int64) (int, error) {
	d.look(p)
	return d.Device.WriteAt(p, off)
}

func (d *counted) look(p []byte) {
	if len(p)%page == 0 && addressOf(p)%page != 0 {
		d.unpaged.Add(1)
	}
}

func addressOf(p []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(p))) }

// linked serves the device on a folder of its own and opens it. What ends it is part of the test.
func linked(t *testing.T, dev blockdev.Device) (fd int) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: it mounts")
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip("no /dev/fuse")
	}
	places := runtime.GOMAXPROCS(0)
	at := t.TempDir()
	fs, err := newDeviceFS(dev, nil, false, &failures{})
	require.NoError(t, err)
	l, err := newFuseServer(fs, at, mountOptions(serveRequest{Image: "x", Tag: "dmgbench:test"}, false))
	require.NoError(t, err)
	t.Cleanup(func() {
		unix.Close(fd)
		require.NoError(t, unix.Unmount(at, 0))
		l.wait() // the threads end with the mount
		runtime.GOMAXPROCS(places)
	})
	// Not as an os.File: nothing here is to be polled.
	fd, err = unix.Open(filepath.Join(at, deviceName), unix.O_RDWR|unix.O_DIRECT, 0)
	require.NoError(t, err)
	return fd
}

func TestLinkKeepsWhatIsWritten(t *testing.T) {
	const size = 8 << 20
	dev := &counted{Device: blockdevtest.NewMem(size)}
	fd := linked(t, dev)
	var group sync.WaitGroup
	const share = size / 4
	for w := range int64(4) { // each in its own quarter, with requests longer than the kernel's, and of all alignments
		group.Go(func() {
			source := rand.NewChaCha8([32]byte{byte(w)})
			random := rand.New(source)
			model := make([]byte, share)
			mem, err := hostio.AlignedBuffer(share)
			if !assert.NoError(t, err) {
				return
			}
			defer mem.Free()
			for i := range 40 {
				off := random.Int64N(share)
				n := 1 + random.Int64N(share-off)
				if i%2 == 0 {
					off, n = off&^(page-1), max(n&^(page-1), page)
				}
				p := mem.Bytes()[:n]
				_, _ = source.Read(p) // never fails
				copy(model[off:], p)
				m, err := unix.Pwrite(fd, p, w*share+off)
				if !assert.NoError(t, err) || !assert.EqualValues(t, n, m) {
					return
				}
				clear(p)
				m, err = unix.Pread(fd, p, w*share+off)
				if !assert.NoError(t, err) || !assert.EqualValues(t, n, m) || !assert.True(t, bytes.Equal(model[off:off+n], p)) {
					return
				}
			}
			got := make([]byte, share)
			_, err = dev.Device.ReadAt(got, w*share)
			assert.NoError(t, err)
			assert.True(t, bytes.Equal(model, got), "what the device holds")
		})
	}
	group.Wait()
	assert.Zero(t, dev.unpaged.Load(), "whole pages lie on pages, so that they can go to the disk directly")
}

func TestLinkFlushesDiscardsAndRefuses(t *testing.T) {
	dev := &counted{Device: blockdevtest.NewMem(1 << 20)}
	fd := linked(t, dev)
	_, err := unix.Pwrite(fd, bytes.Repeat([]byte{7}, 3*page), 0)
	require.NoError(t, err)
	require.NoError(t, unix.Fsync(fd))
	assert.EqualValues(t, 1, dev.flushes.Load(), "an fsync is a flush of the device, no more and no less")
	require.NoError(t, unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, page, page))
	assert.EqualValues(t, page, dev.discards.Load())
	got := make([]byte, 3*page)
	_, err = unix.Pread(fd, got, 0)
	require.NoError(t, err)
	assert.Equal(t, append(append(bytes.Repeat([]byte{7}, page), make([]byte, page)...), bytes.Repeat([]byte{7}, page)...), got)

	var st unix.Stat_t
	require.NoError(t, unix.Fstat(fd, &st))
	assert.EqualValues(t, 1<<20, st.Size)
	assert.EqualValues(t, 1<<20/512, st.Blocks)
	assert.WithinDuration(t, time.Now(), time.Unix(st.Mtim.Unix()), time.Minute)
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 1000)
	require.NoError(t, err)
	assert.Equal(t, 1, n, "there is always something to read; nobody waits for an answer")
	n, err = unix.Pread(fd, got, 1<<20)
	require.NoError(t, err)
	assert.Zero(t, n, "the end")
	_, err = unix.Pwrite(fd, got, 1<<20)
	assert.Error(t, err, "nothing grows a device")
	assert.Error(t, unix.Fallocate(fd, unix.FALLOC_FL_COLLAPSE_RANGE, 0, page))
}
