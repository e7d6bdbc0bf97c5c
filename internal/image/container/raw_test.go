package container

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/system/hostio"
)

// TestRawResizedWhileOpening: a writer that was there between the look at a file and the lock has changed its size. Who
// writes by the old one would cut off, or overwrite, what that writer has added; who holds the file would not see it.
func TestRawResizedWhileOpening(t *testing.T) {
	for _, have := range []int64{1 << 20, 4 << 20} {
		d := tempDir(t)
		require.NoError(t, Create(d, "i", Spec{Format: UDRW, Size: 2 << 20}))
		before, err := probe(d, "i")
		require.NoError(t, err)
		require.NoError(t, os.Truncate(filepath.Join(d.Path(), "i"), have))
		for _, o := range []OpenOptions{{}, {ReadOnly: true, Hold: true}, {ReadOnly: true}} {
			img, err := openFile(d, "i", before, o)
			require.NoError(t, err)
			assert.EqualValues(t, have, img.Size())
			require.NoError(t, img.Close())
		}
		require.NoError(t, d.WriteFileAtomic("i", []byte("encrcdsa"), 0o600))
		_, err = openFile(d, "i", before, OpenOptions{})
		require.ErrorIs(t, err, hostio.ErrReplaced)
	}
}
