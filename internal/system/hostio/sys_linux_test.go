package hostio_test

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	. "dmgbench/internal/system/hostio"
)

// proc is a file system that no disk image is on.
func TestUnlistedFileSystemsAreNamedByTheirNumber(t *testing.T) {
	d, err := OpenDir("/proc")
	require.NoError(t, err)
	defer d.Close()
	_, _, fsType, err := d.FreeSpace()
	require.NoError(t, err)
	assert.Equal(t, fmt.Sprintf("%#x", unix.PROC_SUPER_MAGIC), fsType)
}

func TestRefusedOpensLeaveNoDescriptor(t *testing.T) {
	d := tempDir(t)
	require.NoError(t, d.Mkdir("folder"))
	opened := func() (n int) {
		list, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		for _, fd := range list {
			if to, _ := os.Readlink("/proc/self/fd/" + fd.Name()); strings.HasPrefix(to, d.Path()) {
				n++
			}
		}
		return n
	}
	before := opened()
	require.Positive(t, before, "the folder's own")
	_, err := d.Open("folder", OpenOptions{})
	require.ErrorIs(t, err, ErrNotRegular)
	assert.Equal(t, before, opened())
}

// The kernel notes the advice for large pages as "hg" with the mapping (proc_pid_smaps(5)).
func TestLargeBuffersAskForLargePages(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil {
		t.Skip("this kernel has no transparent huge pages")
	}
	b, err := AlignedBuffer(4 << 20)
	require.NoError(t, err)
	defer b.Free()
	maps, err := os.ReadFile("/proc/self/smaps")
	require.NoError(t, err)
	at := fmt.Sprintf("%x-", uintptr(unsafe.Pointer(&b.Bytes()[0])))
	found := regexp.MustCompile(`(?s)(?:^|\n)0*` + at + `.*?\nVmFlags:([^\n]*)`).FindSubmatch(maps)
	require.NotNil(t, found, "no mapping starts at the buffer: the advice splits it")
	assert.Contains(t, strings.Fields(string(found[1])), "hg")
}

// Without this, a mistake in the opening of direct files makes the tests of direct transfers skip.
func TestFilesAreDirectWhereTheKernelReportsAnAlignment(t *testing.T) {
	d := tempDir(t)
	f := create(t, d, "f", CacheDirect)
	var sx unix.Statx_t
	require.NoError(t, unix.Statx(unix.AT_FDCWD, f.Path(), 0, unix.STATX_DIOALIGN, &sx))
	if sx.Dio_offset_align == 0 {
		t.Skip("the kernel reports no alignment for direct transfers to this file")
	}
	assert.Equal(t, CacheDirect, f.Cache())
}

// writeCalls counts the write system calls of do.
func writeCalls(t *testing.T, do func()) (n int) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	calls := func() (n int) {
		text, err := os.ReadFile("/proc/thread-self/io")
		if err != nil {
			t.Skip("this kernel does not count the system calls of a thread")
		}
		_, after, _ := strings.Cut(string(text), "syscw: ")
		_, err = fmt.Sscan(after, &n)
		require.NoError(t, err)
		return n
	}
	before := calls()
	do()
	return calls() - before
}

// One call writes data and padding where both are whole blocks, and no call is made in vain where they are not.
func TestWritePaddedMakesAsFewCallsAsItCan(t *testing.T) {
	mem, err := AlignedBuffer(32 << 10)
	require.NoError(t, err)
	defer mem.Free()
	for name, c := range map[string]struct{ skew, off, n, pad, buffered, direct int }{
		"whole blocks":            {0, 4096, 10_000, 2288, 1, 1},
		"a part of the last":      {0, 4096, 10_000, 100, 1, 2},
		"memory in between":       {1, 4096, 10_000, 2288, 1, 2},
		"from inside of a block":  {0, 512, 10_000, 1776, 1, 3},
		"less than a block":       {0, 4096, 100, 3996, 1, 1},
		"no padding":              {0, 4096, 8192, 0, 1, 1},
		"no data, only a padding": {0, 4096, 0, 4095, 1, 1},
	} {
		for _, mode := range []CacheMode{CacheBuffered, CacheDirect} {
			f := create(t, tempDir(t), "f", mode)
			want := c.buffered
			if f.Cache() == CacheDirect {
				want = c.direct
			}
			Spare(true)
			Warm(2)
			assert.Equal(t, want, writeCalls(t, func() {
				n, err := f.WritePadded(mem.Bytes()[c.skew:][:c.n], int64(c.off), c.pad)
				require.NoError(t, err)
				require.Equal(t, c.n, n)
			}), "%s, %s", name, mode)
		}
	}
}
