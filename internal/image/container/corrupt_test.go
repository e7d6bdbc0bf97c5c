package container

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/blockdev/blockdevtest"
)

// volumeAt is the corruption of a UDIF image's stored data at or after a byte of the device.
func volumeAt(off int64, pass []byte) Corruption {
	return Corruption{Damage: Damage{Kind: "volume"}, UDIF: true, Passphrase: pass,
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
	require.NoError(t, Corrupt(d, "b", Corruption{Damage: Damage{Kind: "truncated"}}))
	fi, err := os.Stat(filepath.Join(d.Path(), "b/bands/0"))
	require.NoError(t, err)
	assert.EqualValues(t, 1<<19, fi.Size(), "the longest band")
	require.NoError(t, Corrupt(d, "b", Corruption{Damage: Damage{Kind: "band-missing"}}))
	assert.NoFileExists(t, filepath.Join(d.Path(), "b/bands/1"))
	require.NoError(t, Corrupt(d, "b", Corruption{Damage: Damage{Kind: "header"}}))
	found, err := Verify(d, "b", OpenOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, found)
	assert.Contains(t, found[0].Problem, "Info.bckup is used")

	data := pattern(1<<20, 2)
	for kind, want := range map[string][2]int{"header": {0, 1024}, "table": {512, 34 * 512}, "volume": {40960, 40960 + 512}} {
		require.NoError(t, d.WriteFileAtomic("r", data, 0o644))
		require.NoError(t, Corrupt(d, "r", Corruption{Damage: Damage{Kind: kind}, Places: volumeAt(40960, nil).Places}))
		got, err := d.ReadFile("r", 1<<20)
		require.NoError(t, err)
		changed := bytes.Clone(data)
		copy(changed[want[0]:want[1]], garbage(int64(want[1]-want[0])))
		if kind == "table" {
			copy(changed[1<<20-33*512:], garbage(33*512))
		}
		assert.True(t, bytes.Equal(changed, got), kind)
	}
	require.NoError(t, Corrupt(d, "r", Corruption{Damage: Damage{Kind: "header"}, UDIF: true}))
	got, err := d.ReadFile("r", 1<<20)
	require.NoError(t, err)
	assert.Equal(t, garbage(512), got[1<<20-512:])
	require.NoError(t, Corrupt(d, "r", Corruption{Damage: Damage{Kind: "truncated"}}))
	require.ErrorIs(t, Corrupt(d, "r", Corruption{Damage: Damage{Kind: "band-missing"}}), errors.ErrUnsupported)
	require.ErrorIs(t, Corrupt(d, "r", Corruption{Damage: Damage{Kind: "other"}}), errors.ErrUnsupported)
}

// The tail is the last MiB of the file or of the longest band, or all of a shorter one.
func TestCorruptTail(t *testing.T) {
	d := tempDir(t)
	tail := Corruption{Damage: Damage{Kind: "tail"}}
	size := func(name string) int64 {
		fi, err := d.Lstat(name)
		require.NoError(t, err)
		return fi.Size()
	}
	for n, left := range map[int]int64{3<<20 + 700: 2<<20 + 512, 1 << 20: 0, 1000: 0} {
		require.NoError(t, d.WriteFileAtomic("r", pattern(n, 1), 0o644))
		require.NoError(t, Corrupt(d, "r", tail))
		assert.Equal(t, left, size("r"))
	}
	require.NoError(t, Create(d, "b", Spec{Format: UDSB, Size: 12 << 20, BandSize: 4 << 20}))
	require.NoError(t, d.WriteFileAtomic("b/bands/0", pattern(1<<20, 1), 0o644))
	require.NoError(t, d.WriteFileAtomic("b/bands/1", pattern(4<<20, 1), 0o644))
	require.NoError(t, Corrupt(d, "b", tail))
	assert.Equal(t, []int64{1 << 20, 3 << 20}, []int64{size("b/bands/0"), size("b/bands/1")})
}

// Exactly the wanted number of bytes change, where data is stored.
func TestCorruptFlipped(t *testing.T) {
	d := tempDir(t)
	draw := func(seed uint64) func(int64) int64 { return rand.New(rand.NewPCG(seed, 0)).Int64N }
	flip := func(name string, n, band int, seed uint64) error {
		return Corrupt(d, name, Corruption{Damage: Damage{Kind: "flipped", Bytes: n, Band: band, Draw: draw(seed)}})
	}
	changes := func(name string, before []byte) (at []int) {
		after, err := d.ReadFile(name, 1<<30)
		require.NoError(t, err)
		require.Len(t, after, len(before))
		for i := range before {
			if before[i] != after[i] {
				at = append(at, i)
			}
		}
		return at
	}
	data := make([]byte, 5<<20) // zeros but for two blocks
	copy(data[1<<20:], pattern(64<<10, 1))
	copy(data[len(data)-100:], pattern(100, 1))
	var places [][]int
	for _, seed := range []uint64{1, 1, 2} {
		require.NoError(t, d.WriteFileAtomic("r", data, 0o644))
		require.NoError(t, flip("r", 40, 0, seed))
		at := changes("r", data)
		assert.Len(t, at, 40)
		for _, i := range at {
			assert.True(t, i >= 1<<20 && i < 1<<20+64<<10 || i >= len(data)-64<<10, i)
		}
		places = append(places, at)
	}
	assert.Equal(t, places[0], places[1])
	assert.NotEqual(t, places[0], places[2])
	require.NoError(t, d.WriteFileAtomic("s", pattern(10, 1), 0o644))
	require.NoError(t, flip("s", 10, 0, 1))
	assert.Len(t, changes("s", pattern(10, 1)), 10, "every byte once")
	require.ErrorContains(t, flip("s", 11, 0, 1), "stores fewer than 11")
	require.NoError(t, d.WriteFileAtomic("zeros", make([]byte, 20), 0o644))
	require.ErrorContains(t, flip("zeros", 1, 0, 1), "stores fewer than 1")
	require.NoError(t, d.WriteFileAtomic("empty", nil, 0o644))
	require.ErrorContains(t, flip("empty", 1, 0, 1), "stores fewer than 1")
	require.ErrorIs(t, flip("missing", 1, 0, 1), fs.ErrNotExist)

	require.NoError(t, Create(d, "b", Spec{Format: UDSB, Size: 40 << 20, BandSize: 1 << 20}))
	band := pattern(1<<20, 1)
	for _, name := range []string{"3", "b", "10"} {
		require.NoError(t, d.WriteFileAtomic("b/bands/"+name, band, 0o644))
	}
	require.NoError(t, flip("b", 3, 2, 1))
	require.NoError(t, flip("b", 5, 3, 1))
	for name, want := range map[string]int{"3": 0, "b": 3, "10": 5} {
		assert.Len(t, changes("b/bands/"+name, band), want, name)
	}
	require.ErrorContains(t, flip("b", 1, 4, 1), "it has no band 4: 3 are stored")
	plist, err := d.ReadFile("b/Info.plist", 1<<20)
	require.NoError(t, err)
	for _, name := range []string{"3", "b", "10"} {
		require.NoError(t, d.Remove("b/bands/"+name))
	}
	require.NoError(t, flip("b", 20, 0, 1))
	assert.NotEmpty(t, changes("b/Info.plist", plist), "all files of the container")
}
