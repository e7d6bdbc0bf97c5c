package hostio_test

import (
	"bytes"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "dmgbench/internal/system/hostio"
	"dmgbench/internal/system/hostio/hostiotest"
)

// However the bytes get there, the file holds p, the zeros, and what was there before.
func TestWritePadded(t *testing.T) {
	const size = 64 << 10
	buf, err := AlignedBuffer(size)
	require.NoError(t, err)
	defer buf.Free()
	for name, opts := range map[string][]Option{"plain": nil, "hooked": {WithHook(&hostiotest.Recorder{})}} {
		dir, err := OpenDir(t.TempDir(), opts...)
		require.NoError(t, err)
		defer dir.Close()
		for _, cache := range []CacheMode{CacheBuffered, CacheDirect} {
			f, err := dir.Open(string(cache), OpenOptions{Write: true, Create: true, Cache: cache})
			require.NoError(t, err)
			defer f.Close()
			want := bytes.Repeat([]byte{0xAA}, size)
			_, err = f.WriteAt(want, 0)
			require.NoError(t, err)
			rapid.Check(t, func(t *rapid.T) {
				off := rapid.SampledFrom([]int{0, 4096, 512, 3, 8192}).Draw(t, "off")
				n := rapid.IntRange(0, 40000).Draw(t, "n")
				pad := rapid.SampledFrom([]int{0, 1, 4095, (4096 - (off+n)%4096) % 4096}).Draw(t, "pad")
				from := rapid.SampledFrom([]int{0, 1}).Draw(t, "misaligned")
				p := buf.Bytes()[from:][:n]
				for i := range p {
					p[i] = byte(i*7+n) | 1
				}
				done, err := f.WritePadded(p, int64(off), pad)
				require.NoError(t, err, name)
				require.Equal(t, n, done)
				copy(want[off:], p)
				clear(want[off+n : off+n+pad])
				_, err = f.Sync(SyncFsync)
				require.NoError(t, err)
				got := make([]byte, size)
				_, err = f.ReadAt(got, 0)
				require.NoError(t, err)
				require.True(t, bytes.Equal(want, got))
			})
		}
	}
}

// A padded write that runs out of space returns how much of the data was written.
func TestWritePaddedReportsFailures(t *testing.T) {
	for room, want := range map[int64]int{0: 0, 2000: 2000, 4096: 4096, 4500: 4500, 5000: 5000, 8000: 5000} {
		faults := &hostiotest.Faults{}
		f := create(t, tempDir(t, WithHook(faults)), "f", CacheBuffered)
		faults.NoSpaceAfter(room)
		n, err := f.WritePadded(make([]byte, 5000), 0, 8192-5000)
		require.ErrorIs(t, err, syscall.ENOSPC)
		assert.Equal(t, want, n)
	}
}
