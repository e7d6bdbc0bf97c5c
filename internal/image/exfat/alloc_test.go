package exfat

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/blockdev/blockdevtest"
	"dmgbench/internal/system/units"
)

// TestAllocatorProperty allocates and frees at random and looks at the bitmap, the counters and the arenas after each
// step.
func TestAllocatorProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint32Range(1, 3000).Draw(t, "clusters")
		b := newBitmap(make([]byte, units.RoundUp(int64(n+7)/8, 8)), n)
		b.page = block
		a := &allocator{bitmap: b, cluster: 4096, arenas: map[int]*arena{}}
		a.extent = 4096 * rapid.SampledFrom([]int64{0, 1, 16, 100, 256}).Draw(t, "extent")
		if a.extent > 0 {
			a.phase = 512 * rapid.Int64Range(0, a.extent/512-1).Draw(t, "phase")
		}
		owner := make([]int, n)
		live := map[int][]run{}
		for step := range rapid.IntRange(1, 60).Draw(t, "steps") {
			if rapid.IntRange(0, 2).Draw(t, "free one") == 0 {
				for id, runs := range live {
					a.release(runs)
					for _, r := range runs {
						clear(owner[r.first-firstData:][:r.count])
					}
					delete(live, id)
					break
				}
				continue
			}
			want := rapid.Uint32Range(1, max(1, n/4)).Draw(t, "want")
			free := a.free
			runs, err := a.allocate(want, 0, rapid.IntRange(0, 4).Draw(t, "stripe"), rapid.Bool().Draw(t, "whole"))
			if err != nil {
				if want > free {
					require.ErrorIs(t, err, ErrNoSpace)
				} else {
					require.ErrorIs(t, err, errFragments)
				}
				continue
			}
			var got uint32
			for _, r := range runs {
				got += r.count
				for i := r.first - firstData; i < r.end()-firstData; i++ {
					require.Zero(t, owner[i], "cluster %d given twice", i)
					owner[i] = step + 1
				}
			}
			require.Equal(t, want, got)
			live[step+1] = runs
			checkAllocator(t, a, owner)
		}
	})
}

func checkAllocator(t *rapid.T, a *allocator, owner []int) {
	var used uint32
	for i, o := range owner {
		require.Equal(t, o != 0, a.taken(uint32(i)))
		if o != 0 {
			used++
		}
	}
	require.Equal(t, a.n-used, a.free)
	require.Equal(t, used, a.count())
	for s, x := range a.arenas {
		end := int64(x.end)*a.cluster + a.phase
		if x.end != a.n {
			require.Less(t, a.extent*((end+a.extent-1)/a.extent)-end, a.cluster, "arena %d ends with an extent", s)
		}
		for o, y := range a.arenas {
			if s != o {
				require.True(t, x.next >= y.end || y.next >= x.end || x.next == x.end || y.next == y.end, "arenas %d and %d overlap", s, o)
			}
		}
	}
}

func TestPhaseOfAPartition(t *testing.T) {
	mem := blockdevtest.NewMem(40 << 20)
	mem.Extent = 1 << 20
	dev, err := blockdev.Section(mem, 300<<10, 39<<20)
	require.NoError(t, err)
	require.NoError(t, Format(dev, FormatOptions{}))
	v := mount(t, dev)
	for stripe := 1; stripe <= 3; stripe++ {
		f, err := v.CreateStriped(string(rune('a'+stripe)), 100, stripe)
		require.NoError(t, err)
		assert.Zero(t, (f.Extents()[0].Device+300<<10)%mem.Extent, "a new arena starts with a band")
		require.NoError(t, f.Close())
	}
}

// Clusters that follow those of a file come first, wherever the last allocation was.
func TestFilesGrowInOnePieceWhereTheyCan(t *testing.T) {
	b := newBitmap(make([]byte, 16), 100)
	b.page = block
	a := &allocator{bitmap: b, cluster: 4096, arenas: map[int]*arena{}}
	file, err := a.allocate(10, 0, 0, false)
	require.NoError(t, err)
	require.Equal(t, []run{{firstData, 10}}, file)
	other, err := a.allocate(10, 0, 0, false)
	require.NoError(t, err)
	a.release(other)
	more, err := a.allocate(10, firstData+9, 0, false)
	require.NoError(t, err)
	assert.Equal(t, []run{{firstData + 10, 10}}, more, "behind the file, not behind the last allocation")
	rest, err := a.allocate(81, firstData+19, 0, false)
	require.ErrorIs(t, err, ErrNoSpace)
	assert.Empty(t, rest)
	rest, err = a.allocate(80, firstData+19, 0, false)
	require.NoError(t, err)
	assert.Equal(t, []run{{firstData + 20, 80}}, rest, "to the end of the volume")
}
