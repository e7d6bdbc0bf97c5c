package blockdev_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/blockdev/blockdevtest"
)

func TestMemDeviceAgainstSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Range(1, 300<<10).Draw(t, "size")
		dev, model := blockdevtest.NewMem(size), make([]byte, size)
		for range rapid.IntRange(1, 12).Draw(t, "ops") {
			off := rapid.Int64Range(0, size).Draw(t, "off")
			n := rapid.Int64Range(0, size-off).Draw(t, "n")
			if rapid.Bool().Draw(t, "discard") {
				require.NoError(t, dev.Discard(off, n))
				clear(model[off : off+n])
				continue
			}
			p := bytes.Repeat([]byte{rapid.Byte().Draw(t, "b")}, int(n))
			_, err := dev.WriteAt(p, off)
			require.NoError(t, err)
			copy(model[off:], p)
		}
		got := make([]byte, size)
		_, err := dev.ReadAt(got, 0)
		require.NoError(t, err)
		require.True(t, bytes.Equal(model, got))
		other := blockdevtest.NewMem(size)
		require.NoError(t, dev.CopyTo(other))
		_, err = other.ReadAt(got, 0)
		require.NoError(t, err)
		require.True(t, bytes.Equal(model, got))
	})
}

func TestMemDeviceRefusesOutside(t *testing.T) {
	dev := blockdevtest.NewMem(1000)
	_, err := dev.WriteAt(make([]byte, 2), 999)
	require.ErrorIs(t, err, blockdev.ErrOutOfRange)
	require.ErrorIs(t, dev.Discard(-1, 1), blockdev.ErrOutOfRange)
	n, err := dev.ReadAt(make([]byte, 10), 995)
	assert.Equal(t, 5, n)
	require.ErrorIs(t, err, io.EOF)
}

func TestMemDeviceHookAndClone(t *testing.T) {
	dev := blockdevtest.NewMem(1 << 20)
	_, err := dev.WriteAt([]byte("before"), 10)
	require.NoError(t, err)
	boom := errors.New("boom")
	dev.Hook = func(op blockdevtest.Op, off, n int64) error {
		if op == blockdevtest.OpWrite {
			return boom
		}
		return nil
	}
	copied := dev.Clone()
	_, err = dev.WriteAt([]byte("x"), 10)
	require.ErrorIs(t, err, boom)
	_, err = copied.WriteAt([]byte("after!"), 10)
	require.NoError(t, err)
	got := make([]byte, 6)
	_, err = dev.ReadAt(got, 10)
	require.NoError(t, err)
	assert.Equal(t, "before", string(got))
}

func TestSectionForwards(t *testing.T) {
	dev := blockdevtest.NewMem(64 << 20)
	dev.Extent = 8 << 20
	var seen []int64
	dev.Hook = func(op blockdevtest.Op, off, n int64) error { seen = append(seen, off); return nil }
	outer, err := blockdev.Section(dev, 1<<20, 32<<20)
	require.NoError(t, err)
	inner, err := blockdev.Section(outer, 9<<20, 8<<20)
	require.NoError(t, err)
	require.NoError(t, inner.Discard(512, 512))
	require.NoError(t, inner.(blockdev.Evicter).Evict(1024, 512))
	_, err = inner.WriteAt([]byte{1}, 0)
	require.NoError(t, err)
	assert.Equal(t, []int64{10<<20 + 512, 10<<20 + 1024, 10 << 20}, seen)
	assert.EqualValues(t, 8<<20, inner.(blockdev.Geometry).PreferredExtent())
	assert.EqualValues(t, 2<<20, inner.(blockdev.Phaser).ExtentPhase())
	_, err = inner.WriteAt([]byte{1}, 8<<20)
	require.ErrorIs(t, err, blockdev.ErrOutOfRange)
	n, err := inner.ReadAt(make([]byte, 4), 8<<20-2)
	assert.Equal(t, 2, n)
	require.ErrorIs(t, err, io.EOF)
	_, err = blockdev.Section(inner, 1, 8<<20)
	require.ErrorIs(t, err, blockdev.ErrOutOfRange)
}

// plain hides the optional interfaces of a device.
type plain struct{ blockdev.Device }

func TestSectionOfPlainDevice(t *testing.T) {
	s, err := blockdev.Section(plain{blockdevtest.NewMem(4096)}, 512, 512)
	require.NoError(t, err)
	require.ErrorIs(t, s.(blockdev.Evicter).Evict(0, 1), errors.ErrUnsupported)
	assert.Zero(t, s.(blockdev.Geometry).PreferredExtent())
	assert.Zero(t, s.(blockdev.Phaser).ExtentPhase())
}

// rich is a device with all optional interfaces, whose byte 0 is in the middle of an extent.
type rich struct {
	*blockdevtest.MemDevice
	padded [3]int64 // of the last call
}

func (d *rich) ExtentPhase() int64 { return 3 << 20 }

func (d *rich) WritePadded(p []byte, off int64, pad int) (int, error) {
	d.padded = [3]int64{int64(len(p)), off, int64(pad)}
	return len(p), nil
}

func TestSectionOfRichDevice(t *testing.T) {
	dev := &rich{MemDevice: blockdevtest.NewMem(64 << 20)}
	dev.Extent = 8 << 20
	s, err := blockdev.Section(dev, 6<<20, 16<<20)
	require.NoError(t, err)
	assert.EqualValues(t, 1<<20, s.(blockdev.Phaser).ExtentPhase(), "6 and 3 MiB in extents of 8")
	n, err := s.(blockdev.Padder).WritePadded([]byte{1, 2}, 1<<20, 100)
	require.NoError(t, err)
	assert.Equal(t, 2, n)
	assert.Equal(t, [3]int64{2, 7 << 20, 100}, dev.padded)
	for _, outside := range []struct {
		off int64
		pad int
	}{{16<<20 - 2, 1}, {16<<20 - 1, 0}, {-1, 0}} {
		_, err = s.(blockdev.Padder).WritePadded([]byte{1, 2}, outside.off, outside.pad)
		require.ErrorIs(t, err, blockdev.ErrOutOfRange)
	}
	_, err = s.(blockdev.Padder).WritePadded([]byte{1, 2}, 16<<20-102, 100)
	require.NoError(t, err, "up to the end")
	plainly, err := blockdev.Section(plain{dev}, 0, 4096)
	require.NoError(t, err)
	_, err = plainly.(blockdev.Padder).WritePadded([]byte{1}, 0, 1)
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

// TestSectionBounds: a section is used up to its last byte, and no further.
func TestSectionBounds(t *testing.T) {
	dev := blockdevtest.NewMem(3000)
	s, err := blockdev.Section(dev, 1000, 1000)
	require.NoError(t, err)
	whole := bytes.Repeat([]byte{7}, 1000)
	_, err = s.WriteAt(whole, 0)
	require.NoError(t, err)
	got := make([]byte, 1000)
	_, err = s.ReadAt(got, 0)
	require.NoError(t, err, "reading ends where the section does")
	assert.Equal(t, whole, got)
	_, err = s.WriteAt([]byte{1, 2, 3, 4}, 600)
	require.NoError(t, err)
	_, err = s.ReadAt(got[:4], 600)
	require.NoError(t, err)
	assert.Equal(t, []byte{1, 2, 3, 4}, got[:4])
	n, err := s.ReadAt(got, 602)
	assert.Equal(t, append([]byte{3, 4}, bytes.Repeat([]byte{7}, 396)...), got[:n], "cut at the end")
	require.ErrorIs(t, err, io.EOF)
	n, err = s.ReadAt(got, 1000)
	assert.Zero(t, n)
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, s.Discard(0, 1000))
	require.NoError(t, s.(blockdev.Evicter).Evict(0, 1000))
	for _, r := range [][2]int64{{-1, 1}, {0, -1}, {1001, 0}, {500, 501}, {0, 1001}} {
		require.ErrorIs(t, blockdev.CheckRange(r[0], r[1], 1000), blockdev.ErrOutOfRange, "%d", r)
		require.ErrorIs(t, s.Discard(r[0], r[1]), blockdev.ErrOutOfRange, "%d", r)
		require.ErrorIs(t, s.(blockdev.Evicter).Evict(r[0], r[1]), blockdev.ErrOutOfRange, "%d", r)
	}
	for _, off := range []int64{-1, 1001} {
		_, err = s.ReadAt(got, off)
		require.ErrorIs(t, err, blockdev.ErrOutOfRange)
	}
}

// TestReadOnly: what wraps a reader reads as it does and changes nothing.
func TestReadOnly(t *testing.T) {
	dev := blockdev.ReadOnly(bytes.NewReader([]byte("content")), 7)
	assert.EqualValues(t, 7, dev.Size())
	got := make([]byte, 7)
	_, err := dev.ReadAt(got, 0)
	require.NoError(t, err)
	assert.Equal(t, "content", string(got))
	_, err = dev.WriteAt(got, 0)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorIs(t, dev.Discard(0, 1), errors.ErrUnsupported)
	require.NoError(t, dev.Flush())
}
