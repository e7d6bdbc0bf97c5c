package hostio_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"regexp"
	"runtime"
	"strconv"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	. "dmgbench/internal/system/hostio"
)

// counted returns by how much do raises a counter of this thread (proc_pid_io(5)): "syscr" and "syscw" are calls that
// read and write, "rchar" are the bytes that they read. It is the least of three times, since the Go runtime may write
// to wake another thread up.
func counted(t *testing.T, counter string, do func()) int {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	fd, err := unix.Open("/proc/thread-self/io", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip("this kernel does not count what a thread reads and writes")
	}
	defer unix.Close(fd)
	value := regexp.MustCompile(counter + `: (\d+)`)
	text := make([]byte, 4096)
	read := func() (count, size int) {
		size, err := unix.Pread(fd, text, 0)
		require.NoError(t, err)
		found := value.FindSubmatch(text[:size])
		require.NotNil(t, found)
		count, err = strconv.Atoi(string(found[1]))
		require.NoError(t, err)
		return count, size
	}
	least := math.MaxInt
	for range 3 {
		before, size := read()
		do()
		after, _ := read()
		own := map[string]int{"syscr": 1, "rchar": size} // of the first look at the counter
		least = min(least, after-before-own[counter])
	}
	return least
}

// directAlignment is what the kernel asks of direct transfers of a file, in bytes.
func directAlignment(t *testing.T, f *File) int {
	t.Helper()
	var sx unix.Statx_t
	require.NoError(t, unix.Statx(unix.AT_FDCWD, f.Path(), 0, unix.STATX_DIOALIGN, &sx))
	if sx.Dio_offset_align == 0 {
		t.Skip("the kernel reports no alignment for direct transfers to this file")
	}
	return int(sx.Dio_offset_align)
}

// Without this, a mistake in the opening of direct files makes the tests of direct transfers skip.
func TestFilesAreDirectWhereTheKernelReportsAnAlignment(t *testing.T) {
	f := create(t, tempDir(t), "f", CacheDirect)
	directAlignment(t, f)
	assert.Equal(t, CacheDirect, f.Cache())
}

// One call reads any range of a file, with the blocks that the range touches and no others. Only where the memory does
// not suit the range, it takes one call for each MiB.
func TestDirectReadsMakeAsFewCallsAsTheyCan(t *testing.T) {
	const size = 2_000_000
	f, data := directFile(t, size)
	align := directAlignment(t, f)
	mem, err := AlignedBuffer(size + 4096)
	require.NoError(t, err)
	defer mem.Free()
	for _, c := range []struct{ mem, off, n, calls int }{
		{0, 0, 1 << 20, 1}, {0, 0, size, 1}, {0, 4096, size - 4096, 1}, {100, 100, size - 100, 1}, {0, align, align, 1},
		{100, 100, 4096 - 100, 1}, {100, 100, 1<<20 + 4096 - 100, 1}, {100, 100, 300, 1}, {1, 0, 300_000, 1},
		{1, 0, 1_900_000, 2}, {100, 100, size, 1},
	} {
		what := fmt.Sprintf("%+v", c)
		p := mem.Bytes()[c.mem:][:c.n]
		want := data[c.off:min(c.off+c.n, size)]
		read := func() {
			n, err := f.ReadAt(p, int64(c.off))
			require.Equal(t, len(want), n, what)
			if n < c.n {
				require.ErrorIs(t, err, io.EOF, what)
			} else {
				require.NoError(t, err, what)
			}
		}
		clear(p)
		assert.Equal(t, c.calls, counted(t, "syscr", read), what)
		require.True(t, bytes.Equal(want, p[:len(want)]), what)
		end := min((c.off+c.n+align-1)/align*align, size)
		if c.mem%align == c.off%align {
			assert.Equal(t, end-c.off/align*align, counted(t, "rchar", read), what)
		}
	}
}

// One call writes data and padding where both are whole blocks, and no call is made in vain where they are not. Blocks
// that are written in part go through the cache, one page each.
func TestWritesMakeAsFewCallsAsTheyCan(t *testing.T) {
	mem, err := AlignedBuffer(32 << 10)
	require.NoError(t, err)
	defer mem.Free()
	for name, c := range map[string]struct{ skew, off, n, pad, buffered, direct, cached int }{
		"whole blocks":             {0, 0, 10_000, 2288, 1, 1, 0},
		"whole blocks further on":  {0, 4096, 10_000, 2288, 1, 1, 0},
		"a part of the last":       {0, 4096, 10_000, 100, 1, 2, 1},
		"memory in between":        {1, 4096, 10_000, 2288, 1, 2, 0},
		"from inside of a block":   {0, 512, 10_000, 1776, 1, 3, 1},
		"less than a block":        {0, 4096, 100, 3996, 1, 1, 0},
		"no padding":               {0, 4096, 8192, 0, 1, 1, 0},
		"no data, only a padding":  {0, 4096, 0, 4095, 1, 1, 1},
		"parts of two blocks":      {0, 100, 6000, 0, 1, 1, 2},
		"parts around whole ones":  {0, 100, 12_000, 0, 1, 3, 2},
		"a part before whole ones": {0, 100, 12_288 - 100, 0, 1, 2, 1},
		"a part after whole ones":  {0, 4096, 10_000, 0, 1, 2, 1},
	} {
		for _, mode := range []CacheMode{CacheBuffered, CacheDirect} {
			what := fmt.Sprintf("%s, %s", name, mode)
			f := create(t, tempDir(t), "f", mode)
			want := c.buffered
			if f.Cache() == CacheDirect {
				want = c.direct
			}
			require.NoError(t, f.Truncate(32<<10))
			Warm(2)
			assert.Equal(t, want, counted(t, "syscw", func() {
				n, err := f.WritePadded(mem.Bytes()[c.skew:][:c.n], int64(c.off), c.pad)
				require.NoError(t, err)
				require.Equal(t, c.n, n)
			}), what)
			if f.Cache() == CacheDirect {
				share, err := f.Resident(0, 0)
				require.NoError(t, err)
				assert.EqualValues(t, c.cached, share*8, "pages in the cache: %s", what)
			}
		}
	}
}

// A buffer is touched when it is made, so that its first use, which may be timed, pays no page faults.
func TestTheFirstUseOfABufferPaysNoPageFaults(t *testing.T) {
	const size = 128 << 10 // too small for large pages
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	faults := func() int64 {
		var u unix.Rusage
		require.NoError(t, unix.Getrusage(unix.RUSAGE_THREAD, &u))
		return u.Minflt
	}
	b, err := AlignedBuffer(size)
	require.NoError(t, err)
	defer b.Free()
	before := faults()
	for i := 0; i < size; i += 4096 {
		b.Bytes()[i] = 1
	}
	assert.Less(t, faults()-before, int64(8), "of 32 pages")
}

func TestFreeGivesTheMemoryBack(t *testing.T) {
	b, err := AlignedBuffer(1 << 20)
	require.NoError(t, err)
	at := uintptr(unsafe.Pointer(&b.Bytes()[0]))
	mapped := func() unix.Errno {
		var pages [256]byte
		_, _, e := unix.Syscall(unix.SYS_MINCORE, at, 1<<20, uintptr(unsafe.Pointer(&pages[0])))
		return e
	}
	require.Zero(t, mapped())
	b.Free()
	assert.Equal(t, unix.ENOMEM, mapped())
	(*Buffer)(nil).Free()
}
