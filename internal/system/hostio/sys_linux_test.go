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
