package container

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/system/hostio"
)

// brokenBand fails every transfer to one band.
type brokenBand struct {
	path string
	kind hostio.Kind
}

var errBroken = errors.New("broken")

func (h brokenBand) Before(op hostio.Op) error {
	if op.Kind == h.kind && op.Path == h.path {
		return errBroken
	}
	return nil
}

func (brokenBand) After(hostio.Op, int, error) {}

func bundleOf(t *testing.T, size, band int64, opts ...hostio.Option) Image {
	t.Helper()
	d := tempDir(t, opts...)
	require.NoError(t, Create(d, "i", Spec{Format: UDSB, Size: size, BandSize: band}))
	img, err := Open(d, "i", OpenOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = img.Close() })
	return img
}

// A call that spans bands goes to several at once; its bytes have to land where those of single calls do.
func TestSpanningTransfers(t *testing.T) {
	const band, size = 1 << 20, 32 << 20
	img := bundleOf(t, size, band)
	want := make([]byte, size)
	for _, r := range [][2]int64{{0, size}, {5, 9<<20 + 7}, {band - 1, 4<<20 + 2}, {3 * band, minParallel}, {size - minParallel - 9, minParallel + 9}} {
		p := pattern(int(r[1]), uint64(r[0])+9)
		n, err := img.WriteAt(p, r[0])
		require.NoError(t, err)
		require.EqualValues(t, r[1], n)
		copy(want[r[0]:], p)
	}
	got := make([]byte, size+100)
	n, err := img.ReadAt(got, 0)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, size, n)
	require.True(t, bytes.Equal(want, got[:n]))
}

// What a failed call says it has moved must be moved, up to the first gap.
func TestSpanningStopsAtTheBrokenBand(t *testing.T) {
	const band, size = 1 << 20, 16 << 20
	for _, kind := range []hostio.Kind{hostio.OpCreate, hostio.OpWrite, hostio.OpRead} {
		img := bundleOf(t, size, band, hostio.WithHook(brokenBand{"i/bands/6", kind}))
		p := pattern(size-100, 1)
		n, err := img.WriteAt(p, 100)
		if kind == hostio.OpRead {
			require.NoError(t, err)
			n, err = img.ReadAt(make([]byte, size-100), 100)
		}
		require.ErrorIs(t, err, errBroken, kind)
		assert.Equal(t, 6*band-100, n, kind)
		if kind != hostio.OpRead {
			got := make([]byte, n)
			_, err = img.ReadAt(got, 100)
			require.NoError(t, err)
			assert.True(t, bytes.Equal(p[:n], got), kind)
		}
	}
}

// Padding goes into the last band only, and never silently into the next.
func TestWritePaddedStaysInItsBand(t *testing.T) {
	const band, size = 1<<20 + 512, 16 << 20 // bands that end inside a page
	img := bundleOf(t, size, band)
	want := make([]byte, size)
	dirt := bytes.Repeat([]byte{0xEE}, size)
	_, err := img.WriteAt(dirt, 0)
	require.NoError(t, err)
	copy(want, dirt)
	padder := img.(blockdev.Padder)
	for _, r := range [][3]int{{0, 9 << 20, 100}, {4096, 5000, 3192}, {10 * band, 5*band - 4000, 40}, {512, 700, 0}} {
		p := pattern(r[1], uint64(r[2]))
		n, err := padder.WritePadded(p, int64(r[0]), r[2])
		require.NoError(t, err)
		require.Equal(t, r[1], n)
		copy(want[r[0]:], p)
		clear(want[r[0]+r[1]:][:r[2]])
	}
	_, err = padder.WritePadded(make([]byte, 100), band-100, 1)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	_, err = padder.WritePadded(make([]byte, 100), size-100, 1)
	require.ErrorIs(t, err, blockdev.ErrOutOfRange)
	got := make([]byte, size)
	_, err = img.ReadAt(got, 0)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got))
}
