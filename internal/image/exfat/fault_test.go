package exfat

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/blockdev/blockdevtest"
)

// failOnly fails change number n of the device, counted from 1, and counts all of them.
func failOnly(n int, count *int) func(blockdevtest.Op, int64, int64) error {
	return func(op blockdevtest.Op, _, _ int64) error {
		if op == blockdevtest.OpRead {
			return nil
		}
		if *count++; *count == n {
			return errCut
		}
		return nil
	}
}

// TestFailedWritesAreReported fails every write and flush of an operation in turn: none may be reported as success.
func TestFailedWritesAreReported(t *testing.T) {
	big := FormatOptions{ClusterSize: 512, MaxSize: 64 << 20}
	damaged := func(at int64) func(t *testing.T) (*blockdevtest.MemDevice, func() error) {
		return func(t *testing.T) (*blockdevtest.MemDevice, func() error) {
			dev, v := newVolume(t, 4<<20, FormatOptions{})
			require.NoError(t, v.Unmount())
			_, err := dev.WriteAt(make([]byte, 512), at)
			require.NoError(t, err)
			return dev, func() error {
				_, err := Check(dev, CheckOptions{Repair: true})
				return err
			}
		}
	}
	resize := func(from, to int64) func(t *testing.T) (*blockdevtest.MemDevice, func() error) {
		return func(t *testing.T) (*blockdevtest.MemDevice, func() error) {
			dev, v := newVolume(t, from, big)
			dev.Resize(64 << 20)
			return dev, func() error { return v.Resize(to) }
		}
	}
	for name, prepare := range map[string]func(t *testing.T) (*blockdevtest.MemDevice, func() error){
		"format": func(t *testing.T) (*blockdevtest.MemDevice, func() error) {
			dev := blockdevtest.NewMem(4 << 20)
			return dev, func() error { return Format(dev, FormatOptions{}) }
		},
		"first change": func(t *testing.T) (*blockdevtest.MemDevice, func() error) {
			dev, v := newVolume(t, 4<<20, FormatOptions{})
			return dev, func() error { return v.Mkdir("d") }
		},
		"unmount": func(t *testing.T) (*blockdevtest.MemDevice, func() error) {
			dev, v := newVolume(t, 4<<20, FormatOptions{})
			writeFile(t, v, "f", noise(1, 10_000))
			require.NoError(t, v.Mkdir("d"))
			return dev, v.Unmount
		},
		"grow":                 resize(4<<20, 60<<20),
		"shrink":               resize(60<<20, 4<<20),
		"repair of the main":   damaged(0),
		"repair of the backup": damaged(bootSectors * 512),
	} {
		t.Run(name, func(t *testing.T) {
			changes := 1
			for n := 1; n <= changes; n++ {
				dev, do := prepare(t)
				count := 0
				dev.Hook = failOnly(n, &count)
				err := do()
				dev.Hook = nil
				changes = max(changes, count)
				require.ErrorIs(t, err, errCut, "change %d of %d", n, changes)
				if n == 1 { // how many there are
					dev, do = prepare(t)
					count = 0
					dev.Hook = failOnly(0, &count)
					require.NoError(t, do())
					changes = count
				}
			}
			assert.Greater(t, changes, 1)
		})
	}
}

// TestFailedTruncateLosesNoClusters fails every change of a Truncate in turn, on a device that works again afterwards.
func TestFailedTruncateLosesNoClusters(t *testing.T) {
	for n := 1; ; n++ {
		dev, v := newVolume(t, 8<<20, FormatOptions{})
		empty := v.Free()
		writeFile(t, v, "f", noise(1, 3<<20))
		f, err := v.Open("f")
		require.NoError(t, err)
		count := 0
		dev.Hook = failOnly(n, &count)
		failed := f.Truncate(5000)
		dev.Hook = nil
		assert.Equal(t, empty-2*v.ClusterSize(), v.Free(), "change %d: clusters are lost or free too early", n)
		require.NoError(t, f.Close())
		require.NoError(t, v.Sync())
		requireSame(t, noise(1, 3<<20)[:5000], readFile(t, v, "f"), "f")
		writeFile(t, v, "g", noise(2, int(v.Free()))) // all of it can be used
		require.NoError(t, v.Remove("g"))
		require.NoError(t, v.Remove("f"))
		require.NoError(t, v.Unmount())
		requireClean(t, dev)
		v = mount(t, dev)
		assert.Equal(t, empty, v.Free())
		if failed == nil {
			assert.Greater(t, n, 2)
			return
		}
	}
}

// TestFailedResizeLosesNoClusters fails every change of a Resize in turn; then the device works again, and after a
// repair the same Resize has to succeed.
func TestFailedResizeLosesNoClusters(t *testing.T) {
	for _, c := range []struct{ from, to int64 }{{4 << 20, 60 << 20}, {60 << 20, 4 << 20}} {
		var free int64
		for n := 0; ; n++ { // 0: nothing fails
			dev, v := newVolume(t, c.from, FormatOptions{ClusterSize: 512, MaxSize: 64 << 20})
			writeFile(t, v, "f", noise(1, 10_000))
			dev.Resize(64 << 20)
			count := 0
			dev.Hook = failOnly(n, &count)
			failed := v.Resize(c.to)
			dev.Hook = nil
			what := fmt.Sprintf("%d to %d, change %d", c.from, c.to, n)
			if failed != nil {
				_, err := Check(dev, CheckOptions{Repair: true})
				require.NoError(t, err, what)
				requireClean(t, dev)
				v = mount(t, dev)
				requireSame(t, noise(1, 10_000), readFile(t, v, "f"), "f")
			}
			require.NoError(t, v.Resize(c.to), what)
			if n == 0 {
				free = v.Free()
			}
			assert.Equal(t, free, v.Free(), what)
			require.NoError(t, v.Unmount())
			r, err := Check(dev, CheckOptions{})
			require.NoError(t, err)
			require.Empty(t, r.Findings, what)
			v = mount(t, dev)
			assert.Equal(t, free, v.Free(), what)
			requireSame(t, noise(1, 10_000), readFile(t, v, "f"), "f")
			if n > 0 && failed == nil {
				break
			}
		}
	}
}

// TestLargestClusters uses clusters of 32 MiB, the most that the specification allows (section 3.1.15).
func TestLargestClusters(t *testing.T) {
	require.Error(t, Format(blockdevtest.NewMem(1<<40), FormatOptions{ClusterSize: 64 << 20}))
	dev, v := newVolume(t, 1<<30, FormatOptions{ClusterSize: 32 << 20})
	assert.EqualValues(t, 32<<20, v.ClusterSize())
	require.NoError(t, v.Mkdir("d"))
	data := noise(1, 33<<20)
	writeFile(t, v, "d/f", data)
	require.NoError(t, v.Unmount())
	requireClean(t, dev)
	fsckIfThere(t, dev)
	v = mount(t, dev)
	requireSame(t, data, readFile(t, v, "d/f"), "d/f")
}
