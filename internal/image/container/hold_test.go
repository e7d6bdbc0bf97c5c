package container

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"dmgbench/internal/system/hostio"
)

// TestHoldKeepsWritersAway: readers that hold a container exclude writers and removal, not each other.
func TestHoldKeepsWritersAway(t *testing.T) {
	for _, spec := range []Spec{
		{Format: UDRW, Size: 4 << 20}, {Format: UDSB, Size: 4 << 20, BandSize: 1 << 20}, {Format: UDSP, Size: 4 << 20}, {Format: ASIF, Size: 4 << 20},
		{Format: UDSB, Size: 4 << 20, Encryption: Encryption{Cipher: AES128, Passphrase: []byte("secret"), Iterations: 1000}},
	} {
		d := tempDir(t)
		name := "image" + Extension(spec.Format)
		require.NoError(t, Create(d, name, spec))
		pass := spec.Encryption.Passphrase
		holding := OpenOptions{ReadOnly: true, Hold: true, Passphrase: pass}
		one, err := Open(d, name, holding)
		require.NoError(t, err)
		two, err := Open(d, name, holding)
		require.NoError(t, err)
		require.NoError(t, one.Close())
		_, err = Open(d, name, OpenOptions{Passphrase: pass})
		require.ErrorIs(t, err, ErrInUse, spec.Format)
		require.ErrorIs(t, Remove(d, name), ErrInUse, spec.Format)
		require.NoError(t, two.Close())

		writer, err := Open(d, name, OpenOptions{Passphrase: pass})
		require.NoError(t, err)
		_, err = Open(d, name, holding)
		require.ErrorIs(t, err, ErrInUse, spec.Format)
		reader, err := Open(d, name, OpenOptions{ReadOnly: true, Passphrase: pass})
		require.NoError(t, err, "whoever only looks holds nobody up")
		require.NoError(t, reader.Close())
		require.NoError(t, writer.Close())
		require.NoError(t, Remove(d, name))
	}
}

// TestHoldReadsTheSizeAnew: a resize that ended between the look at a bundle and the lock counts for those who hold it too.
func TestHoldReadsTheSizeAnew(t *testing.T) {
	d := tempDir(t)
	require.NoError(t, Create(d, "b", Spec{Format: UDSB, Size: 4 << 20, BandSize: 1 << 20}))
	before, err := probe(d, "b")
	require.NoError(t, err)
	writer, err := Open(d, "b", OpenOptions{})
	require.NoError(t, err)
	require.NoError(t, writer.Resize(2<<20))
	require.NoError(t, writer.Close())
	reader, err := openBundle(d, "b", before, OpenOptions{ReadOnly: true, Hold: true})
	require.NoError(t, err)
	require.EqualValues(t, 2<<20, reader.Size())
	require.NoError(t, reader.Close())
}

// TestRemoveSeesEitherLock: newer systems make a file for the lock, and what they have attached is locked there.
func TestRemoveSeesEitherLock(t *testing.T) {
	for _, name := range []string{"token", "lock"} {
		d := tempDir(t)
		require.NoError(t, Create(d, "b", Spec{Format: UDSB, Size: 4 << 20, BandSize: 1 << 20}))
		f, err := d.Open("b/"+name, hostio.OpenOptions{})
		require.NoError(t, err)
		require.NoError(t, f.TryLock())
		require.ErrorIs(t, Remove(d, "b"), ErrInUse, name)
		require.DirExists(t, filepath.Join(d.Path(), "b", "bands"))
		require.NoError(t, f.Close())
		require.NoError(t, Remove(d, "b"))
	}
}
