package container

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/system/hostio"
)

// blankASIF is a new image in memory.
func blankASIF(t *testing.T, h asifHead) *memStore {
	f := &memStore{}
	require.NoError(t, h.write(f))
	return f
}

// TestASIFDirectoryBounds: a directory may have the most bytes that are read, and no more.
func TestASIFDirectoryBounds(t *testing.T) {
	perTable := newTables(t)
	for more, good := range map[int64]bool{0: true, smallChunk: false} {
		h := shortASIF(1<<20, (asifMostDir/8-1)*perTable+more)
		_, err := parseASIF(encodeFields(h.asifFields))
		if good {
			require.NoError(t, err)
			require.EqualValues(t, asifMostDir, h.dirLen)
		} else {
			assert.ErrorContains(t, err, "directories of")
		}
	}
}

// newTables is the bytes of a device that one table of a small image is for.
func newTables(t *testing.T) int64 {
	h := smallASIF(1 << 20)
	require.EqualValues(t, 1, h.groups)
	return h.perGroup * h.chunk
}

// TestASIFEntryAfterTheLastChunk: tables may have room for more chunks than a device can have, which is to stay unused.
func TestASIFEntryAfterTheLastChunk(t *testing.T) {
	perTable := newTables(t)
	h := shortASIF(1<<20, perTable+1000*smallChunk)
	for i, good := range map[int64]bool{h.perGroup + 10: true, h.perGroup + 1000: false} {
		f := blankASIF(t, h)
		table, at := h.entryOf(h.slot(i))
		require.EqualValues(t, 1, table)
		where, err := (syncStore{f: f}).get(h.Dirs[1]+8+8*table, 8, int64(len(f.b)))
		require.NoError(t, err)
		number := int64(binary.BigEndian.Uint64(where)) // the table of the metadata
		require.Positive(t, number)
		end := int64(len(f.b))
		require.NoError(t, f.Truncate(end+smallChunk))
		_, err = f.WriteAt(binary.BigEndian.AppendUint64(nil, asifWhole|uint64(end/smallChunk)), number*smallChunk+at)
		require.NoError(t, err)
		_, err = loadASIF(syncStore{f: f})
		if good {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, ErrCorrupt)
			assert.ErrorContains(t, err, "after the last chunk")
		}
	}
}

// TestASIFWritesNeighboursTogether: entries that are next to each other reach the table in one write.
func TestASIFWritesNeighboursTogether(t *testing.T) {
	f := blankASIF(t, smallASIF(6<<30))
	img, err := openChunked(f, ASIF, OpenOptions{})
	require.NoError(t, err)
	_, err = img.WriteAt(pattern(8*smallChunk, 1), 16*smallChunk)
	require.NoError(t, err)
	f.log = nil
	require.NoError(t, img.Flush())
	entries := 0
	for _, op := range f.log {
		if op.Kind == hostio.OpWrite && op.Len <= 8*8 {
			entries++
			assert.EqualValues(t, 8*8, op.Len)
		}
	}
	assert.Equal(t, 1, entries)
	require.NoError(t, img.Close())
}
