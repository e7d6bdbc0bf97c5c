package container

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/container/udif"
)

// TestSparseHoles copies sparse images with a little in them, the largest that there can be too: in those, reading what is
// not there would take days.
func TestSparseHoles(t *testing.T) {
	secret := Encryption{Cipher: AES128, Passphrase: []byte("secret"), Iterations: 1000}
	for name, s := range map[string]Spec{
		"bundle": {Format: UDSB, Size: 1 << 60}, "sparse": {Format: UDSP, Size: udspMaxBands << 20}, "asif": {Format: ASIF, Size: asifMeta * asifChunk},
		"small bands": {Format: UDSB, Size: 21<<20 + 512, BandSize: 1 << 20}, "odd bands": {Format: UDSP, Size: 21<<20 + 512, BandSize: 1<<20 + 512},
		"small asif": {Format: ASIF, Size: 21<<20 + 512}, "encrypted": {Format: UDSP, Size: 21 << 20, Encryption: secret}, "empty": {Format: UDSP, Size: 21 << 20},
	} {
		d := tempDir(t)
		require.NoError(t, Create(d, "i", s))
		img, err := Open(d, "i", OpenOptions{Passphrase: secret.Passphrase})
		require.NoError(t, err)
		data := map[int64][]byte{}
		for k, at := range []int64{0, 5<<20 + 1000, 9 << 20, s.Size - 4096} {
			if name != "empty" {
				data[at] = pattern(4096, uint64(k)+1)
				_, err := img.WriteAt(data[at], at)
				require.NoError(t, err)
			}
		}
		require.NoError(t, img.Flush())
		holds := MapOf(img)
		for off, steps := int64(0), 0; off < s.Size; steps++ {
			end, state := holds.Next(off)
			require.Greater(t, end, off, name)
			require.LessOrEqual(t, end, s.Size, name)
			require.Less(t, steps, 20, name)
			for at := range data {
				require.False(t, at < end && at+4096 > off && state != udif.StateData, "%s: %d to %d", name, off, end)
			}
			off = end
		}

		require.NoError(t, CreateUDIF(t.Context(), d, "packed", img, UDIFSpec{Format: "UDZO"}))
		require.NoError(t, Create(d, "copy", Spec{Format: UDSB, Size: s.Size, BandSize: 1 << 20}))
		copied, err := Open(d, "copy", OpenOptions{})
		require.NoError(t, err)
		require.NoError(t, Copy(t.Context(), copied, img, nil))
		packed, err := Open(d, "packed", OpenOptions{ReadOnly: true})
		require.NoError(t, err)
		for _, other := range []Image{copied, packed} {
			require.Equal(t, s.Size, other.Size())
			for at, want := range data {
				got := make([]byte, len(want))
				_, err := other.ReadAt(got, at)
				require.NoError(t, err)
				require.Equal(t, want, got, "%s at %d", name, at)
			}
			if s.Size < 1<<30 {
				requireSame(t, img, other)
			}
			require.NoError(t, other.Close())
		}
		require.NoError(t, img.Close())
		found, err := Verify(d, "packed", OpenOptions{})
		require.NoError(t, err)
		assert.Empty(t, found, name)
	}
}

// TestBandsOfUpperCase: file systems that know no case (of CDs, FAT, network shares) may list "A" what is opened as "a".
func TestBandsOfUpperCase(t *testing.T) {
	d := tempDir(t)
	require.NoError(t, Create(d, "b", Spec{Format: UDSB, Size: 64 << 20, BandSize: 1 << 20}))
	for _, name := range []string{"A", "a", "FF", "0a"} {
		require.NoError(t, d.WriteFileAtomic("b/bands/"+name, pattern(4096, 1), 0o644))
	}
	img, err := Open(d, "b", OpenOptions{})
	require.NoError(t, err)
	for off, want := range map[int64]udif.State{9 << 20: udif.StateZero, 10 << 20: udif.StateData, 11 << 20: udif.StateZero} {
		_, state := MapOf(img).Next(off)
		assert.Equal(t, want, state, off)
	}
	bands, err := listBands(img.(*bundle).bands)
	require.NoError(t, err)
	assert.Equal(t, []int64{10, 255}, bands)
	require.NoError(t, img.Resize(8<<20))
	require.NoError(t, img.Close())
	assert.NoFileExists(t, filepath.Join(d.Path(), "b", "bands", "a"))
	assert.FileExists(t, filepath.Join(d.Path(), "b", "bands", "0a"))
}
