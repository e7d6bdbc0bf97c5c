package container

import (
	"bytes"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/hostio/hostiotest"
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

// TestForeignFormats: images of other programs are named, of fixed VHD images by what is at their end.
func TestForeignFormats(t *testing.T) {
	vhd := append([]byte("conectix\x00\x00\x00\x02\x00\x01\x00\x00"), make([]byte, SectorSize-16)...)
	other := bytes.Clone(vhd)
	other[13] = 2
	vdi := make([]byte, SectorSize)
	copy(vdi[0x40:], "\x7f\x10\xda\xbe")
	body := make([]byte, 3*SectorSize)
	for want, content := range map[string][]byte{
		"Virtual PC image (VHD of fixed size)": append(bytes.Clone(body), vhd...), "Virtual PC image (VHD)": append(bytes.Clone(vhd), body...),
		"VirtualBox image (VDI)": append(vdi, body...), "": append(bytes.Clone(body), other...),
	} {
		d := tempDir(t)
		require.NoError(t, d.WriteFileAtomic("i", content, 0o644))
		img, err := Open(d, "i", OpenOptions{ReadOnly: true})
		require.NoError(t, err)
		found, err := ForeignFormat(img)
		require.NoError(t, err)
		assert.Equal(t, want, found)
		require.NoError(t, img.Close())
	}
}

// TestEncryptedShrinkingCrash cuts the power all through a raw image becoming shorter: its header never states more than
// the file contains.
func TestEncryptedShrinkingCrash(t *testing.T) {
	rec := &hostiotest.Recorder{}
	d := tempDir(t, hostio.WithHook(rec))
	require.NoError(t, Create(d, "i", Spec{Format: UDRW, Size: 64 << 10, Encryption: secret(512)}))
	created := len(rec.Ops())
	img := openSecret(t, d, OpenOptions{})
	require.NoError(t, img.Resize(16<<10))
	require.NoError(t, img.Close())
	sizes := map[int64]bool{}
	for n := created; n <= len(rec.Ops()); n++ {
		dst := tempDir(t)
		require.NoError(t, rec.Replay(0, n, dst, nil))
		img, err := Open(dst, "i", OpenOptions{ReadOnly: true, Passphrase: []byte("secret")})
		require.NoError(t, err, "after operation %d", n)
		sizes[img.Size()] = true
		require.NoError(t, img.Close())
	}
	assert.Equal(t, map[int64]bool{64 << 10: true, 16 << 10: true}, sizes)
}

// TestUsageOfDamaged: an image that cannot be opened has no usage.
func TestUsageOfDamaged(t *testing.T) {
	d := tempDir(t)
	require.NoError(t, d.WriteFileAtomic("i", append(bytes.Clone(udspMagic[:]), make([]byte, 4092)...), 0o644))
	_, err := UsageOf(d, "i")
	require.Error(t, err)
}

// TestResizeReportsFailures: a host that fails to write or to flush fails the call that changes the size, either way.
func TestResizeReportsFailures(t *testing.T) {
	for _, format := range []string{UDSB, UDSP, ASIF} {
		for _, kind := range []hostio.Kind{hostio.OpWrite, hostio.OpSync, hostio.OpPunch} {
			if kind == hostio.OpPunch && format != ASIF {
				continue // these are cut, or their bands
			}
			for _, size := range []int64{8<<20 + 512, 3<<20 + 512} {
				faults, _, img := faulty(t, Spec{Format: format, Size: 5<<20 + 512}, OpenOptions{})
				_, err := img.WriteAt(pattern(5<<20+512, 1), 0)
				require.NoError(t, err)
				faults.FailFrom(kind, "", 1, syscall.EIO)
				require.ErrorIs(t, img.Resize(size), syscall.EIO, "%s %s %d", format, kind, size)
			}
		}
	}
}

// TestBandsOfOthersKeepTheirEnds: closing a bundle lengthens no band that was only read, wherever it ends.
func TestBandsOfOthersKeepTheirEnds(t *testing.T) {
	d := tempDir(t)
	require.NoError(t, Create(d, "i", Spec{Format: UDSB, Size: 4 << 20, BandSize: 1 << 20}))
	require.NoError(t, d.WriteFileAtomic("i/bands/1", []byte("ten bytes."), 0o644))
	for _, readOnly := range []bool{true, false} {
		img, err := Open(d, "i", OpenOptions{ReadOnly: readOnly})
		require.NoError(t, err)
		got := make([]byte, 11)
		_, err = img.ReadAt(got, 1<<20)
		require.NoError(t, err)
		assert.Equal(t, "ten bytes.\x00", string(got))
		require.NoError(t, img.Close())
		left, err := d.ReadFile("i/bands/1", 1<<20)
		require.NoError(t, err)
		assert.Equal(t, "ten bytes.", string(left))
	}
}

// unreadable is a file whose content cannot be read.
type unreadable struct{ *memStore }

func (unreadable) ReadAt([]byte, int64) (int, error) { return 0, syscall.EIO }

// TestContentThatCannotBeRead: a host that fails to read is no damage of the image, and no image.
func TestContentThatCannotBeRead(t *testing.T) {
	f := unreadable{blankASIF(t, smallASIF(1<<20))}
	_, err := loadASIF(syncStore{f: f})
	require.ErrorIs(t, err, syscall.EIO)
	assert.NotErrorIs(t, err, ErrCorrupt)
}

// TestBackupIsReported: a bundle warns when its second property list was used, and only then.
func TestBackupIsReported(t *testing.T) {
	d := tempDir(t)
	require.NoError(t, Create(d, "i", Spec{Format: UDSB, Size: 1 << 20}))
	for _, missing := range []bool{false, true} {
		if missing {
			require.NoError(t, d.Remove("i/Info.plist"))
		}
		img, err := Open(d, "i", OpenOptions{ReadOnly: true})
		require.NoError(t, err)
		assert.Equal(t, missing, len(img.(Warner).Warnings()) == 1)
		require.NoError(t, img.Close())
	}
}
