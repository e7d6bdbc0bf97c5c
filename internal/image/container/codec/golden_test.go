package codec

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const images = "../../../../../shared/images"

// TestAppleChunks decodes every chunk of images that Apple's tools made, and holds what we write of the same chunks
// against them: the form of the streams, and that they are not much longer.
func TestAppleChunks(t *testing.T) {
	if _, err := os.Stat(images); err != nil {
		t.Skipf("no images of Apple's: %v", err)
	}
	found, err := readAppleImages(images)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(found), 6)
	seen := map[ID]int{}
	for _, im := range found {
		t.Run(im.Name, func(t *testing.T) {
			device := make([]byte, im.Size)
			for _, run := range im.Runs {
				if run.Payload == nil {
					continue
				}
				dst := device[run.Start : run.Start+run.Length]
				if run.Type == 1 {
					copy(dst, run.Payload)
					continue
				}
				id := ID(run.Type)
				seen[id]++
				n, err := Decode(id, dst, run.Payload)
				require.NoError(t, err)
				require.Equal(t, len(dst), n)
				sameForm(t, id, dst, run.Payload)
			}
			sum := sha256.Sum256(device)
			assert.Equal(t, im.SHA256, hex.EncodeToString(sum[:]))
		})
	}
	for _, id := range IDs {
		assert.Positive(t, seen[id], "chunks of %v", id)
	}
}

// sameForm encodes a chunk of Apple's and compares what of the form does not depend on the compressor.
func sameForm(t *testing.T, id ID, src, apple []byte) {
	ours := roundTrip(t, id, src, 0)
	if ours == nil && id == LZFSE && len(src) < lzfseShortest {
		return
	}
	if ours == nil { // a fast compressor gives up on what shrinks by some percent only
		assert.Greater(t, len(apple), len(src)*92/100, "%v: ours does not shrink it", id)
		return
	}
	assert.LessOrEqual(t, len(ours), len(apple)*110/100+300, "%v: ours is long", id)
	form := map[ID]int{Zlib: 2, Bzip2: 4, LZFSE: 8, LZMA: 14}[id]
	if id == Zlib && apple[1] != 1 {
		return // not at the level of today
	}
	if id == LZFSE && len(src) < 4096 {
		return // LZVN, which only Apple's encoder writes
	}
	assert.Equal(t, apple[:form], ours[:form], "%v of %d bytes", id, len(src))
	if id == LZMA {
		assert.Equal(t, apple[len(apple)-4:], ours[len(ours)-4:])
	}
}
