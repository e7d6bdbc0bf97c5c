package container

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/blockdev/blockdevtest"
)

// volumeAt is the corruption of a UDIF image's stored data at or after a byte of the device.
func volumeAt(off int64, pass []byte) Corruption {
	return Corruption{Kind: "volume", UDIF: true, Passphrase: pass,
		Places: func(Image) ([]int64, int, error) { return []int64{off}, 512, nil }}
}

// Corrupted data after a byte of the device fails its checksum, and data before it stays readable.
func TestCorruptStoredData(t *testing.T) {
	dev := blockdevtest.NewMem(6 << 20)
	data := pattern(512<<10, 1)
	for _, off := range []int64{0, 4 << 20} { // zeros between
		_, err := dev.WriteAt(data, off)
		require.NoError(t, err)
	}
	pass := []byte("secret")
	for _, format := range []string{"UDRO", "UDZO", "ULMO", "encrypted"} {
		d, spec := tempDir(t), UDIFSpec{Format: format}
		o := OpenOptions{ReadOnly: true}
		if format == "encrypted" {
			spec = UDIFSpec{Format: "UDZO", Encryption: Encryption{Cipher: AES256, Passphrase: pass, Iterations: 1000}}
			o.Passphrase = pass
		}
		require.NoError(t, CreateUDIF(t.Context(), d, "a", dev, spec))
		require.NoError(t, Corrupt(d, "a", volumeAt(3<<20, o.Passphrase)))
		found, err := Verify(d, "a", o)
		require.NoError(t, err)
		assert.NotEmpty(t, found, format)
		img, err := Open(d, "a", o)
		require.NoError(t, err)
		got := make([]byte, len(data))
		_, err = img.ReadAt(got, 0)
		require.NoError(t, err)
		assert.Equal(t, data, got)
		_, err = img.ReadAt(got, 4<<20)
		assert.True(t, err != nil || string(got) != string(data), format)
		require.NoError(t, img.Close())
		require.ErrorContains(t, Corrupt(d, "a", volumeAt(6<<20, o.Passphrase)), "no data after")
	}
	d := tempDir(t)
	require.NoError(t, Create(d, "raw.dmg", Spec{Format: "UDRW", Size: 1 << 20}))
	require.ErrorIs(t, Corrupt(d, "raw.dmg", volumeAt(0, nil)), errors.ErrUnsupported)
	require.Error(t, Corrupt(d, "missing", volumeAt(0, nil)))
}

// Corrupting files changes just the part that its kind names.
func TestCorruptFiles(t *testing.T) {
	d := tempDir(t)
	require.NoError(t, Create(d, "b", Spec{Format: UDSB, Size: 12 << 20, BandSize: 1 << 20}))
	for name, n := range map[string]int{"0": 1 << 20, "1": 1 << 19, "a": 1 << 19} {
		require.NoError(t, d.WriteFileAtomic("b/bands/"+name, pattern(n, 1), 0o644))
	}
	require.NoError(t, Corrupt(d, "b", Corruption{Kind: "truncated"}))
	fi, err := os.Stat(filepath.Join(d.Path(), "b/bands/0"))
	require.NoError(t, err)
	assert.EqualValues(t, 1<<19, fi.Size(), "the longest band")
	require.NoError(t, Corrupt(d, "b", Corruption{Kind: "band-missing"}))
	assert.NoFileExists(t, filepath.Join(d.Path(), "b/bands/1"))
	require.NoError(t, Corrupt(d, "b", Corruption{Kind: "header"}))
	found, err := Verify(d, "b", OpenOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, found)
	assert.Contains(t, found[0].Problem, "Info.bckup is used")

	data := pattern(1<<20, 2)
	for kind, want := range map[string][2]int{"header": {0, 1024}, "table": {512, 34 * 512}, "volume": {40960, 40960 + 512}} {
		require.NoError(t, d.WriteFileAtomic("r", data, 0o644))
		require.NoError(t, Corrupt(d, "r", Corruption{Kind: kind, Places: volumeAt(40960, nil).Places}))
		got, err := d.ReadFile("r", 1<<20)
		require.NoError(t, err)
		changed := bytes.Clone(data)
		copy(changed[want[0]:want[1]], garbage(int64(want[1]-want[0])))
		if kind == "table" {
			copy(changed[1<<20-33*512:], garbage(33*512))
		}
		assert.True(t, bytes.Equal(changed, got), kind)
	}
	require.NoError(t, Corrupt(d, "r", Corruption{Kind: "header", UDIF: true}))
	got, err := d.ReadFile("r", 1<<20)
	require.NoError(t, err)
	assert.Equal(t, garbage(512), got[1<<20-512:])
	require.NoError(t, Corrupt(d, "r", Corruption{Kind: "truncated"}))
	require.ErrorIs(t, Corrupt(d, "r", Corruption{Kind: "band-missing"}), errors.ErrUnsupported)
	require.ErrorIs(t, Corrupt(d, "r", Corruption{Kind: "other"}), errors.ErrUnsupported)
}
