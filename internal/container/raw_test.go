package container

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/hostio"
)

// TestRawResizedWhileOpening: a writer that was there between the look at a file and the lock has changed its size. Who
// writes by the old one would cut off, or overwrite, what that writer has added.
func TestRawResizedWhileOpening(t *testing.T) {
	for _, have := range []int64{1 << 20, 4 << 20} {
		_, err := newRaw(&memStore{b: make([]byte, have)}, 2<<20, OpenOptions{})
		assert.ErrorIs(t, err, hostio.ErrReplaced)
	}
	img, err := newRaw(&memStore{b: make([]byte, 2<<20+512)}, 2<<20, OpenOptions{ReadOnly: true}) // of a stub with its trailer
	require.NoError(t, err)
	assert.EqualValues(t, 2<<20, img.Size())
}
