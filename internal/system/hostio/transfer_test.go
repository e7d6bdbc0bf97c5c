package hostio_test

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	. "dmgbench/internal/system/hostio"
	"dmgbench/internal/system/hostio/hostiotest"
)

// opLog is a hook that notes the transfers it sees.
type opLog struct{ seen []string }

func (l *opLog) Before(op Op) error {
	if op.Kind == OpRead || op.Kind == OpWrite {
		l.seen = append(l.seen, fmt.Sprintf("%s %d+%d=%d", op.Kind, op.Off, op.Len, len(op.Data)))
	}
	return nil
}

func (*opLog) After(Op, int, error) {}

func TestHooksSeeEverySystemCallOfALargeTransfer(t *testing.T) {
	LowerMaxTransfer(t, 8192)
	log := &opLog{}
	d := tempDir(t, WithHook(log))
	f := create(t, d, "f", CacheBuffered)
	data, got := pattern(20_000, 1), make([]byte, 20_000)
	n, err := f.WriteAt(data, 100)
	require.NoError(t, err)
	assert.Equal(t, len(data), n)
	n, err = f.ReadAt(got, 100)
	require.NoError(t, err)
	assert.Equal(t, len(data), n)
	assert.True(t, bytes.Equal(data, got))
	assert.Equal(t, []string{"write 100+8192=8192", "write 8292+8192=8192", "write 16484+3616=3616",
		"read 100+8192=8192", "read 8292+8192=8192", "read 16484+3616=3616"}, log.seen)
}

// directFile is a file of n bytes that is opened for direct transfers, with none of its pages in the cache.
func directFile(t *testing.T, n int) (f *File, data []byte) {
	t.Helper()
	d := tempDir(t)
	f = create(t, d, "f", CacheDirect)
	if f.Cache() != CacheDirect {
		t.Skip("this file system has no direct transfers")
	}
	data = pattern(n, 7)
	_, err := f.WriteAt(data, 0)
	require.NoError(t, err)
	_, err = f.Sync(SyncFsync)
	require.NoError(t, err)
	require.NoError(t, f.Evict())
	return f, data
}

func TestDirectReadsOfAnyAlignmentPassTheCache(t *testing.T) {
	mem, err := AlignedBuffer(2 << 20)
	require.NoError(t, err)
	defer mem.Free()
	// With one call and with several, of files that end inside of a block and of one that does not.
	for _, c := range []struct{ size, limit int }{
		{1<<20 + 5000, 1 << 30}, {1<<20 + 5000, 64 << 10}, {1<<20 + 4096, 1 << 30},
	} {
		LowerMaxTransfer(t, c.limit)
		f, data := directFile(t, c.size)
		for _, r := range []struct{ mem, off, n int }{
			{0, 0, 8192}, {0, 0, 5000}, {0, 100, 300}, {0, 100, 50_000}, {512 - 100, 100, 50_000}, {100, 100, 50_000},
			{1, 0, 300_000}, {3, 700, 300_000}, {0, 0, c.size}, {0, 4096, c.size}, {0, c.size - 10, 10},
			{0, c.size - 10, 100}, {0, c.size, 1}, {0, c.size + 9000, 5000}, {0, c.size - c.size%512 - 8192, 10_000},
			{100, c.size - c.size%512 - 924, 10_000}, {100, c.size - c.size%512 + 612, 10_000},
		} {
			requireDirectRead(t, f, data, mem.Bytes()[r.mem:][:r.n], r.off, fmt.Sprintf("%+v of %+v", r, c))
		}
	}
}

func requireDirectRead(t *testing.T, f *File, data, p []byte, off int, what string) {
	t.Helper()
	clear(p)
	n, err := f.ReadAt(p, int64(off))
	want := data[min(off, len(data)):min(off+len(p), len(data))]
	require.Equal(t, len(want), n, what)
	if n < len(p) {
		require.ErrorIs(t, err, io.EOF, what)
	} else {
		require.NoError(t, err, what)
	}
	require.True(t, bytes.Equal(want, p[:n]), what)
	share, err := f.Resident(0, 0)
	require.NoError(t, err)
	require.Zero(t, share, "pages in the cache after reading %s", what)
	require.Equal(t, CacheDirect, f.Cache(), what)
}

// A direct write of any alignment makes up to three kinds of calls: before, in and after whole blocks. Each may fail.
func TestDirectWritesThatFailReturnWhatWasWritten(t *testing.T) {
	const n = 2<<20 + 8000 // from 100 on: 3996 bytes, 2 MiB in two calls if the memory is misaligned, 4004 bytes
	mem, err := AlignedBuffer(n + 4096)
	require.NoError(t, err)
	defer mem.Free()
	for _, c := range []struct{ skew, call, want int }{
		{100, 1, 0}, {100, 2, 3996}, {100, 3, 3996 + 2<<20}, {101, 1, 0}, {101, 2, 3996}, {101, 3, 3996 + 1<<20},
		{101, 4, 3996 + 2<<20},
	} {
		faults := &hostiotest.Faults{}
		f := create(t, tempDir(t, WithHook(faults)), "f", CacheDirect)
		if f.Cache() != CacheDirect {
			t.Skip("this file system has no direct transfers")
		}
		faults.FailNth(OpWrite, "", c.call, syscall.EIO)
		written, err := f.WriteAt(mem.Bytes()[c.skew:][:n], 100)
		require.ErrorIs(t, err, syscall.EIO, "%+v", c)
		assert.Equal(t, c.want, written, "%+v", c)
	}
}

// Writing where that is not allowed fails with or without a hook, and on a closed file, and names the file.
func TestTransfersThatAreNotAllowedFail(t *testing.T) {
	for name, opts := range map[string][]Option{"plain": nil, "hooked": {WithHook(&hostiotest.Recorder{})}} {
		d := tempDir(t, opts...)
		require.NoError(t, d.WriteFileAtomic("f", make([]byte, 10_000), 0o600))
		for _, mode := range []CacheMode{CacheBuffered, CacheDirect} {
			f, err := d.Open("f", OpenOptions{Cache: mode})
			require.NoError(t, err)
			_, err = f.WriteAt(make([]byte, 5000), 0)
			require.ErrorIs(t, err, syscall.EBADF, name)
			require.ErrorContains(t, err, f.Path())
			_, err = f.WritePadded(make([]byte, 5000), 0, 100)
			require.ErrorIs(t, err, syscall.EBADF, name)
			_, err = f.ReadAt(make([]byte, 10), -1)
			require.ErrorIs(t, err, fs.ErrInvalid, name)
			require.ErrorIs(t, f.Truncate(-1), fs.ErrInvalid)
			require.NoError(t, f.Close())
			_, err = f.WritePadded(make([]byte, 5000), 0, 100)
			require.ErrorIs(t, err, fs.ErrClosed, name)
		}
	}
}

// Of a direct write only the blocks that it covers in part are in the cache: the first, the last, none or all of few.
func TestDirectWritesOfAnyAlignmentPassTheCacheWithWholeBlocks(t *testing.T) {
	const size, page = 64 << 10, 4096
	mem, err := AlignedBuffer(2 * size)
	require.NoError(t, err)
	defer mem.Free()
	for _, c := range []struct{ mem, off, n, pages int }{
		{0, 0, size, 0}, {1, 0, size, 0}, {512 - 100, 8192, 8192, 0}, {0, 100, size - 100, 1}, {1, 100, size - 100, 1},
		{0, 0, size - 100, 1}, {3, 0, size - 100, 1}, {100, 100, size - 200, 2}, {7, 100, size - 200, 2},
		{0, 8192 + 10, 100, 1},
	} {
		what := fmt.Sprintf("%+v", c)
		f, data := directFile(t, size)
		p := mem.Bytes()[c.mem:][:c.n]
		copy(p, pattern(c.n, 8))
		copy(data[c.off:], p)
		n, err := f.WriteAt(p, int64(c.off))
		require.NoError(t, err, what)
		require.Equal(t, c.n, n, what)
		share, err := f.Resident(0, 0)
		require.NoError(t, err)
		assert.EqualValues(t, c.pages, share*size/page, "pages in the cache after writing %s", what)
		got := make([]byte, size)
		_, err = f.ReadAt(got, 0)
		require.NoError(t, err)
		require.True(t, bytes.Equal(data, got), what)
	}
}

// A range that begins and ends inside of pages is dropped with these pages, and no others are.
func TestEvictDropsThePagesThatARangeTouches(t *testing.T) {
	d := tempDir(t)
	if _, _, fsType, _ := d.FreeSpace(); fsType == "tmpfs" {
		t.Skip("tmpfs is the cache")
	}
	f := create(t, d, "f", CacheBuffered)
	const page = 4096
	for i := range 8 {
		_, err := f.WriteAt(pattern(page, uint64(i)), int64(i)*page)
		require.NoError(t, err)
		_, err = f.Sync(SyncFsync)
		require.NoError(t, err)
	}
	cached := func() (pages string) {
		for i := range int64(8) {
			share, err := f.Resident(i*page, page)
			require.NoError(t, err)
			pages += fmt.Sprint(share)
		}
		return pages
	}
	require.NoError(t, f.EvictRange(2*page+100, page))
	assert.Equal(t, "11001111", cached())
	require.NoError(t, f.EvictRange(5*page+100, 0))
	assert.Equal(t, "11001000", cached())
}

func TestResidentCountsThePagesThatARangeTouches(t *testing.T) {
	d := tempDir(t)
	if _, _, fsType, _ := d.FreeSpace(); fsType == "tmpfs" {
		t.Skip("tmpfs is the cache")
	}
	f := create(t, d, "f", CacheBuffered)
	const page = 4096
	for i := range int64(9) { // page by page: the kernel caches what it gets at once as one, and drops it as one
		_, err := f.WriteAt(pattern(page-int(i/8*3000), 1), i*page)
		require.NoError(t, err)
	}
	require.NoError(t, f.EvictRange(0, 2*page))
	for _, c := range []struct {
		off, n int64
		want   float64
	}{
		{0, 0, 7.0 / 9}, {2 * page, 0, 1}, {2*page + 100, 0, 1}, {page, 2 * page, 0.5}, {page + 100, page, 0.5},
		{0, 2 * page, 0}, {2 * page, 1 << 40, 1}, {8 * page, 50, 1}, {9 * page, 0, 0}, {100 * page, 10, 0},
	} {
		share, err := f.Resident(c.off, c.n)
		require.NoError(t, err)
		assert.Equal(t, c.want, share, "%+v", c)
	}
}

// A large file is mapped in parts; none of them may be counted twice, left out or asked for behind the end.
func TestResidentOfALargeFile(t *testing.T) {
	d := tempDir(t)
	if _, _, fsType, _ := d.FreeSpace(); fsType == "tmpfs" {
		t.Skip("tmpfs is the cache")
	}
	f := create(t, d, "sparse", CacheBuffered)
	const size, page = 512 << 20, 4096
	require.NoError(t, f.Truncate(size))
	for _, off := range []int64{100 << 20, 300 << 20} {
		_, err := f.WriteAt(make([]byte, page), off)
		require.NoError(t, err)
	}
	for _, c := range []struct{ off, n, cached int64 }{
		{0, 0, 2}, {0, size, 2}, {0, 256 << 20, 1}, {256 << 20, 0, 1}, {page, 256 << 20, 1}, {page, 300 << 20, 2},
	} {
		share, err := f.Resident(c.off, c.n)
		require.NoError(t, err, "%+v", c)
		pages := min(c.n, size-c.off) / page
		if c.n == 0 {
			pages = (size - c.off) / page
		}
		assert.InDelta(t, float64(c.cached)/float64(pages), share, 1e-9, "%+v", c)
	}
}
