package container

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/interoptest"
	"dmgbench/internal/system/hostio"
)

// lived makes an image with a history: bands out of order, parts of bands,
// holes, a compaction, a resize. It returns what its device holds.
func lived(t *testing.T, d *hostio.Dir, name string, size int64) []byte {
	t.Helper()
	img, err := Open(d, name, OpenOptions{})
	require.NoError(t, err)
	want := make([]byte, size)
	write := func(off int64, n int, seed uint64) {
		p := pattern(n, seed)
		copy(want[off:], p)
		_, err := img.WriteAt(p, off)
		require.NoError(t, err)
	}
	discard := func(off, n int64) {
		clear(want[off : off+n])
		require.NoError(t, img.Discard(off, n))
	}
	write(size-4096, 4096, 1)
	write(size/2, int(size/4), 2)
	write(512, 3_000_000, 3)
	require.NoError(t, img.Flush())
	discard(1<<20, 2<<20)
	discard(size/2, size/8)
	_, err = img.Compact(nil)
	require.NoError(t, err)
	write(2<<20, 5000, 4)
	require.NoError(t, img.Resize(size+3*512))
	want = append(want, make([]byte, 3*512)...)
	write(size, 3*512, 5)
	require.NoError(t, img.Close())
	return want
}

// TestOthersReadOurChains lets fstool read a chain of three nodes, whose bands
// are smaller than our tools make them, and than other programs accept. What the
// tools make is in package interoptest.
func TestOthersReadOurChains(t *testing.T) {
	tool := interoptest.Tool(t, "fstool")
	d := tempDir(t)
	const size = 3000 * 4096
	require.NoError(t, createUDSP(d, "i.sparseimage", Spec{Size: size, BandSize: 4096}))
	want := lived(t, d, "i.sparseimage", size)
	img, err := Open(d, "i.sparseimage", OpenOptions{})
	require.NoError(t, err)
	want = pattern(len(want), 9)
	_, err = img.WriteAt(want, 0)
	require.NoError(t, err)
	require.NoError(t, img.Close())
	out := filepath.Join(d.Path(), "out.img")
	interoptest.Run(t, tool, "convert", filepath.Join(d.Path(), "i.sparseimage"), out)
	got, err := os.ReadFile(out)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(want, got))
}
