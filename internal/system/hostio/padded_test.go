package hostio_test

import (
	"bytes"
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

// A gathered write that runs out of space says how much of the data is there.
func TestWritePaddedReportsFailures(t *testing.T) {
	faults := &hostiotest.Faults{}
	dir, err := OpenDir(t.TempDir(), WithHook(faults))
	require.NoError(t, err)
	defer dir.Close()
	f, err := dir.Open("f", OpenOptions{Write: true, Create: true})
	require.NoError(t, err)
	defer f.Close()
	faults.NoSpaceAfter(4096)
	n, err := f.WritePadded(make([]byte, 5000), 0, 8192-5000)
	require.Error(t, err)
	assert.Equal(t, 4096, n)
}
