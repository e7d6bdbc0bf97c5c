package exfat

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/blockdev/blockdevtest"
)

func TestTrimDiscardsExactlyTheFreeSpace(t *testing.T) {
	dev, v := newVolume(t, 64<<20, FormatOptions{})
	for i := range 6 {
		writeFile(t, v, fmt.Sprint(i), noise(uint64(i), 5<<20))
	}
	for i := 0; i < 6; i += 2 {
		require.NoError(t, v.Remove(fmt.Sprint(i)))
	}
	var calls []call
	dev.Hook = recorded(&calls)
	before := dev.Allocated()
	n, err := v.Trim(0)
	require.NoError(t, err)
	assert.Equal(t, v.Free(), n)
	assert.Less(t, dev.Allocated(), before-14<<20)
	discards := 0
	for _, c := range calls {
		if c.op == blockdevtest.OpDiscard {
			discards++
		}
	}
	assert.Equal(t, 4, discards, "neighbours are joined")
	n, err = v.Trim(6 << 20)
	require.NoError(t, err)
	assert.Less(t, n, v.Free())
	for i := 1; i < 6; i += 2 {
		requireSame(t, noise(uint64(i), 5<<20), readFile(t, v, fmt.Sprint(i)), "kept")
	}
	require.NoError(t, v.Unmount())
	requireClean(t, dev)
}

func TestEvictCoversTheExtents(t *testing.T) {
	dev, v := newVolume(t, 8<<20, FormatOptions{})
	f, err := v.Create("f", 1_000_000)
	require.NoError(t, err)
	var calls []call
	dev.Hook = recorded(&calls)
	require.NoError(t, f.Evict())
	e := f.Extents()[0]
	assert.Equal(t, []call{{blockdevtest.OpEvict, e.Device, e.Length}}, calls)
	require.NoError(t, f.Close())

	inner, err := blockdev.Section(struct{ blockdev.Device }{dev}, 0, 8<<20)
	require.NoError(t, err)
	require.NoError(t, v.Unmount())
	v = mount(t, inner)
	f, err = v.Open("f")
	require.NoError(t, err)
	require.ErrorIs(t, f.Evict(), errors.ErrUnsupported)
}

func TestResize(t *testing.T) {
	dev, v := newVolume(t, 16<<20, FormatOptions{ClusterSize: 512, MaxSize: 100 << 20})
	writeFile(t, v, "f", noise(1, 1_000_000))
	free := v.Free()
	require.ErrorIs(t, v.Resize(32<<20), ErrNoSpace, "the device did not grow")
	dev.Resize(60 << 20)
	require.NoError(t, v.Resize(60<<20))
	assert.Greater(t, v.Free(), free+43<<20)
	writeFile(t, v, "g", noise(2, 30<<20))
	require.NoError(t, v.Unmount())
	requireClean(t, dev)
	fsckIfThere(t, dev)

	v = mount(t, dev)
	requireSame(t, noise(1, 1_000_000), readFile(t, v, "f"), "f")
	require.ErrorIs(t, v.Resize(16<<20), ErrShrinkUsed)
	require.NoError(t, v.Remove("g"))
	f, err := v.Open("f")
	require.NoError(t, err)
	require.ErrorIs(t, v.Resize(16<<20), ErrBusy)
	require.NoError(t, f.Close())
	_, err = v.Trim(0)
	require.NoError(t, err)
	smallest := v.MinSize()
	require.NoError(t, v.Resize(smallest))
	require.NoError(t, v.Unmount())
	dev.Resize(smallest)
	requireClean(t, dev)
	fsckIfThere(t, dev)
	v = mount(t, dev)
	requireSame(t, noise(1, 1_000_000), readFile(t, v, "f"), "f")
	dev.Resize(1 << 40)
	require.ErrorIs(t, v.Resize(1<<40), ErrFATTooSmall)
	require.ErrorIs(t, v.Resize(v.MaxSize()+v.ClusterSize()), ErrFATTooSmall)
	require.NoError(t, v.Resize(v.MaxSize()+v.ClusterSize()-1), "the rest is less than a cluster")
	require.NoError(t, v.Unmount())
	requireClean(t, dev)
}

// TestResizeInterrupted cuts every write: the volume must mount and hold its file.
func TestResizeInterrupted(t *testing.T) {
	for _, c := range []struct{ from, to int64 }{{4 << 20, 60 << 20}, {60 << 20, 4 << 20}} {
		for cut := 1; ; cut++ {
			dev, v := newVolume(t, c.from, FormatOptions{ClusterSize: 512, MaxSize: 64 << 20})
			writeFile(t, v, "f", noise(1, 10_000))
			require.NoError(t, v.Sync())
			dev.Resize(64 << 20)
			dev.Hook = cutAfter(cut)
			err := v.Resize(c.to)
			dev.Hook = nil
			w := mount(t, dev)
			requireSame(t, noise(1, 10_000), readFile(t, w, "f"), "f")
			_, cerr := Check(dev, CheckOptions{Repair: true})
			require.NoError(t, cerr)
			requireClean(t, dev)
			if err == nil {
				assert.Greater(t, cut, 4)
				break
			}
		}
	}
}

var errCut = errors.New("power cut")

// cutAfter lets n-1 changes of the device through and fails all that follow.
func cutAfter(n int) func(blockdevtest.Op, int64, int64) error {
	return func(op blockdevtest.Op, off, length int64) error {
		if op == blockdevtest.OpRead {
			return nil
		}
		if n--; n <= 0 {
			return errCut
		}
		return nil
	}
}
