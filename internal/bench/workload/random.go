package workload

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/units"
)

// Kinds of operations, in the order of the outcome.
const (
	randomRead = iota
	randomWrite
	randomFlush
)

var randomKinds = [...]string{"read", "write", "flush"}

// Written data is made before the clock starts: so many blocks for each worker,
// in at most so many bytes, which stay in the processor's cache, since other
// programs write one block again and again.
const (
	randomBlocks = 64
	randomPool   = 1 << 20
)

// random is one step that is being executed.
type random struct {
	step
	st      plan.Step
	key     Key
	before  string // state of the cache
	workers []*randomWorker
}

// randomWorker is what one worker needs from operation to operation. Its methods
// do not lock or send, and allocate only for histograms, outside of timed calls.
type randomWorker struct {
	span
	*random
	file     File
	src      *rand.PCG
	data     []byte // blocks to write; none of a file that holds no bytes
	next     int    // offset in data of the next one
	unsynced int    // writes since the last flush
	flushed  hostio.SyncMode

	left       int64 // operations
	deadline   int64 // ns on the clock, as first and end
	first, end int64 // start of the first operation, end of the last
	latency    [len(randomKinds)]result.Latencies
	err        error
}

// Random reads and writes blocks of Options.Block bytes at random places of one
// file and times each operation. Offsets are multiples of the block and uniform
// over the file, which has FileSize bytes; they and the kind of each operation
// follow from the key alone. Every worker is a thread with its own handle, random
// source and share of the amount. What is not flushed at the end is flushed after
// the clock has stopped, unless Options.Sync is none.
//
// A dataless volume serves the workers in turn, as a device with one queue does:
// a latency contains the wait for the operations of the others.
func Random(ctx context.Context, vol Volume, st plan.Step, key Key, o Options) (Outcome, error) {
	o = o.withDefaults()
	r := &random{st: st, key: key, step: step{vol: vol, o: o, write: st.Reads < 1, doing: "accessing",
		items: []Item{{Name: st.File, Size: int64(st.FileSize)}}, found: map[string]int{}, l: newLayout(vol, nil, o)}}
	// Each worker has a block to read into, and blocks to write.
	each := units.RoundUp(o.Block, bufferAlign) +
		units.RoundUp(max(min(randomBlocks, randomPool/o.Block), 1)*o.Block, bufferAlign)
	if r.l.dataless {
		each = 0
	} else {
		defer pauseGC(o.Workers)()
	}
	if each*int64(o.Workers) > o.budget() {
		return r.out, r.fail(r.items[0], fmt.Errorf("%s of %s at once take more than a quarter of the memory",
			units.Count(o.Workers, "block"), units.Bytes(o.Block)))
	}
	mem, free, err := o.memory(each * int64(o.Workers))
	if err != nil {
		return r.out, err
	}
	defer free()
	for id := 0; id < o.Workers && err == nil; id++ {
		err = r.open(ctx, id, mem[int64(id)*each:][:each])
	}
	if err == nil {
		err = cmp.Or(r.time(), context.Cause(ctx))
	}
	if err = cmp.Or(err, r.finish()); err != nil {
		err = r.fail(r.items[0], err)
	}
	return r.out, err
}

// open makes a worker with its data and its handle of the file. The first one
// evicts the file as far as requested, and finds out the state of the cache.
func (r *random) open(ctx context.Context, id int, mem []byte) (err error) {
	o, n, block := r.o.fileOptions(id), int64(r.o.Workers), r.o.Block
	w := &randomWorker{random: r, span: span{clock: r.o.Clock, done: ctx.Done(), stop: &r.stop, most: block},
		src: r.key.source("random", id), left: math.MaxInt64, first: math.MaxInt64}
	if amount := int64(r.st.Amount); amount > 0 { // the first workers have one operation more
		w.left = (units.RoundUp(amount, block)/block + n - 1 - int64(id)) / n
	}
	if o.Write = r.write; r.l.dataless {
		o.Worker = 0
	} else {
		data := mem[units.RoundUp(block, bufferAlign):]
		w.buf, w.data = mem[:block], data[:int64(len(data))/block*block]
		r.o.Data.FillAt(w.data, KeyOf(r.st.File), int64(r.st.FileSize)+int64(id*len(mem))) // no part of the file
	}
	if w.file, err = r.vol.Open(r.st.File, o); err != nil {
		return fmt.Errorf("opening: %w", err)
	}
	if r.workers = append(r.workers, w); id == 0 {
		err = r.evict(w.file)
		r.before = cacheBefore(w.file)
	}
	return err
}

// time lets the workers go together, and adds up what they did. The clock of a
// dataless volume cannot be advanced by several, so one thread does all work there.
func (r *random) time() (err error) {
	own := ownTime(r.o.Clock, func() { _, _ = r.workers[0].file.ReadAt(nil, 0) })
	each := 1
	if r.l.dataless {
		each = len(r.workers)
	}
	groups := slices.Collect(slices.Chunk(r.workers, each))
	err = r.together(len(groups), func(id int) {
		gate := int64(r.o.Clock.Now())
		for _, w := range groups[id] {
			w.end, w.deadline = gate, gate+int64(cmp.Or(r.st.Time, math.MaxInt64/2))
		}
		for more := true; more; {
			more = false
			for _, w := range groups[id] {
				more = w.operate() || more
			}
		}
	})
	r.addOperations(own)
	return err
}

// operate does one operation and, after a write, the flush that is due. It
// returns false after the last one.
func (w *randomWorker) operate() bool {
	if w.left == 0 || w.err != nil || w.stopped() {
		return false
	}
	w.left--
	kind, p := randomWrite, w.data
	if float64(w.src.Uint64()>>11) < float64(w.st.Reads)*(1<<53) {
		kind, p = randomRead, w.buf
	} else if !w.l.dataless {
		p = p[w.next:][:w.most]
		w.next = (w.next + len(p)) % len(w.data)
	}
	off, start := int64(pick(w.src, int(int64(w.st.FileSize)/w.most)))*w.most, w.end
	if !w.l.dataless {
		w.yield(w.end)
		start = int64(w.clock.Now())
	}
	if start >= w.deadline {
		return false
	}
	w.first = min(w.first, start)
	w.do(kind, p, off, start)
	if kind == randomWrite && w.err == nil {
		if w.unsynced++; w.unsynced == w.st.Flush && w.o.Sync != hostio.SyncNone {
			w.unsynced = 0
			w.do(randomFlush, nil, off, w.end) // one reading of the clock ends the write and starts the flush
		}
	}
	return w.err == nil
}

// do is one call, timed from start, a reading of the clock immediately before it.
func (w *randomWorker) do(kind int, p []byte, off, start int64) {
	switch {
	case w.l.dataless:
		w.err = w.vol.(Dataless).Operate(randomKinds[kind], w.most)
	case kind == randomRead:
		w.err = readFull(w.file, p, off)
	case kind == randomWrite:
		_, w.err = w.file.WriteAt(p, off)
	default:
		w.flushed, w.err = w.file.Sync(w.o.Sync)
	}
	w.end = int64(w.clock.Now())
	if w.err == nil {
		w.latency[kind].Add(w.end - start)
		return
	}
	w.err = fmt.Errorf("%s at %d: %w", randomKinds[kind], off, w.err)
	w.span.stop.Store(true)
}

// addOperations adds up what the workers did.
func (r *random) addOperations(own int64) {
	for kind, name := range randomKinds {
		var all result.Latencies
		first, end := int64(math.MaxInt64), int64(0)
		for _, w := range r.workers {
			all.Merge(&w.latency[kind])
			first, end = min(first, w.first), max(end, w.end)
		}
		ops := result.Operations{Kind: name, Latency: all.Histogram()}
		if ops.Count = ops.Latency.Count(); ops.Count == 0 {
			continue
		}
		if kind != randomFlush {
			ops.Bytes = ops.Count * r.o.Block
		}
		r.out.Bytes += ops.Bytes
		r.out.Operations = append(r.out.Operations, ops)
		r.out.OperationsSpan = &result.OperationsSpan{DurationNS: end - first, OwnNS: own}
	}
}

// finish flushes what the workers wrote, finds out how the file was accessed, and
// closes the handles. It returns the first error.
func (r *random) finish() (err error) {
	for id, w := range r.workers {
		if id == 0 && r.out.OperationsSpan != nil {
			if r.write && r.o.Sync != hostio.SyncNone && !r.stop.Load() {
				if _, w.err = w.file.Sync(r.o.Sync); w.err != nil {
					w.err = fmt.Errorf("flushing: %w", w.err)
				}
			}
			r.recordAccess(w.file)
		}
		if e := w.file.Close(); w.err == nil && e != nil {
			w.err = fmt.Errorf("closing: %w", e)
		}
		err = cmp.Or(err, w.err)
		if w.flushed != "" {
			r.recordSync(w.flushed)
			r.out.Sync = &result.Achieved{Asked: string(r.o.Sync), Achieved: string(r.synced)}
		}
	}
	return err
}

// recordAccess records how the file was accessed, with warnings about what that
// means for the numbers.
func (r *random) recordAccess(f File) {
	found := string(f.Cache()) // direct or buffered, as FoundDirect and FoundBuffered
	if r.st.Reads > 0 {
		found = cacheAfter(r.before, f)
	}
	r.found[found]++
	r.recordCache()
	page, cached := int64(os.Getpagesize()), f.Cache() != hostio.CacheDirect
	if cached && int64(r.st.FileSize) <= r.o.Memory {
		r.out.warn("cache", "the file (%s) fits in memory (%s): operations may be served by the page cache",
			r.st.FileSize.Human(), units.Bytes(r.o.Memory).Human())
	}
	if cached && r.write && r.o.Block < page {
		r.out.warn("block", "blocks are smaller than a page of %s: writes read the rest of a page that is not cached",
			units.Bytes(page))
	}
}
