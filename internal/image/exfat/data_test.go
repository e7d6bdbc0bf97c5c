package exfat

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/blockdev/blockdevtest"
)

type call struct {
	op     blockdevtest.Op
	off, n int64
}

// recorded returns a hook that keeps the calls.
func recorded(calls *[]call) func(blockdevtest.Op, int64, int64) error {
	var mu sync.Mutex
	return func(op blockdevtest.Op, off, n int64) error {
		mu.Lock()
		defer mu.Unlock()
		*calls = append(*calls, call{op, off, n})
		return nil
	}
}

func TestWriteIsOneCallAnExtentAndAPaddedTail(t *testing.T) {
	dev, v := newVolume(t, 16<<20, FormatOptions{})
	const size = 2_000_000
	f, err := v.Create("f", size)
	require.NoError(t, err)
	require.Len(t, f.Extents(), 1)
	var calls []call
	dev.Hook = recorded(&calls)
	data := noise(1, size)
	_, err = f.WriteAt(data, 0)
	require.NoError(t, err)
	at := f.Extents()[0].Device
	const bulk = size / 4096 * 4096
	assert.Equal(t, []call{{blockdevtest.OpWrite, at, bulk}, {blockdevtest.OpWrite, at + bulk, 4096}}, calls)
	assert.Zero(t, at%4096)

	calls = nil
	require.NoError(t, f.Sync())
	flushes := 0
	for _, c := range calls {
		if c.op == blockdevtest.OpFlush {
			flushes++
		} else {
			assert.LessOrEqual(t, c.n, int64(8192), "metadata is a few pages")
			assert.Zero(t, c.off%4096+c.n%4096)
		}
	}
	assert.Equal(t, 2, flushes)
	calls = nil
	require.NoError(t, f.Sync())
	assert.Equal(t, []call{{blockdevtest.OpFlush, 0, 0}}, calls, "nothing new: one flush")
	dev.Hook = nil
	got := make([]byte, size)
	_, err = f.ReadAt(got, 0)
	require.NoError(t, err)
	requireSame(t, data, got, "file")
	require.NoError(t, f.Close())
}

// fragment leaves the volume full of files of one cluster, every other one removed.
func fragment(t *testing.T, v *Volume) {
	t.Helper()
	require.NoError(t, v.Mkdir("frag"))
	n := 0
	for ; ; n++ {
		f, err := v.Create(fmt.Sprintf("frag/%05d", n), v.ClusterSize())
		if errors.Is(err, ErrNoSpace) {
			break
		}
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	for i := 0; i < n; i += 2 {
		require.NoError(t, v.Remove(fmt.Sprintf("frag/%05d", i)))
	}
	require.NoError(t, v.Sync())
}

func TestFragmentedThenContiguous(t *testing.T) {
	dev, v := newVolume(t, 4<<20, FormatOptions{})
	fragment(t, v)
	size := int(v.Free() / 2)
	data := noise(3, size-5)
	writeFile(t, v, "pieces", data)
	f, err := v.Open("pieces")
	require.NoError(t, err)
	assert.Greater(t, len(f.Extents()), 50)
	require.NoError(t, f.Close())
	require.NoError(t, v.Unmount())
	v = mount(t, dev)
	requireSame(t, data, readFile(t, v, "pieces"), "fragmented file")
	e, _, err := v.lookup("pieces")
	require.NoError(t, err)
	assert.False(t, e.noChain)
	infos, err := v.List("frag")
	require.NoError(t, err)
	for _, i := range infos {
		require.NoError(t, v.Remove("frag/"+i.Name))
	}
	require.NoError(t, v.Remove("frag"))
	// The room in one piece is there once the removals are committed, which Create sees to.
	writeFile(t, v, "whole", noise(4, size))
	e, _, err = v.lookup("whole")
	require.NoError(t, err)
	assert.True(t, e.noChain)
	requireSame(t, data, readFile(t, v, "pieces"), "fragmented file")
	require.NoError(t, v.Unmount())
}

func TestFillToTheLastCluster(t *testing.T) {
	dev, v := newVolume(t, 2<<20, FormatOptions{})
	free := v.Free()
	f, err := v.Create("all", 0)
	require.NoError(t, err)
	data := noise(5, int(free))
	for off := 0; off < len(data); off += 100_000 {
		_, err := f.WriteAt(data[off:min(len(data), off+100_000)], int64(off))
		require.NoError(t, err)
	}
	assert.Zero(t, v.Free())
	_, err = f.WriteAt([]byte{1}, free)
	require.ErrorIs(t, err, ErrNoSpace)
	assert.EqualValues(t, free, f.Size())
	_, err = v.Create("more", 1)
	require.ErrorIs(t, err, ErrNoSpace)
	_, err = v.Create("empty", 0)
	require.NoError(t, err, "the root directory has room")
	require.NoError(t, f.Truncate(free-5000))
	assert.EqualValues(t, 4096, v.Free())
	require.NoError(t, f.Close())
	requireSame(t, data[:free-5000], readFile(t, v, "all"), "full")
	require.NoError(t, v.Remove("all"))
	writeFile(t, v, "again", data)
	requireSame(t, data, readFile(t, v, "again"), "full again")
	_ = dev
}

func TestUnwrittenReadsAsZeros(t *testing.T) {
	dev, v := newVolume(t, 8<<20, FormatOptions{})
	_, err := dev.WriteAt(noise(9, 6<<20), 2<<20) // old bytes of a former life
	require.NoError(t, err)
	const size = 5<<20 + 77
	f, err := v.Create("holes", size)
	require.NoError(t, err)
	want := make([]byte, size)
	put := func(off, n int) {
		p := noise(uint64(off), n)
		copy(want[off:], p)
		_, err := f.WriteAt(p, int64(off))
		require.NoError(t, err)
	}
	check := func(what string) {
		t.Helper()
		got := make([]byte, size)
		_, err := f.ReadAt(got, 0)
		require.NoError(t, err)
		requireSame(t, want, got, what)
	}
	check("new")
	put(3_000_000, 100_000)
	put(1_000_001, 5000)
	put(3_050_000, 100_000)
	put(100, 50)
	check("spans in memory")
	require.NoError(t, f.Sync())
	check("gaps filled")
	assert.EqualValues(t, 3_150_000, f.n.e.valid)
	put(size-10, 10)
	require.NoError(t, f.Close())
	require.NoError(t, v.Unmount())
	v = mount(t, dev)
	requireSame(t, want, readFile(t, v, "holes"), "after remount")
	f, err = v.Open("holes")
	require.NoError(t, err)
	require.NoError(t, f.Truncate(150))
	require.NoError(t, f.Truncate(size))
	clear(want[150:])
	got := make([]byte, size+10)
	n, err := f.ReadAt(got, 0)
	require.ErrorIs(t, err, io.EOF)
	requireSame(t, want, got[:n], "cut and grown")
}

func TestConcurrentWorkers(t *testing.T) {
	dev := blockdevtest.NewMem(96 << 20)
	dev.Extent = 8 << 20
	require.NoError(t, Format(dev, FormatOptions{}))
	v := mount(t, dev)
	shared, err := v.Create("shared", 0)
	require.NoError(t, err)
	var wg sync.WaitGroup
	const workers, files, part = 4, 6, 70_001
	for w := range workers {
		wg.Go(func() {
			for i := range files {
				name := fmt.Sprintf("w%d-%d", w, i)
				data := noise(uint64(w*100+i), 1<<20+i*777)
				f, err := v.CreateStriped(name, int64(len(data)), w+1)
				if !assert.NoError(t, err) {
					return
				}
				_, err = f.WriteAt(data, 0)
				assert.NoError(t, err)
				assert.NoError(t, f.Sync())
				_, err = shared.WriteAt(noise(uint64(w*100+i), part), int64(i*workers+w)*part)
				assert.NoError(t, err)
				got := make([]byte, len(data))
				_, err = f.ReadAt(got, 0)
				assert.NoError(t, err)
				assert.NoError(t, f.Close())
				if i%2 == 1 {
					assert.NoError(t, v.Remove(name))
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, shared.Close())
	require.NoError(t, v.Unmount())
	v = mount(t, dev)
	whole := readFile(t, v, "shared")
	for w := range workers {
		for i := range files {
			requireSame(t, noise(uint64(w*100+i), part), whole[(i*workers+w)*part:][:part], "shared")
			if i%2 == 0 {
				requireSame(t, noise(uint64(w*100+i), 1<<20+i*777), readFile(t, v, fmt.Sprintf("w%d-%d", w, i)), "own")
			}
		}
	}
}

// TestGrowersDoNotPadOverEachOther appends to one file from several goroutines in pieces that share blocks.
func TestGrowersDoNotPadOverEachOther(t *testing.T) {
	_, v := newVolume(t, 16<<20, FormatOptions{})
	for round := range 20 {
		f, err := v.Create(fmt.Sprint(round), 0)
		require.NoError(t, err)
		data := noise(uint64(round), 64*1000)
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				_, err := f.WriteAt(data[i*1000:(i+1)*1000], int64(i)*1000)
				assert.NoError(t, err)
			})
		}
		wg.Wait()
		got := make([]byte, len(data))
		_, err = f.ReadAt(got, 0)
		require.NoError(t, err)
		requireSame(t, data, got, "appended")
		require.NoError(t, f.Close())
	}
}

func TestStripesUseDifferentBands(t *testing.T) {
	const band = 1 << 20
	mem := blockdevtest.NewMem(40 << 20)
	mem.Extent = band
	dev, err := blockdev.Section(mem, 20<<10, 39<<20) // a partition that is not aligned to the bands
	require.NoError(t, err)
	require.NoError(t, Format(dev, FormatOptions{}))
	v := mount(t, dev)
	owner := map[int64]int{}
	for i := range 24 {
		stripe := i%3 + 1
		f, err := v.CreateStriped(fmt.Sprint(i), 200_000+int64(i)*20_000, stripe)
		require.NoError(t, err)
		require.Len(t, f.Extents(), 1)
		e := f.Extents()[0]
		for b := (e.Device + 20<<10) / band; b <= (e.Device+20<<10+e.Length-1)/band; b++ {
			if o, ok := owner[b]; ok {
				assert.Equal(t, o, stripe, "band %d", b)
			}
			owner[b] = stripe
		}
		require.NoError(t, f.Close())
	}
	assert.Greater(t, len(owner), 6)
	require.NoError(t, v.Unmount())
}

// TestPaddingNeverMeetsData lets a second writer append in the moment between the bulk and the tail of the first.
func TestPaddingNeverMeetsData(t *testing.T) {
	dev, v := newVolume(t, 16<<20, FormatOptions{})
	f, err := v.Create("f", 0)
	require.NoError(t, err)
	first, second := noise(1, 8192+1000), noise(2, 500)
	done := false
	dev.Hook = func(op blockdevtest.Op, off, n int64) error {
		if op == blockdevtest.OpWrite && n == 8192 && !done {
			done = true
			_, err := f.WriteAt(second, int64(len(first)))
			return err
		}
		return nil
	}
	_, err = f.WriteAt(first, 0)
	require.NoError(t, err)
	require.True(t, done)
	require.NoError(t, f.Close())
	requireSame(t, append(first, second...), readFile(t, v, "f"), "f")
}
