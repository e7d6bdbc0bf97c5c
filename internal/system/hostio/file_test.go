package hostio_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	. "dmgbench/internal/system/hostio"
	"dmgbench/internal/system/hostio/hostiotest"
)

func tempDir(t testing.TB, opts ...Option) *Dir {
	t.Helper()
	d, err := OpenDir(t.TempDir(), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

func create(t testing.TB, d *Dir, name string, c CacheMode) *File {
	t.Helper()
	f, err := d.Open(name, OpenOptions{Write: true, Create: true, Cache: c})
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func pattern(n int, seed uint64) []byte {
	block, err := aes.NewCipher(binary.LittleEndian.AppendUint64(make([]byte, 8), seed))
	if err != nil {
		panic(err)
	}
	b := make([]byte, n)
	cipher.NewCTR(block, make([]byte, aes.BlockSize)).XORKeyStream(b, b)
	return b
}

// fileModel is one file and what it must contain.
type fileModel struct {
	f    *File
	want []byte
	mem  []byte // page-aligned, so that sub-slices choose their alignment
}

func (m *fileModel) slice(t *rapid.T) []byte {
	n := rapid.OneOf(rapid.IntRange(1, 9000), rapid.SampledFrom([]int{512, 4096, 8192, 65536, 1<<20 + 4096 + 512})).Draw(t, "n")
	skew := rapid.SampledFrom([]int{0, 0, 0, 1, 7, 512}).Draw(t, "skew")
	return m.mem[skew : skew+n]
}

func drawOffset(t *rapid.T) int64 {
	return rapid.OneOf(rapid.Int64Range(0, 1<<20), rapid.Custom(func(t *rapid.T) int64 {
		return 512 * rapid.Int64Range(0, 4096).Draw(t, "sector")
	}), rapid.Custom(func(t *rapid.T) int64 {
		return 4096 * rapid.Int64Range(0, 512).Draw(t, "block")
	})).Draw(t, "off")
}

func (m *fileModel) grow(n int64) {
	if n > int64(len(m.want)) {
		m.want = append(m.want, make([]byte, n-int64(len(m.want)))...)
	}
}

func (m *fileModel) write(t *rapid.T) {
	p, off := m.slice(t), drawOffset(t)
	copy(p, pattern(len(p), rapid.Uint64Range(0, 60000).Draw(t, "seed")))
	n, err := m.f.WriteAt(p, off)
	require.NoError(t, err)
	require.Equal(t, len(p), n)
	m.grow(off + int64(n))
	copy(m.want[off:], p)
}

func (m *fileModel) read(t *rapid.T) {
	p, off := m.slice(t), drawOffset(t)
	n, err := m.f.ReadAt(p, off)
	left := max(int64(len(m.want))-off, 0)
	require.Equal(t, min(int64(len(p)), left), int64(n))
	if n < len(p) {
		require.ErrorIs(t, err, io.EOF)
	} else {
		require.NoError(t, err)
	}
	if n > 0 {
		require.True(t, bytes.Equal(m.want[off:off+int64(n)], p[:n]), "content at %d, %d bytes", off, n)
	}
}

func (m *fileModel) truncate(t *rapid.T) {
	n := drawOffset(t)
	require.NoError(t, m.f.Truncate(n))
	m.grow(n)
	m.want = m.want[:n:n]
}

func (m *fileModel) punch(t *rapid.T) {
	off, n := drawOffset(t), int64(len(m.slice(t)))
	err := m.f.PunchHole(off, n)
	if errors.Is(err, ErrUnsupported) {
		t.Skip("no holes here")
	}
	require.NoError(t, err)
	clear(m.want[min(off, int64(len(m.want))):min(off+n, int64(len(m.want)))])
}

func (m *fileModel) flush(t *rapid.T) {
	_, err := m.f.Sync(SyncFsync)
	require.NoError(t, err)
}

func TestFileAgainstModel(t *testing.T) {
	mem, err := AlignedBuffer(2 << 20)
	require.NoError(t, err)
	defer mem.Free()
	for _, mode := range []CacheMode{CacheBuffered, CacheDirect} {
		for _, short := range []int{-1, 0, 3000} { // -1: without any hook
			t.Run(string(mode), func(t *testing.T) {
				rapid.Check(t, func(rt *rapid.T) {
					var opts []Option
					if short >= 0 {
						faults := &hostiotest.Faults{}
						faults.ShortTransfers(short)
						opts = append(opts, WithHook(faults))
					}
					d, err := OpenDir(t.TempDir(), opts...)
					require.NoError(rt, err)
					defer d.Close()
					f, err := d.Open("f", OpenOptions{Write: true, Create: true, Cache: mode})
					require.NoError(rt, err)
					defer f.Close()
					m := &fileModel{f: f, mem: mem.Bytes()}
					rt.Repeat(map[string]func(*rapid.T){
						"write": m.write, "write2": m.write, "read": m.read, "truncate": m.truncate,
						"punch": m.punch, "flush": m.flush,
					})
					require.False(rt, Degraded(f), "the kernel refused a transfer")
					got, err := os.ReadFile(f.Path())
					require.NoError(rt, err)
					require.True(rt, bytes.Equal(m.want, got), "file differs from the model")
				})
			})
		}
	}
}

func TestDirectLeavesNothingInTheCache(t *testing.T) {
	d := tempDir(t)
	f := create(t, d, "f", CacheDirect)
	if f.Cache() != CacheDirect {
		t.Skip("this file system has no direct transfers")
	}
	data := pattern(2_000_000, 1) // the smallest gold-standard size: a tail of 1152 bytes
	_, err := f.WriteAt(data, 0)
	require.NoError(t, err)
	achieved, err := f.Sync(SyncFsync)
	require.NoError(t, err)
	assert.Contains(t, []SyncMode{SyncFull, SyncFsync}, achieved)
	share, err := f.Resident(0, 0)
	require.NoError(t, err)
	if HasDirect(f) { // the flush is timed, and is a flush and nothing else
		assert.NotZero(t, share, "the tail was dropped inside the flush")
	}
	require.NoError(t, f.Close())
	f, err = d.Open("f", OpenOptions{Cache: CacheDirect})
	require.NoError(t, err)
	defer f.Close()
	share, err = f.Resident(0, 0)
	require.NoError(t, err)
	assert.Zero(t, share, "pages after a direct write, flush and close")

	got := make([]byte, len(data))
	_, err = f.ReadAt(got, 0)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(data, got))
	share, err = f.Resident(0, 0)
	require.NoError(t, err)
	assert.Zero(t, share, "pages after a direct read, tail included")
}

func TestEvictDropsDirtyPagesOnlyAfterWritingThem(t *testing.T) {
	d := tempDir(t)
	f := create(t, d, "f", CacheBuffered)
	if _, _, fsType, _ := d.FreeSpace(); fsType == "tmpfs" {
		t.Skip("tmpfs is the cache")
	}
	data := pattern(1<<20+100, 2)
	_, err := f.WriteAt(data, 0)
	require.NoError(t, err)
	share, err := f.Resident(0, 0)
	require.NoError(t, err)
	assert.Equal(t, 1.0, share)
	require.NoError(t, f.Evict())
	share, err = f.Resident(0, 0)
	require.NoError(t, err)
	assert.Less(t, share, 0.1)
	got, err := d.ReadFile("f", 2<<20)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(data, got))
	share, err = f.Resident(0, 4096)
	require.NoError(t, err)
	assert.Equal(t, 1.0, share)
	require.NoError(t, f.EvictRange(0, 4096))
	share, err = f.Resident(0, 4096)
	require.NoError(t, err)
	assert.Zero(t, share)
}

func TestTmpfsIsNeverDirect(t *testing.T) {
	home, err := os.MkdirTemp("/dev/shm", "hostio")
	if err != nil {
		t.Skipf("no /dev/shm: %v", err)
	}
	defer os.RemoveAll(home)
	d, err := OpenDir(home)
	require.NoError(t, err)
	defer d.Close()
	_, _, fsType, err := d.FreeSpace()
	require.NoError(t, err)
	if fsType != "tmpfs" {
		t.Skip("/dev/shm is " + fsType)
	}
	f := create(t, d, "f", CacheDirect)
	assert.Equal(t, CacheBuffered, f.Cache(), "tmpfs accepts O_DIRECT and ignores it")
}

func TestRefusedDirectTransferFallsBack(t *testing.T) {
	faults := &hostiotest.Faults{}
	d := tempDir(t, WithHook(faults))
	f := create(t, d, "f", CacheDirect)
	if f.Cache() != CacheDirect {
		t.Skip("this file system has no direct transfers")
	}
	faults.FailNth(OpWrite, "", 1, syscall.EINVAL)
	data := pattern(1<<20, 3)
	_, err := f.WriteAt(data, 0)
	require.NoError(t, err)
	assert.Equal(t, CacheBuffered, f.Cache(), "the achieved mode, not the asked one")
	if _, _, fsType, _ := d.FreeSpace(); fsType == "ext4" {
		share, err := f.Resident(0, 0)
		require.NoError(t, err)
		assert.Equal(t, 1.0, share, "what was refused goes through the cache")
	}
	got, err := d.ReadFile("f", 1<<20)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(data, got))
}

func TestAllocateAndPunchChangeTheAllocatedSize(t *testing.T) {
	d := tempDir(t)
	f := create(t, d, "f", CacheBuffered)
	err := f.Allocate(0, 4<<20)
	if errors.Is(err, ErrUnsupported) {
		t.Skip("no preallocation here")
	}
	require.NoError(t, err)
	st, err := f.Stat()
	require.NoError(t, err)
	assert.EqualValues(t, 4<<20, st.Size)
	assert.GreaterOrEqual(t, st.Allocated, int64(4<<20))
	require.NoError(t, f.PunchHole(1<<20, 2<<20))
	after, err := f.Stat()
	require.NoError(t, err)
	assert.EqualValues(t, 4<<20, after.Size)
	assert.InDelta(t, st.Allocated-2<<20, after.Allocated, 64<<10)
	assert.ErrorIs(t, f.PunchHole(-1, 5), fs.ErrInvalid)
	assert.ErrorIs(t, f.Allocate(1<<62, 1<<62), fs.ErrInvalid)
	assert.NoError(t, f.PunchHole(100, 0))
	assert.NoError(t, f.Allocate(1<<40, 0))
	later, err := f.Stat()
	require.NoError(t, err)
	assert.Equal(t, after, later, "ranges of no bytes change nothing")
}

func TestCloseWaitsForTransfersAndLaterCallsFail(t *testing.T) {
	d := tempDir(t)
	f := create(t, d, "f", CacheBuffered)
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range 8 {
		wg.Go(func() {
			<-start
			p := pattern(4096, uint64(i))
			for {
				if _, err := f.WriteAt(p, int64(i)*4096); err != nil {
					assert.ErrorIs(t, err, fs.ErrClosed)
					return
				}
			}
		})
	}
	close(start)
	require.NoError(t, f.Close())
	wg.Wait()
	require.ErrorIs(t, f.Close(), fs.ErrClosed)
	_, err := f.ReadAt(make([]byte, 1), 0)
	require.ErrorIs(t, err, fs.ErrClosed)
	_, err = f.Stat()
	require.ErrorIs(t, err, fs.ErrClosed)
}

func TestTransfersDoNotAllocate(t *testing.T) {
	d := tempDir(t)
	for _, mode := range []CacheMode{CacheBuffered, CacheDirect} {
		f := create(t, d, string(mode), mode)
		buf, err := AlignedBuffer(8192)
		require.NoError(t, err)
		defer buf.Free()
		_, _ = f.WriteAt(buf.Bytes()[:8191], 0)
		_, _ = f.ReadAt(buf.Bytes()[:8191], 0)
		n := testing.AllocsPerRun(20, func() {
			_, _ = f.WriteAt(buf.Bytes(), 0)
			_, _ = f.ReadAt(buf.Bytes(), 0)
			_, _ = f.ReadAt(buf.Bytes()[1:512], 0)
			_, _ = f.WriteAt(buf.Bytes()[1:512], 100)
		})
		assert.Zero(t, n, mode)
	}
}

func TestLockExcludesASecondOpenInTheSameProcess(t *testing.T) {
	d := tempDir(t)
	a, b := create(t, d, "token", CacheBuffered), create(t, d, "token", CacheBuffered)
	require.NoError(t, a.TryLock())
	require.ErrorIs(t, b.TryLock(), ErrLocked)
	require.NoError(t, a.Close())
	require.NoError(t, b.TryLock())
	c, err := d.Open("token", OpenOptions{})
	require.NoError(t, err)
	require.ErrorIs(t, c.TryLockShared(), ErrLocked)
	require.NoError(t, b.Close())
	require.NoError(t, c.TryLockShared())
	e, err := d.Open("token", OpenOptions{Write: true})
	require.NoError(t, err)
	require.NoError(t, e.TryLockShared(), "many may share it")
	require.ErrorIs(t, e.TryLock(), ErrLocked)
}

func TestOpenRefusesWhatIsNoRegularFile(t *testing.T) {
	d := tempDir(t)
	outside := filepath.Join(t.TempDir(), "foreign")
	require.NoError(t, os.WriteFile(outside, []byte("foreign"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(d.Path(), "link")))
	require.NoError(t, unix.Mkfifo(filepath.Join(d.Path(), "fifo"), 0o600))
	require.NoError(t, d.Mkdir("folder"))
	for _, name := range []string{"link", "fifo", "folder", ".", "..", "", "/"} {
		for _, o := range []OpenOptions{{}, {Write: true, Create: true, Cache: CacheDirect}} {
			f, err := d.Open(name, o)
			if !assert.Error(t, err, name) {
				f.Close()
			}
		}
	}
	for _, name := range []string{"link", ".", "..", "", "/"} {
		_, err := d.Open(name, OpenOptions{Write: true, Create: true})
		assert.ErrorIs(t, err, ErrNotRegular, name)
	}
	_, err := d.Open("../"+filepath.Base(outside), OpenOptions{})
	assert.Error(t, err)
	got, err := os.ReadFile(outside)
	require.NoError(t, err)
	assert.Equal(t, "foreign", string(got))
}

func TestFlushesAreCounted(t *testing.T) {
	d := tempDir(t)
	f := create(t, d, "f", CacheBuffered)
	before := Flushes()
	for _, mode := range []SyncMode{"", SyncNone, SyncFsync, SyncFull} {
		_, err := f.Sync(mode)
		require.NoError(t, err)
	}
	require.NoError(t, d.Sync())
	assert.EqualValues(t, 3, Flushes()-before, "two of the file, one of the folder")
}

func TestStatIdentifiesAFile(t *testing.T) {
	d := tempDir(t)
	f := create(t, d, "f", CacheBuffered)
	_, err := f.WriteAt(pattern(5000, 1), 0)
	require.NoError(t, err)
	st, err := f.Stat()
	require.NoError(t, err)
	assert.EqualValues(t, 5000, st.Size)
	assert.True(t, st.Mode.IsRegular())
	other, err := create(t, d, "other", CacheBuffered).Stat()
	require.NoError(t, err)
	assert.False(t, st.Same(other))
	info, err := d.Lstat("f")
	require.NoError(t, err)
	assert.True(t, st.Same(StatOf(info)))
	assert.Equal(t, st, StatOf(info))
	info, err = d.Lstat(".")
	require.NoError(t, err)
	assert.True(t, StatOf(info).Mode.IsDir())
}
