package hostio_test

import (
	"fmt"
	"os"
	"regexp"
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

// Neither what is refused nor what is closed again keeps a descriptor.
func TestNoDescriptorIsLeft(t *testing.T) {
	d := tempDir(t)
	require.NoError(t, d.MkdirAll("folder/below"))
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
	for name, do := range map[string]func() error{
		"refused": func() error {
			_, err := d.Open("folder", OpenOptions{})
			require.ErrorIs(t, err, ErrNotRegular)
			return nil
		},
		"closed": func() error {
			f, err := d.Open("folder/below/f", OpenOptions{Write: true, Create: true, Cache: CacheDirect})
			require.NoError(t, err)
			return f.Close()
		},
		"replaced at once": func() error { return d.WriteFileAtomic("folder/below/g", []byte("x"), 0o600) },
		"a folder": func() error {
			sub, err := d.Sub("folder")
			require.NoError(t, err)
			return sub.Close()
		},
	} {
		require.NoError(t, do(), name)
		assert.Equal(t, before, opened(), name)
	}
}

// A program without descriptors left gets an error, and no file that is buffered without a word.
func TestOpeningADirectFileFailsWithoutDescriptors(t *testing.T) {
	d := tempDir(t)
	f := create(t, d, "f", CacheDirect)
	if f.Cache() != CacheDirect {
		t.Skip("this file system has no direct transfers")
	}
	next, err := unix.Open(d.Path(), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	require.NoError(t, unix.Close(next))
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(next) + 1, Max: limit.Max}))
	_, err = d.Open("f", OpenOptions{Cache: CacheDirect}) // takes two
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	require.ErrorIs(t, err, unix.EMFILE)
}

// What the kernel refuses is reported: proc cannot flush, and sysfs cannot map.
func TestErrorsOfTheKernelAreReported(t *testing.T) {
	proc, err := OpenDir("/proc")
	require.NoError(t, err)
	defer proc.Close()
	require.ErrorIs(t, proc.Sync(), unix.EINVAL)
	sys, err := OpenDir("/sys/kernel")
	require.NoError(t, err)
	defer sys.Close()
	f, err := sys.Open("uevent_seqnum", OpenOptions{})
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	_, err = f.Resident(0, 0)
	require.ErrorIs(t, err, unix.ENODEV)
}

func TestFreeSpaceIsThatOfTheFileSystem(t *testing.T) {
	d := tempDir(t)
	free, total, _, err := d.FreeSpace()
	require.NoError(t, err)
	var s unix.Statfs_t
	require.NoError(t, unix.Statfs(d.Path(), &s))
	assert.EqualValues(t, int64(s.Blocks)*s.Frsize, total)
	assert.InDelta(t, int64(s.Bavail)*s.Frsize, free, 1<<30, "others may write meanwhile")
}

// ext4 keeps the hint in the flags of the folder (chattr +T).
func TestSpreadSubdirsMarksTheFolder(t *testing.T) {
	d := tempDir(t)
	if err := d.SpreadSubdirs(); err != nil {
		require.ErrorIs(t, err, ErrUnsupported)
		t.Skip("this file system has no such hint")
	}
	fd, err := os.Open(d.Path())
	require.NoError(t, err)
	defer fd.Close()
	flags, err := unix.IoctlGetUint32(int(fd.Fd()), unix.FS_IOC_GETFLAGS)
	require.NoError(t, err)
	assert.NotZero(t, flags&0x20000, "FS_TOPDIR_FL")

	proc, err := OpenDir("/proc")
	require.NoError(t, err)
	defer proc.Close()
	require.ErrorIs(t, proc.SpreadSubdirs(), ErrUnsupported)
}

func TestBothFlushesReachTheDrive(t *testing.T) {
	f := create(t, tempDir(t), "f", CacheBuffered)
	for _, mode := range []SyncMode{SyncFsync, SyncFull} {
		achieved, err := f.Sync(mode)
		require.NoError(t, err)
		assert.Equal(t, SyncFull, achieved)
	}
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
