package host

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"dmgbench/internal/system/hostio"
)

func TestDeviceBytesCountsAFlushedWrite(t *testing.T) {
	d, err := hostio.OpenDir(t.TempDir())
	require.NoError(t, err)
	defer d.Close()
	_, before, err := DeviceBytes(d.Path())
	var st unix.Stat_t
	require.NoError(t, unix.Stat(d.Path(), &st))
	device := fmt.Sprintf("/sys/dev/block/%d:%d/stat", unix.Major(st.Dev), unix.Minor(st.Dev))
	if _, statErr := os.Stat(device); statErr != nil && errors.Is(err, ErrUnsupported) {
		t.Skip("the temporary folder is on no block device")
	}
	require.NoError(t, err)
	f, err := d.Open("f", hostio.OpenOptions{Write: true, Create: true})
	require.NoError(t, err)
	defer f.Close()
	_, err = f.WriteAt(make([]byte, 8<<20), 0)
	require.NoError(t, err)
	_, err = f.Sync(hostio.SyncFull)
	require.NoError(t, err)
	_, after, err := DeviceBytes(d.Path())
	require.NoError(t, err)
	assert.GreaterOrEqual(t, after-before, int64(8<<20))
}

func TestDeviceBytesNeedABlockDevice(t *testing.T) {
	home, err := os.MkdirTemp("/dev/shm", "host")
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("/dev/shm is missing")
	}
	require.NoError(t, err)
	defer os.RemoveAll(home)
	_, _, err = DeviceBytes(home)
	assert.ErrorIs(t, err, ErrUnsupported)
	assert.ErrorIs(t, err, errors.ErrUnsupported)
}

func TestParseDiskStat(t *testing.T) {
	r, w, err := parseDiskStat("  8 0 16 5 9 1 24 7 0 3 4 0\n")
	require.NoError(t, err)
	assert.Equal(t, [2]int64{16 * sector, 24 * sector}, [2]int64{r, w})
	for _, text := range []string{"", "1 2 3", "1 2 x 4 5 6 7", "1 2 -3 4 5 6 7"} {
		_, _, err = parseDiskStat(text)
		assert.ErrorIs(t, err, ErrUnsupported, text)
	}
}
