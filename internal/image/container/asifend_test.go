package container

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/system/hostio"
)

// partlyAtEnd is an image whose chunk 3 is partly written: its first eight blocks, and what else written says. The chunk is
// the last one of the file, or the bitmap is, of which the file has cut bytes less.
func partlyAtEnd(t *testing.T, state uint64, written []int64, bitmapLast bool, cut int64) (d *hostio.Dir, data []byte) {
	d = tempDir(t)
	require.NoError(t, createSmallASIF(d))
	h := smallASIF(6 << 30)
	table := h.firstFree + 3
	bitmap, chunk := table+1, table+2
	if bitmapLast {
		bitmap, chunk = chunk, bitmap
	}
	f, err := os.OpenFile(filepath.Join(d.Path(), "i"), os.O_RDWR, 0)
	require.NoError(t, err)
	put := func(p []byte, at int64) {
		_, err := f.WriteAt(p, at)
		require.NoError(t, err)
	}
	number := func(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }
	put(number(uint64(table)), h.Dirs[1]+8)
	put(number(state|uint64(chunk)), table*h.chunk+8*3)
	put(number(uint64(bitmap)), table*h.chunk+8*h.perGroup)
	data = pattern(4096, 9)
	put(data, chunk*h.chunk)
	blocks := h.chunk / h.block
	bits := make([]byte, blocks/4)
	for b := range int64(8) {
		bits[b/4] |= 1 << (b % 4 * 2)
	}
	for _, b := range written {
		bits[b/4] |= 1 << (b % 4 * 2)
	}
	put(bits, bitmap*h.chunk+3*blocks/4)
	require.NoError(t, f.Truncate((table+3)*h.chunk-cut))
	require.NoError(t, f.Close())
	return d, data
}

// TestASIFEndsInsideAChunk: a file may end after what is written of its last chunk, and is read then; not before that.
func TestASIFEndsInsideAChunk(t *testing.T) {
	bitsEnd := smallChunk - int64(4*smallChunk/512/4) // behind those of chunk 3
	for name, c := range map[string]struct {
		written    []int64
		bitmapLast bool
		cut        int64
	}{"data": {nil, false, smallChunk - 4096}, "bitmap": {nil, true, bitsEnd}, "whole": {nil, false, 0}} {
		d, data := partlyAtEnd(t, asifPartial, c.written, c.bitmapLast, c.cut)
		want := make([]byte, 5*smallChunk)
		copy(want[3*smallChunk:], data)
		check := func(o OpenOptions) Image {
			img, err := Open(d, "i", o)
			require.NoError(t, err, name)
			got := make([]byte, len(want))
			_, err = img.ReadAt(got, 0)
			require.NoError(t, err, name)
			require.Equal(t, want, got, name)
			return img
		}
		before, err := os.Stat(filepath.Join(d.Path(), "i"))
		require.NoError(t, err)
		require.NoError(t, check(OpenOptions{ReadOnly: true}).Close())
		found, err := Verify(d, "i", OpenOptions{})
		require.NoError(t, err)
		assert.Empty(t, found, name)
		after, err := os.Stat(filepath.Join(d.Path(), "i"))
		require.NoError(t, err)
		assert.Equal(t, before.Size(), after.Size(), "reading changes nothing")

		img, err := Open(d, "i", OpenOptions{})
		if c.cut > 0 {
			require.ErrorIs(t, err, errors.ErrUnsupported, name)
			continue
		}
		require.NoError(t, err, name)
		for _, at := range []int{3*smallChunk + 5000, 4 * smallChunk, 100} {
			copy(want[at:], pattern(777, uint64(at)))
			_, err := img.WriteAt(want[at:at+777], int64(at))
			require.NoError(t, err, name)
		}
		require.NoError(t, img.Close())
		img = check(OpenOptions{})
		_, err = img.Compact(nil)
		require.NoError(t, err, name)
		require.NoError(t, img.Close())
		require.NoError(t, check(OpenOptions{ReadOnly: true}).Close())
	}
	for name, c := range map[string]struct {
		state      uint64
		written    []int64
		bitmapLast bool
		cut        int64
	}{
		"a written block":    {asifPartial, []int64{8}, false, smallChunk - 4096},
		"the end of a block": {asifPartial, nil, false, smallChunk - 4095},
		"all written":        {asifWhole, nil, false, smallChunk - 4096},
		"the bitmap":         {asifPartial, nil, true, bitsEnd + 1},
		"the whole chunk":    {asifPartial, nil, false, smallChunk},
	} {
		d, _ := partlyAtEnd(t, c.state, c.written, c.bitmapLast, c.cut)
		img, err := Open(d, "i", OpenOptions{ReadOnly: true})
		if err == nil {
			_, err = img.ReadAt(make([]byte, 5*smallChunk), 0)
			require.NoError(t, img.Close())
		}
		assert.ErrorIs(t, err, ErrCorrupt, name)
		_, err = Open(d, "i", OpenOptions{})
		assert.Error(t, err, name)
	}
}
