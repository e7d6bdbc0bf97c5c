package container

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestBundleWithoutBands: archives and version control lose an empty folder, and then the device is all zeros, for those who
// only read too, who make nothing.
func TestBundleWithoutBands(t *testing.T) {
	for _, cipher := range []string{"", AES128} {
		d := tempDir(t)
		require.NoError(t, Create(d, "b", Spec{Format: UDSB, Size: 3 << 20, BandSize: 1 << 20,
			Encryption: Encryption{Cipher: cipher, Passphrase: []byte("secret"), Iterations: 1000}}))
		bands := filepath.Join(d.Path(), "b", "bands")
		require.NoError(t, os.Remove(bands))
		for _, hold := range []bool{false, true} {
			img, err := Open(d, "b", OpenOptions{ReadOnly: true, Hold: hold, Passphrase: []byte("secret")})
			require.NoError(t, err)
			got := pattern(3<<20, 1)
			_, err = img.ReadAt(got, 0)
			require.NoError(t, err)
			assert.Equal(t, make([]byte, 3<<20), got)
			require.NoError(t, img.Flush())
			require.NoError(t, img.Evict(0, img.Size()))
			u, err := img.Usage()
			require.NoError(t, err)
			assert.Zero(t, u.Bands)
			_, err = img.WriteAt(got, 0)
			require.ErrorIs(t, err, ErrReadOnly)
			require.NoError(t, img.Close())
		}
		assert.NoDirExists(t, bands)
	}
}
