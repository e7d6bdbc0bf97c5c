package exfat

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/blockdev/blockdevtest"
)

// padding is a device that pads, or sometimes says that it cannot.
type padding struct {
	blockdev.Device
	refuse bool
	calls  int
	writes int
}

func (d *padding) WriteAt(p []byte, off int64) (int, error) {
	d.writes++
	return d.Device.WriteAt(p, off)
}

func (d *padding) WritePadded(p []byte, off int64, pad int) (int, error) {
	if d.refuse {
		return 0, errors.ErrUnsupported
	}
	d.calls++
	n, err := d.Device.WriteAt(append(bytes.Clone(p), make([]byte, pad)...), off)
	return min(n, len(p)), err
}

// A file of an odd length is one write to a device that pads, two to others, and the same bytes on both.
func TestOddFilesAreOneWrite(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		dev := &padding{Device: blockdevtest.NewMem(16 << 20), refuse: refuse}
		require.NoError(t, Format(dev, FormatOptions{}))
		v := mount(t, dev)
		f, err := v.Create("odd", 10_000)
		require.NoError(t, err)
		want := bytes.Repeat([]byte{7}, 10_000)
		at := f.Extents()[0].Device
		_, err = dev.Device.WriteAt(bytes.Repeat([]byte{0xEE}, 16384), at) // what an earlier file left
		require.NoError(t, err)
		dev.calls, dev.writes = 0, 0
		_, err = f.WriteAt(want, 0)
		require.NoError(t, err)
		if refuse {
			assert.Equal(t, [2]int{0, 2}, [2]int{dev.calls, dev.writes}, "the whole blocks, the tail")
		} else {
			assert.Equal(t, [2]int{1, 0}, [2]int{dev.calls, dev.writes})
		}
		got := make([]byte, 16384)
		_, err = dev.Device.ReadAt(got, at)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(want, got[:10_000]))
		assert.True(t, bytes.Equal(make([]byte, 12288-10_000), got[10_000:12288]), "padded to a whole block")
		assert.EqualValues(t, 0xEE, got[12288], "and no further")
		back := make([]byte, 10_000)
		_, err = f.ReadAt(back, 0)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(want, back))
		require.NoError(t, f.Close())
		require.NoError(t, v.Unmount())
	}
}
