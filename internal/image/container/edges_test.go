package container

import (
	"bytes"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/system/hostio"
)

// TestShrinksBetweenChunks: a device cut between two chunks keeps the one before the cut, and not the one after it.
func TestShrinksBetweenChunks(t *testing.T) {
	const chunk = 1 << 20
	for format, band := range map[string]int64{UDSB: chunk, UDSP: chunk, ASIF: 0} { // ASIF has no others
		d := tempDir(t)
		require.NoError(t, Create(d, "i", Spec{Format: format, Size: 8 * chunk, BandSize: band}))
		img, err := Open(d, "i", OpenOptions{})
		require.NoError(t, err)
		data := pattern(2*chunk, 1)
		_, err = img.WriteAt(data, 4*chunk)
		require.NoError(t, err)
		require.NoError(t, img.Resize(5*chunk))
		require.NoError(t, img.Resize(8*chunk))
		got := make([]byte, 8*chunk)
		_, err = img.ReadAt(got, 0)
		require.NoError(t, err)
		want := make([]byte, 8*chunk)
		copy(want[4*chunk:], data[:chunk])
		assert.True(t, bytes.Equal(want, got), format)
		require.NoError(t, img.Close())
	}
}

// TestWholeBandsAreDeleted: discarding the device's share of a band deletes its file, however long that is.
func TestWholeBandsAreDeleted(t *testing.T) {
	d := tempDir(t)
	require.NoError(t, Create(d, "i", Spec{Format: UDSB, Size: 2<<20 + 4096, BandSize: 1 << 20}))
	for name, n := range map[string]int{"0": 0, "1": 4096, "2": 1 << 20} { // other programs make all of these
		require.NoError(t, d.WriteFileAtomic("i/bands/"+name, pattern(n, 1), 0o644))
	}
	img, err := Open(d, "i", OpenOptions{})
	require.NoError(t, err)
	require.NoError(t, img.Discard(0, 2<<20))
	require.NoError(t, img.Discard(2<<20, 4096))
	require.NoError(t, img.Close())
	left, err := filepath.Glob(filepath.Join(d.Path(), "i/bands/*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

// stateless is a file whose state cannot be read.
type stateless struct{ *memStore }

func (stateless) Size() (int64, error)              { return 0, syscall.EIO }
func (stateless) Stat() (hostio.Stat, error)        { return hostio.Stat{}, syscall.EIO }
func (stateless) Truncate(int64) error              { return syscall.EIO }
func (stateless) ReadAt([]byte, int64) (int, error) { return 0, syscall.EIO }

// TestStateThatCannotBeRead: no format takes the error for an empty file.
func TestStateThatCannotBeRead(t *testing.T) {
	f := stateless{blankASIF(t, smallASIF(1<<20))}
	_, err := loadASIF(syncStore{f: f})
	require.ErrorIs(t, err, syscall.EIO)
	_, err = openUDSP(syncStore{f: f}, true)
	require.ErrorIs(t, err, syscall.EIO)
	_, err = openUDIF(f, probeResult{}, OpenOptions{})
	require.ErrorIs(t, err, syscall.EIO)
	img, err := drivers[UDRW].open(f, probeResult{size: 512}, OpenOptions{})
	require.NoError(t, err)
	_, err = img.Usage()
	require.ErrorIs(t, err, syscall.EIO)

	d := tempDir(t)
	require.NoError(t, Create(d, "i", Spec{Format: UDRW, Size: 512}))
	s, err := openStore(d, "i", OpenOptions{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = s.Size()
	require.Error(t, err)
}

// TestUsageOfDamaged: an image that cannot be opened has no usage.
func TestUsageOfDamaged(t *testing.T) {
	d := tempDir(t)
	require.NoError(t, d.WriteFileAtomic("i", append(bytes.Clone(udspMagic[:]), make([]byte, 4092)...), 0o644))
	_, err := UsageOf(d, "i")
	require.Error(t, err)
}
