package container

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"dmgbench/internal/system/hostio"
)

// TestBandLimit: the bands of a process leave descriptors for the rest of it, as far as that is possible.
func TestBandLimit(t *testing.T) {
	for descriptors, want := range map[int]int{1 << 20: maxOpenBands, 1024: 480, 256: 96, 64: 4, 0: 4} {
		assert.Equal(t, want, bandLimit(descriptors), "%d descriptors", descriptors)
	}
}

// newBands is a new bundle with so many bands of 8 KiB, opened with the pool.
func newBands(t *testing.T, d *hostio.Dir, name string, bands int64, pool *openBands) *bundle {
	require.NoError(t, createBundle(d, name, Spec{Size: bands << 13, BandSize: 1 << 13}))
	img, err := Open(d, name, OpenOptions{Cache: hostio.CacheDirect, Sync: hostio.SyncFsync})
	require.NoError(t, err)
	b := img.(*bundle)
	b.open = pool
	return b
}

// TestBundlesShareOneLimit: of all bundles together so many bands are open, and one that is closed closes none of another.
func TestBundlesShareOneLimit(t *testing.T) {
	d, pool := tempDir(t), &openBands{limit: 6}
	first, second := newBands(t, d, "first", 20, pool), newBands(t, d, "second", 20, pool)
	data := pattern(20<<13, 1)
	for off := 0; off < len(data); off += 1 << 13 {
		for _, b := range []*bundle{first, second} {
			_, err := b.WriteAt(data[off:off+1<<13], int64(off))
			require.NoError(t, err)
		}
		open := 0
		for _, b := range []*bundle{first, second} {
			for _, bd := range b.table {
				if bd.f != nil {
					open++
				}
			}
		}
		require.LessOrEqual(t, open, 6)
	}
	require.NoError(t, first.Close())
	for _, o := range pool.list {
		assert.Same(t, second, o.of)
	}
	got := make([]byte, len(data))
	_, err := second.ReadAt(got, 0)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(data, got))
	require.NoError(t, second.Close())
	assert.Empty(t, pool.list)
}

// TestBandsMakeRoomWhenDescriptorsRunOut: what else the process has open may leave fewer descriptors than the limit of bands
// expects.
func TestBandsMakeRoomWhenDescriptorsRunOut(t *testing.T) {
	for _, room := range []uint64{12, 13} { // a band takes two
		d, pool := tempDir(t), &openBands{limit: 1000}
		b := newBands(t, d, "i", 100, pool)
		next, err := unix.Open(d.Path(), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		require.NoError(t, err)
		require.NoError(t, unix.Close(next))
		var limit unix.Rlimit
		require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(next) + room, Max: limit.Max}))
		data, got := pattern(100<<13, 2), make([]byte, 100<<13)
		_, errWrite := b.WriteAt(data, 0)
		errFlush := b.Flush()
		_, errRead := b.ReadAt(got, 0)
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
		require.NoError(t, errWrite)
		require.NoError(t, errFlush)
		require.NoError(t, errRead)
		assert.True(t, bytes.Equal(data, got))
		assert.LessOrEqual(t, pool.limit, 12)
		require.NoError(t, b.Close())
	}
}
