package workload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/units"
)

const randomFile = "disks/one"

// fakeDisk is a volume with a file of n bytes; a read takes 1 ms, a write 2 ms, a flush 5 ms.
func fakeDisk(n int64) *fakeVolume {
	v := newFake()
	v.dirs["disks"], v.files[randomFile] = true, &fakeBody{data: make([]byte, n)}
	v.openCost, v.closeCost, v.evictCost = time.Hour, time.Hour, time.Hour
	v.readCost, v.writeCost, v.syncCost = time.Millisecond, 2*time.Millisecond, 5*time.Millisecond
	return v
}

func randomOptions(t testing.TB, v *fakeVolume) Options {
	return Options{Clock: v.clock, Data: randomData(t), Block: 4096, Cache: CacheDirect, Sync: hostio.SyncFsync, Memory: 1 << 30}
}

// ofKind are the operations of a kind; without any, their count is 0.
func ofKind(out Outcome, kind string) (found result.Operations) {
	for _, o := range out.Operations {
		if o.Kind == kind {
			found = o
		}
	}
	return found
}

func TestRandomTimesOperationsByKind(t *testing.T) {
	v := fakeDisk(1 << 20)
	spec := plan.Step{File: randomFile, FileSize: 1 << 20, Reads: 0.7, Flush: 4, Amount: 400<<12 - 1}
	out, err := Random(t.Context(), v, spec, Key{}, randomOptions(t, v))
	require.NoError(t, err)
	read, write, flush := ofKind(out, "read"), ofKind(out, "write"), ofKind(out, "flush")
	assert.EqualValues(t, 400, read.Count+write.Count, "a part of a block counts as a block")
	assert.InDelta(t, 280, read.Count, 45)
	assert.Equal(t, write.Count/4, flush.Count)
	assert.Equal(t, []int64{read.Count << 12, write.Count << 12, 0}, []int64{read.Bytes, write.Bytes, flush.Bytes})
	assert.EqualValues(t, 400<<12, out.Bytes)
	for _, o := range []struct {
		result.Operations
		each int64
	}{{read, 1e6}, {write, 2e6}, {flush, 5e6}} {
		assert.Equal(t, []int64{o.each, o.each, o.Count * o.each}, []int64{o.Latency.Min, o.Latency.Max, o.Latency.Sum}, o.Kind)
	}
	assert.Equal(t, read.Latency.Sum+write.Latency.Sum+flush.Latency.Sum, out.OperationsSpan.DurationNS)
	assert.EqualValues(t, 1e6, out.OperationsSpan.OwnNS, "a read of no bytes")
	assert.Equal(t, &result.Achieved{Asked: "fsync", Achieved: "full"}, out.Sync)
	assert.Equal(t, &result.Achieved{Asked: "direct", Achieved: "direct"}, out.Cache)
	assert.Empty(t, out.Warnings)
	assert.Equal(t, []string{"sync " + randomFile, "close " + randomFile}, v.log[len(v.log)-2:], "what is left is flushed later")
	assertAllClosed(t, v)
}

func TestRandomStartsNoOperationAfterItsTime(t *testing.T) {
	for _, tt := range []struct {
		limit time.Duration
		flush int
		want  []int64 // writes, flushes, ms
	}{{10 * time.Millisecond, 0, []int64{5, 0, 10}}, {11 * time.Millisecond, 0, []int64{6, 0, 12}},
		{10 * time.Millisecond, 2, []int64{3, 1, 11}}, {8 * time.Millisecond, 2, []int64{2, 1, 9}}} {
		v := fakeDisk(1 << 20)
		out, err := Random(t.Context(), v, plan.Step{File: randomFile, FileSize: 1 << 20, Flush: tt.flush, Time: units.Duration(tt.limit)},
			Key{}, randomOptions(t, v))
		require.NoError(t, err)
		assert.Equal(t, tt.want, []int64{ofKind(out, "write").Count, ofKind(out, "flush").Count,
			out.OperationsSpan.DurationNS / 1e6}, tt)
	}
}

// writesOf are the offsets that a step of writes accesses, by worker as far as these are told apart by order.
func writesOf(t *testing.T, key Key, o func(*Options)) (list []int64, v *fakeVolume) {
	var mu sync.Mutex
	v = fakeDisk(16<<12 + 4095)
	v.failWrite = func(_ string, off int64) error {
		mu.Lock()
		defer mu.Unlock()
		list = append(list, off)
		return nil
	}
	options := randomOptions(t, v)
	if o != nil {
		o(&options)
	}
	_, err := Random(t.Context(), v, plan.Step{File: randomFile, FileSize: 16<<12 + 4095, Amount: 1600 << 12}, key, options)
	require.NoError(t, err)
	return list, v
}

func TestRandomOffsetsAreUniformAndFollowFromTheKey(t *testing.T) {
	key := Key{Seed: 1, Round: 1, Step: "s"}
	first, v := writesOf(t, key, nil)
	count := map[int64]int{}
	for _, off := range first {
		count[off]++
	}
	require.Len(t, count, 16)
	for off, n := range count {
		assert.Zero(t, off%4096)
		assert.Less(t, off, int64(16<<12), "the rest of the file is no whole block")
		assert.InDelta(t, 100, n, 45)
	}
	assert.Len(t, v.files[randomFile].data, 16<<12+4095)
	again, _ := writesOf(t, key, nil)
	assert.Equal(t, first, again)
	for _, other := range []Key{{Seed: 2, Round: 1, Step: "s"}, {Seed: 1, Round: 2, Step: "s"}, {Seed: 1, Round: 1, Step: "t"}} {
		next, _ := writesOf(t, other, nil)
		assert.NotEqual(t, first, next)
	}
	// With several workers the amount is divided, and each has offsets of its own.
	three, _ := writesOf(t, key, func(o *Options) { o.Workers = 3 })
	assert.Len(t, three, 1600)
	slices.Sort(three)
	sorted := slices.Sorted(slices.Values(first))
	assert.NotEqual(t, sorted, three)
}

func TestRandomWritesTheKeystream(t *testing.T) {
	key := Key{Seed: 1, Round: 1, Step: "s"}
	_, v := writesOf(t, key, nil)
	blocks := map[string]bool{}
	for b := range slices.Chunk(v.files[randomFile].data[:16<<12], 4096) {
		blocks[string(b)] = true
		assert.NotEqual(t, make([]byte, 4096), b)
	}
	assert.Len(t, blocks, 16, "no block is the same as another")
	zeros := func(o *Options) { o.Data = NewData(1, 1, "c", DataZero, 0) }
	_, v = writesOf(t, key, zeros)
	assert.Equal(t, make([]byte, 16<<12), v.files[randomFile].data[:16<<12], "of the kind of the file set")
}

func TestRandomFailuresNameTheFile(t *testing.T) {
	boom := errors.New("device on fire")
	fail := func(string) error { return boom }
	for _, tt := range []struct {
		name, want string
		reads      float64
		set        func(*fakeVolume)
	}{
		{"open", `accessing file "disks/one": opening: device on fire`, 0.5, func(v *fakeVolume) { v.failOpen = fail }},
		{"write", `accessing file "disks/one": write at 0: device on fire`, 0,
			func(v *fakeVolume) { v.failWrite = func(string, int64) error { return boom } }},
		{"flush", `accessing file "disks/one": flush at 0: device on fire`, 0, func(v *fakeVolume) { v.failSync = fail }},
		{"close", `accessing file "disks/one": closing: device on fire`, 1, func(v *fakeVolume) { v.failClose = fail }},
		{"short file", `accessing file "disks/one": read at 0: unexpected EOF`, 1,
			func(v *fakeVolume) { v.files[randomFile].data = nil }},
		{"final flush", `accessing file "disks/one": flushing: device on fire`, 0, func(v *fakeVolume) {
			v.failSync = func(string) error {
				v.mu.Lock()
				defer v.mu.Unlock()
				log := strings.Join(v.log, "\n")
				if strings.Count(log, "sync ") > strings.Count(log, "write ") { // each write is followed by one flush
					return boom
				}
				return nil
			}
		}},
	} {
		for _, workers := range []int{1, 3} {
			v := fakeDisk(4096)
			tt.set(v)
			o := randomOptions(t, v)
			o.Workers = workers
			out, err := Random(t.Context(), v, plan.Step{File: randomFile, FileSize: 4096, Reads: units.Share(tt.reads), Flush: 1,
				Amount: units.Bytes(workers) << 12}, Key{}, o)
			assert.EqualError(t, err, tt.want, tt.name)
			assert.LessOrEqual(t, out.Bytes, int64(workers)<<12)
			assertAllClosed(t, v)
		}
	}
	v := fakeDisk(4096)
	o := randomOptions(t, v)
	o.Memory = 64 << 10
	_, err := Random(t.Context(), v, plan.Step{File: randomFile, FileSize: 4096, Amount: 1}, Key{}, o)
	assert.ErrorContains(t, err, "1 block of 4 KiB at once take more than a quarter of the memory")
}

// A write that fails is neither counted nor followed by others, of other workers either.
func TestRandomStopsAtTheFirstFailure(t *testing.T) {
	v := fakeDisk(1 << 20)
	boom, n := errors.New("boom"), 0
	v.failWrite = func(string, int64) error {
		if n++; n == 5 {
			return boom
		}
		return nil
	}
	out, err := Random(t.Context(), v, plan.Step{File: randomFile, FileSize: 1 << 20, Time: units.Duration(time.Hour)}, Key{}, randomOptions(t, v))
	require.ErrorIs(t, err, boom)
	assert.EqualValues(t, 4, ofKind(out, "write").Count)
	assert.Equal(t, 5, n)

	v = fakeDisk(1 << 20)
	ctx, cancel := context.WithCancelCause(t.Context())
	v.onCall = func(string) { cancel(boom) }
	out, err = Random(ctx, v, plan.Step{File: randomFile, FileSize: 1 << 20, Reads: 1, Time: units.Duration(time.Hour)}, Key{}, randomOptions(t, v))
	require.ErrorIs(t, err, boom)
	assert.LessOrEqual(t, ofKind(out, "read").Count, int64(1))
	assertAllClosed(t, v)
}

func TestRandomWithoutSyncFlushesNever(t *testing.T) {
	for _, tt := range []struct {
		name    string
		sync    hostio.SyncMode
		reads   float64
		flush   int
		flushes int // calls
	}{{"none", hostio.SyncNone, 0, 2, 0}, {"reads only", hostio.SyncFull, 1, 2, 0}, {"at the end", hostio.SyncFull, 0, 0, 1}} {
		v := fakeDisk(1 << 20)
		o := randomOptions(t, v)
		o.Sync = tt.sync
		out, err := Random(t.Context(), v, plan.Step{File: randomFile, FileSize: 1 << 20, Reads: units.Share(tt.reads), Flush: tt.flush,
			Amount: 10 << 12}, Key{}, o)
		require.NoError(t, err)
		calls := 0
		for _, what := range v.log {
			if what == "sync "+randomFile {
				calls++
			}
		}
		assert.Equal(t, tt.flushes, calls, tt.name)
		assert.Zero(t, ofKind(out, "flush").Count, tt.name)
		assert.Nil(t, out.Sync, tt.name)
	}
}

func TestRandomRecordsTheCache(t *testing.T) {
	fits := "the file (1.05 MB) fits in memory (1.07 GB): operations may be served by the page cache"
	for _, tt := range []struct {
		name, cache string
		reads       float64
		block       int64
		set         func(*fakeVolume, *Options)
		want        string
		warnings    []string
	}{
		{"direct", CacheDirect, 0.5, 4096, nil, FoundDirect, nil},
		{"resident despite direct", CacheDirect, 1, 4096, func(v *fakeVolume, _ *Options) { v.resident = 1 }, FoundResident,
			[]string{"uncached I/O requested, but 1 of 1 files were buffered-resident"}},
		{"refused", CacheDirect, 0, 4096, func(v *fakeVolume, _ *Options) { v.cache = hostio.CacheBuffered }, FoundBuffered,
			[]string{"uncached I/O requested, but 1 of 1 files were buffered", fits}},
		{"virtual", CacheDirect, 0.5, 4096, func(_ *fakeVolume, o *Options) { o.Virtual = true }, FoundUnknown,
			[]string{`the guest saw "direct", but a virtual machine's host may cache the same blocks`}},
		{"cold", CacheCold, 1, 4096, func(v *fakeVolume, _ *Options) { v.cache, v.warm = hostio.CacheBuffered, 1 }, FoundCold,
			[]string{fits}},
		{"buffered", CacheBuffered, 1, 4096, func(v *fakeVolume, _ *Options) { v.cache, v.warm = hostio.CacheBuffered, 1 },
			FoundResident, []string{fits}},
		{"large file", CacheBuffered, 0, 4096, func(v *fakeVolume, o *Options) { v.cache, o.Memory = hostio.CacheBuffered, 1<<20-1 },
			FoundBuffered, []string{"take more"}},
		{"small blocks", CacheBuffered, 0, 512, func(v *fakeVolume, o *Options) { v.cache, o.Memory = hostio.CacheBuffered, 1<<20-1 },
			FoundBuffered, []string{"blocks are smaller than a page of 4 KiB: writes read the rest of a page that is not cached"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := fakeDisk(1 << 20)
			o := randomOptions(t, v)
			o.Cache, o.Block = tt.cache, tt.block
			if tt.set != nil {
				tt.set(v, &o)
			}
			out, err := Random(t.Context(), v, plan.Step{File: randomFile, FileSize: 1 << 20, Reads: units.Share(tt.reads), Amount: 1 << 14}, Key{}, o)
			if tt.name == "large file" { // its data takes more than memory allows
				require.ErrorContains(t, err, tt.warnings[0])
				return
			}
			require.NoError(t, err)
			assert.Equal(t, &result.Achieved{Asked: tt.cache, Achieved: tt.want}, out.Cache)
			var got []string
			for _, w := range out.Warnings {
				got = append(got, w.Text)
			}
			assert.Equal(t, tt.warnings, got)
		})
	}
}

// dataless is a device on a virtual clock that serves one request at a time.
type dataless struct {
	nullVolume
	clock *clock.Virtual
	kinds map[string]int
	fail  error
}

func (*dataless) Dataless() bool { return true }

func (d *dataless) Operate(kind string, _ int64) error {
	d.kinds[kind]++
	d.clock.Advance(time.Millisecond)
	return d.fail
}

// Workers of a device with one queue wait for each other: the rate stays, and the latency grows with them.
func TestRandomOnADatalessVolume(t *testing.T) {
	for _, workers := range []int{1, 4} {
		d := &dataless{clock: clock.NewVirtual(time.Time{}), kinds: map[string]int{}}
		o := Options{Clock: d.clock, Block: 4096, Workers: workers, Sync: hostio.SyncFull, Cache: CacheDirect}
		out, err := Random(t.Context(), d, plan.Step{File: "f", FileSize: 1 << 40, Reads: 0.5, Flush: 3, Time: units.Duration(time.Second)}, Key{}, o)
		require.NoError(t, err)
		total := 0
		for _, kind := range []string{"read", "write", "flush"} {
			ops := ofKind(out, kind)
			assert.EqualValues(t, d.kinds[kind], ops.Count, kind)
			assert.Positive(t, ops.Count, kind)
			total += d.kinds[kind]
		}
		assert.InDelta(t, 1000, total, float64(2*workers), "one millisecond each")
		assert.InDelta(t, 1e9, out.OperationsSpan.DurationNS, float64(workers)*2e6)
		read := ofKind(out, "read")
		assert.InDelta(t, float64(workers)*1.17e6, read.Latency.Quantile(0.5), float64(workers)*0.3e6)
		assert.Equal(t, FoundDirect, out.Cache.Achieved)
	}
	d := &dataless{clock: clock.NewVirtual(time.Time{}), kinds: map[string]int{}, fail: errors.New("boom")}
	_, err := Random(t.Context(), d, plan.Step{File: "f", FileSize: 1 << 40, Amount: 1 << 20}, Key{}, Options{Clock: d.clock, Block: 4096})
	assert.ErrorIs(t, err, d.fail)
}

func TestRandomOperationsAllocateNothing(t *testing.T) {
	r := &random{step: step{o: Options{Clock: clock.NewReal(), Sync: hostio.SyncFull}},
		st: plan.Step{FileSize: 1 << 20, Reads: 0.5, Flush: 1}}
	w := &randomWorker{random: r, span: span{clock: r.o.Clock, stop: &r.stop, most: 4096}, src: Key{}.source("random", 0),
		file: nullFile{}, data: bytes.Repeat([]byte{1}, 1<<14), left: math.MaxInt64, deadline: math.MaxInt64}
	w.buf = make([]byte, 4096)
	for kind := range w.latency {
		w.latency[kind].Add(int64(time.Minute))
	}
	assert.Zero(t, testing.AllocsPerRun(1000, func() { require.True(t, w.operate()) }))
}

// BenchmarkRandomOverhead is what the harness adds to an operation that costs nothing: to its latency, and to the time
// between two.
func BenchmarkRandomOverhead(b *testing.B) {
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprint(workers), func(b *testing.B) {
			o := Options{Clock: clock.NewReal(), Data: randomData(b), Block: 4096, Workers: workers, Memory: 1 << 30}
			var n, busy, timed int64
			for b.Loop() {
				out, err := Random(b.Context(), nullVolume{}, plan.Step{FileSize: 1 << 30, Reads: 1, Amount: 1 << 30}, Key{}, o)
				require.NoError(b, err)
				n += out.Operations[0].Count
				busy += out.Operations[0].Latency.Sum
				timed += out.OperationsSpan.DurationNS
			}
			b.ReportMetric(float64(busy)/float64(n), "busy-ns/op")
			b.ReportMetric(float64(timed)/float64(n), "span-ns/op")
		})
	}
}
