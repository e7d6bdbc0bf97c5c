package workload

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
)

func items(sizes ...int64) []Item {
	list := make([]Item, len(sizes))
	for i, n := range sizes {
		list[i] = Item{Name: fmt.Sprintf("%s/f%03d", BatchFolder(1), i), Size: n, Batch: 1, Set: 1, Index: i}
	}
	return list
}

func randomData(t testing.TB) *Data {
	d := NewData(7, 1, "case", DataRandom, 0)
	return d
}

// Only write calls and the flush may be in a sample, whatever all else costs.
func TestWriteTimesCallsAndFlushOnly(t *testing.T) {
	v := newFake()
	v.createCost, v.closeCost, v.openCost = time.Minute, 2*time.Minute, time.Hour
	v.writeCost, v.syncCost = 3*time.Millisecond, 20*time.Millisecond
	o := Options{Clock: v.clock, Data: randomData(t), Block: 4096, Sync: hostio.SyncFsync, Cache: CacheDirect,
		Progress: func(Progress) { v.clock.Advance(time.Hour) }}
	out, err := Write(t.Context(), v, items(4096*5, 1, 0, 4097), o)
	require.NoError(t, err)
	var got []time.Duration
	for _, s := range out.Samples {
		got = append(got, time.Duration(s.DurationNS))
	}
	assert.Equal(t, []time.Duration{35 * time.Millisecond, 23 * time.Millisecond, 20 * time.Millisecond, 26 * time.Millisecond}, got)
	sp := out.Span
	assert.Equal(t, int64(104*time.Millisecond), sp.LastDoneNS-sp.GateNS, "pauses between files are cut out")
	assert.Equal(t, int64(104*time.Millisecond), sp.BusyNS)
	assert.Zero(t, sp.IdleNS)
	assert.Equal(t, sp.LastDoneNS, sp.FirstDoneNS)
	assert.Equal(t, 4, sp.Waves)
	assert.Equal(t, int64(3*(2*time.Minute+time.Hour+time.Minute)), sp.PausedNS, "close, progress and create of three gaps")
	assert.Equal(t, int64(4096*5+1+4097), sp.Bytes)
	assert.Equal(t, &result.Achieved{Asked: "fsync", Achieved: "full"}, out.Sync)
	assert.Equal(t, &result.Achieved{Asked: "direct", Achieved: "direct"}, out.Cache)
	assert.Empty(t, out.Warnings)
	assert.Equal(t, "volume sync", v.log[len(v.log)-1])
}

func TestWriteWithoutFlushCallsNone(t *testing.T) {
	v := newFake()
	v.writeCost, v.syncCost = time.Second, time.Minute
	out, err := Write(t.Context(), v, items(10, 20), Options{Clock: v.clock, Data: randomData(t), Sync: hostio.SyncNone})
	require.NoError(t, err)
	assert.Equal(t, int64(2*time.Second), out.Span.BusyNS)
	assert.Equal(t, &result.Achieved{Asked: "none", Achieved: "none"}, out.Sync)
	assert.NotContains(t, strings.Join(v.log, "\n"), "\nsync")
}

// Of a read, only the read calls count; eviction and the look at the cache come
// before.
func TestReadTimesReadCallsOnly(t *testing.T) {
	v := newFake()
	o := Options{Clock: v.clock, Data: randomData(t), Block: 1000}
	list := items(3000, 2500, 1)
	_, err := Write(t.Context(), v, list, o)
	require.NoError(t, err)
	v.openCost, v.closeCost, v.evictCost, v.syncCost, v.readCost = time.Hour, time.Hour, time.Hour, time.Hour, time.Millisecond
	v.cache, v.warm = hostio.CacheBuffered, 1
	o.Cache = CacheCold
	out, err := Read(t.Context(), v, list, o)
	require.NoError(t, err)
	assert.Equal(t, int64(7*time.Millisecond), out.Span.LastDoneNS-out.Span.GateNS)
	assert.Equal(t, &result.Achieved{Asked: "cold", Achieved: FoundCold}, out.Cache)
	assert.Nil(t, out.Sync)
	for _, s := range out.Samples {
		assert.Equal(t, (s.Bytes+999)/1000, s.DurationNS/int64(time.Millisecond), s.File)
	}
	at := strings.Index(strings.Join(v.log, "\n"), "evict batch001/f000\nread batch001/f000")
	assert.Positive(t, at, "evicted before the first read")
}

func TestCacheIsWhatWasFound(t *testing.T) {
	for _, c := range []struct {
		name, asked    string
		cache          hostio.CacheMode
		warm, left     float64
		unknown, guest bool
		want, warning  string
	}{
		{"direct", CacheDirect, hostio.CacheDirect, 1, 0, false, false, FoundDirect, ""},
		{"direct refused", CacheDirect, hostio.CacheBuffered, 1, 0, false, false, FoundCold, "uncached I/O requested, but 2 of 2 files were buffered-cold"},
		{"direct over resident pages", CacheDirect, hostio.CacheDirect, 1, .5, false, false, FoundResident, "but 2 of 2 files were buffered-resident"},
		{"cold", CacheCold, hostio.CacheBuffered, 1, .01, false, false, FoundCold, ""},
		{"cold but stuck", CacheCold, hostio.CacheBuffered, 1, 1, false, false, FoundResident, "cold I/O requested"},
		{"buffered, warm", CacheBuffered, hostio.CacheBuffered, 1, 0, false, false, FoundResident, ""},
		{"buffered, cold", CacheBuffered, hostio.CacheBuffered, 0, 0, false, false, FoundCold, ""},
		{"unseen", CacheCold, hostio.CacheBuffered, 1, 1, true, false, FoundUnknown, "whether it took effect is unknown"},
		{"guest, direct", CacheDirect, hostio.CacheDirect, 0, 0, false, true, FoundUnknown, "a virtual machine's host may cache"},
		{"guest, resident", CacheBuffered, hostio.CacheBuffered, 1, 1, false, true, FoundResident, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := newFake()
			list := items(10, 20)
			o := Options{Clock: v.clock, Data: randomData(t), Virtual: c.guest}
			_, err := Write(t.Context(), v, list, o)
			require.NoError(t, err)
			v.cache, v.warm, v.resident, v.unknown = c.cache, c.warm, c.left, c.unknown
			o.Cache = c.asked
			out, err := Read(t.Context(), v, list, o)
			require.NoError(t, err)
			assert.Equal(t, &result.Achieved{Asked: c.asked, Achieved: c.want}, out.Cache)
			if c.warning == "" {
				assert.Empty(t, out.Warnings)
			} else {
				require.Len(t, out.Warnings, 1)
				assert.Equal(t, "cache", out.Warnings[0].Kind)
				assert.Contains(t, out.Warnings[0].Text, c.warning)
			}
		})
	}
}

func TestNocacheMisses(t *testing.T) {
	const all = MaxCall
	for _, c := range []struct {
		call  int64
		sizes []int64
		want  int
	}{
		{all, []int64{4096, 16383, 16384, 16385, 2_000_000, 0}, 2},
		{4096, []int64{4096, 1 << 20}, 2},
		{16384, []int64{16384, 20_000, 1 << 20}, 0},
		{20_000, []int64{20_000, 20_001, 1 << 20}, 2},
		{1 << 20, []int64{3 << 20, 3<<20 + 1}, 0},
	} {
		assert.Equal(t, c.want, nocacheMisses(items(c.sizes...), c.call), "%+v", c)
	}
}

// F_NOCACHE of macOS does not hold for small or unaligned calls: what was written
// so is not called direct.
func TestSmallCallsOnMacsMayBeCached(t *testing.T) {
	onMac = true
	defer func() { onMac = false }()
	for _, c := range []struct {
		size, block      int64
		wrote, read, say string
	}{
		{64 << 10, 0, FoundDirect, FoundDirect, ""},
		{64 << 10, 32 << 10, FoundDirect, FoundDirect, ""},
		{64 << 10, 4096, FoundUnknown, FoundDirect, " 1 of 1 files in calls"},
		{64 << 10, 20_480, FoundUnknown, FoundDirect, "not a multiple of 16 KiB"},
		{10_000, 0, FoundUnknown, FoundDirect, "below 16 KiB"},
	} {
		v := newFake()
		o := Options{Clock: v.clock, Data: randomData(t), Cache: CacheDirect, Block: c.block}
		list := items(c.size)
		wrote, err := Write(t.Context(), v, list, o)
		require.NoError(t, err)
		read, err := Read(t.Context(), v, list, o)
		require.NoError(t, err)
		assert.Equal(t, c.wrote, wrote.Cache.Achieved, "%+v", c)
		assert.Equal(t, c.read, read.Cache.Achieved, "%+v", c)
		for _, out := range []Outcome{wrote, read} {
			if c.say == "" {
				assert.Empty(t, out.Warnings)
			} else if assert.Len(t, out.Warnings, 1) {
				assert.Contains(t, out.Warnings[0].Text, c.say)
			}
		}
	}
}

// A kernel may refuse at the first transfer what it allowed at the open.
func TestDirectReadsThatAreRefused(t *testing.T) {
	for _, unseen := range []bool{false, true} {
		v := newFake()
		list := items(10, 20)
		o := Options{Clock: v.clock, Data: randomData(t), Cache: CacheDirect}
		_, err := Write(t.Context(), v, list, o)
		require.NoError(t, err)
		v.unknown = unseen
		v.onCall = func(name string) {
			if name == list[1].Name {
				v.cache = hostio.CacheBuffered
			}
		}
		want := map[bool]string{false: FoundCold, true: FoundUnknown}[unseen]
		out, err := Read(t.Context(), v, list, o)
		require.NoError(t, err)
		assert.Equal(t, &result.Achieved{Asked: "direct", Achieved: want}, out.Cache)
		require.Len(t, out.Warnings, 1)
		text := map[bool]string{false: ", but 1 of 2 files were buffered-cold", true: "; whether it took effect is unknown"}[unseen]
		assert.Equal(t, "uncached I/O requested"+text, out.Warnings[0].Text)

		v.cache = hostio.CacheDirect
		v.onCall = func(string) { v.cache = hostio.CacheBuffered }
		out, err = Stream(t.Context(), v, StreamSpec{From: list[0].Name, To: "packed", Codec: CodecS2}, o)
		require.NoError(t, err)
		assert.Equal(t, &result.Achieved{Asked: "direct", Achieved: want}, out.Cache)
	}
}

// Progress is called between files only, and counts what is complete.
func TestProgressStandsBetweenFiles(t *testing.T) {
	v := newFake()
	v.writeCost = time.Second
	var seen []Progress
	list := items(10, 20, 30)
	_, err := Write(t.Context(), v, list, Options{Clock: v.clock, Data: randomData(t), Progress: func(p Progress) {
		seen = append(seen, p)
		v.note("progress", time.Minute)
	}})
	require.NoError(t, err)
	assert.Equal(t, []Progress{
		{Files: 1, OfFiles: 3, Bytes: 10, OfBytes: 60, Timed: time.Second},
		{Files: 2, OfFiles: 3, Bytes: 30, OfBytes: 60, Timed: 2 * time.Second},
		{Files: 3, OfFiles: 3, Bytes: 60, OfBytes: 60, Timed: 3 * time.Second},
	}, seen)
	for i, what := range v.log {
		if what == "progress" {
			assert.True(t, strings.HasPrefix(v.log[i-1], "close "), "%q before progress", v.log[i-1])
		}
	}
}

// Several workers: every file once, the headline is gate to last done.
func TestSeveralWorkersShareFilesOnce(t *testing.T) {
	for _, workers := range []int{2, 3, 8} {
		v := newFake()
		v.writeCost = time.Millisecond
		list := items(make([]int64, 300)...)
		for i := range list {
			list[i].Size = int64(1 + i*37%5000)
		}
		o := Options{Clock: v.clock, Data: randomData(t), Workers: workers, Memory: 1 << 30}
		out, err := Write(t.Context(), v, list, o)
		require.NoError(t, err)
		require.Len(t, out.Samples, 300)
		for i, s := range out.Samples {
			assert.Equal(t, list[i].Name, s.File)
			assert.Equal(t, i, s.Order)
			assert.Less(t, s.Worker, workers)
		}
		assert.Equal(t, Total(list), out.Span.Bytes)
		assert.Equal(t, 3, out.Span.Waves, "128 files at most are open")
		assert.Equal(t, int64(300*time.Millisecond), out.Span.LastDoneNS-out.Span.GateNS, "the clock moves by every call")
		assert.LessOrEqual(t, out.Span.FirstDoneNS, out.Span.LastDoneNS)
		found, err := Verify(t.Context(), v, list, o)
		require.NoError(t, err)
		assert.Empty(t, found.Findings)
		read, err := Read(t.Context(), v, list, o)
		require.NoError(t, err)
		assert.Len(t, read.Samples, 300)
	}
}

func TestNoFilesIsNoSpan(t *testing.T) {
	v := newFake()
	out, err := Write(t.Context(), v, nil, Options{Clock: v.clock, Data: randomData(t)})
	require.NoError(t, err)
	assert.Nil(t, out.Span)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Read(ctx, v, items(1), Options{Clock: v.clock})
	require.ErrorIs(t, err, context.Canceled)
}
