package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"

	"dmgbench/internal/result"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/hostio"
)

// errStopped is the error of a file at which the step stopped for another
// reason than the file itself.
var errStopped = errors.New("stopped")

// job is one file of a wave.
type job struct {
	item    Item
	order   int     // position in the step, from 0
	file    File    // open
	buf     []byte  // writes: the data of the whole file
	ring    *ring   // instead of buf, for files that do not fit into memory
	skipper Skipper // instead of buf, for files that hold no bytes
	sync    hostio.SyncMode
	found   string // reads: the state of the cache before

	started, done bool
	start, end    int64 // ns on the step's clock
	worker        int
	synced        hostio.SyncMode // that the flush achieved
	err           error
}

// span is one worker's view of a step: what it needs from start to stop of a
// file's clock. Its methods do not allocate, lock, log or send.
type span struct {
	clock clock.Clock
	most  int64           // bytes of one call
	done  <-chan struct{} // closed when the step is cancelled
	stop  *atomic.Bool    // set when another file has failed
	write bool
	buf   []byte // reads: where calls put their bytes
	ran   int64  // ns on the clock: when yield last ran the scheduler
}

// stopped is called between calls. A select on an open channel takes no lock.
func (s *span) stopped() bool {
	select {
	case <-s.done:
		return true
	default:
		return s.stop.Load()
	}
}

// yieldAfter, in ns, is less than the 10 ms for which the runtime lets a goroutine run.
// After them its monitor wakes every 20 µs and takes the processor from the thread
// whenever that is in a system call: a read of 70 µs then takes 4 to 8 µs more.
const yieldAfter = 5e6

// yield runs the scheduler if the goroutine has run for yieldAfter. It is called
// between operations, with a reading of the clock.
func (s *span) yield(now int64) {
	if now-s.ran > yieldAfter {
		s.ran = now
		runtime.Gosched()
	}
}

// transfer times one file: its calls, and when writing its flush.
func (s *span) transfer(j *job) {
	j.start = int64(s.clock.Now())
	s.call(j)
	j.end = int64(s.clock.Now())
}

// call makes the calls of one file, and when writing the flush.
func (s *span) call(j *job) {
	if j.ring != nil {
		j.err = j.ring.drain(j, s)
	}
	for off := int64(0); off < j.item.Size && j.ring == nil && j.err == nil; off += s.most {
		size := min(s.most, j.item.Size-off)
		switch {
		case s.stopped():
			j.err = errStopped
		case j.skipper != nil:
			j.err = j.skipper.Skip(s.write, off, size)
		case s.write:
			_, j.err = j.file.WriteAt(j.buf[off:off+size], off)
		default:
			j.err = readFull(j.file, s.buf[:size], off)
		}
	}
	if s.write && j.err == nil && j.sync != hostio.SyncNone {
		j.synced, j.err = j.file.Sync(j.sync)
	}
}

// readFull reads len(p) bytes. The end of the file before that is
// [io.ErrUnexpectedEOF].
func readFull(f io.ReaderAt, p []byte, off int64) error {
	n, err := f.ReadAt(p, off)
	switch {
	case n == len(p):
		return nil
	case err == nil || err == io.EOF:
		return io.ErrUnexpectedEOF
	}
	return err
}

// ring supplies the data of one file that does not fit into memory: its own
// thread fills blocks ahead of the worker that writes them.
type ring struct {
	full, empty chan []byte
	quit        chan struct{}
	filler      sync.WaitGroup
}

// newRing starts filling mem, which is divided into blocks, with the file's
// data. It returns when every block is full or the file ends.
func newRing(d *Data, it Item, mem []byte, block int) *ring {
	n := len(mem) / block
	r := &ring{full: make(chan []byte, n), empty: make(chan []byte, n), quit: make(chan struct{})}
	for b := range slices.Chunk(mem[:n*block], block) {
		r.empty <- b
	}
	var primed sync.WaitGroup
	primed.Add(1)
	first := min(int64(n*block), it.Size) // bytes of the file that are in the blocks at first
	r.filler.Go(func() {
		key := it.dataKey()
		for off := int64(0); off < it.Size; {
			select {
			case b := <-r.empty:
				b = b[:min(int64(block), it.Size-off)]
				d.FillAt(b, key, off)
				r.full <- b
				if off += int64(len(b)); off == first {
					primed.Done()
				}
			case <-r.quit:
				return
			}
		}
	})
	primed.Wait()
	return r
}

// drain writes the file from the ring. The wait for data is inside the file's
// span: a rest for the disk that no clock measures would make it look faster.
func (r *ring) drain(j *job, s *span) error {
	for off := int64(0); off < j.item.Size; {
		if s.stopped() {
			return errStopped
		}
		b := <-r.full
		if _, err := j.file.WriteAt(b, off); err != nil {
			return err
		}
		off += int64(len(b))
		r.empty <- b[:cap(b)]
	}
	return nil
}

// close ends the filling thread, whether or not the file was written.
func (r *ring) close() {
	close(r.quit)
	r.filler.Wait()
}

// Gate is one step's part of a start that several steps share: their clocks
// start together once all of them are ready.
type Gate struct {
	shared  *barrier
	arrived atomic.Bool
}

// barrier is what the gates of one start share.
type barrier struct {
	parties int
	missing atomic.Int64
	open    chan struct{}
}

// Leave removes the step from the start, so that the others do not wait for it.
// It has no effect after the step has arrived.
func (g *Gate) Leave() {
	if g != nil && !g.arrived.Swap(true) && g.shared.missing.Add(-1) == 0 {
		close(g.shared.open)
	}
}

// wait arrives and blocks until all have, or ctx is done. A step waits only
// once. A nil gate is open.
func (g *Gate) wait(ctx context.Context) error {
	if g == nil {
		return nil
	}
	g.Leave()
	select {
	case <-g.shared.open:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Parallel executes steps at the same time. Each gets its part of one gate,
// which it puts into its Options. Parallel returns when all have ended, with
// all their errors; a failing step does not stop the others.
func Parallel(ctx context.Context, steps ...func(ctx context.Context, g *Gate) error) error {
	shared := &barrier{parties: len(steps), open: make(chan struct{})}
	shared.missing.Store(int64(len(steps)))
	errs := make([]error, len(steps))
	var wg sync.WaitGroup
	for i, step := range steps {
		g := &Gate{shared: shared}
		wg.Go(func() {
			defer g.Leave()
			errs[i] = step(ctx, g)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// The garbage collector is off while a step is timed: its threads would compete
// with the workers. A memory limit bounds the heap, and garbage is collected
// between files, when no clock runs.
const (
	gcPauseRoom = 1 << 30  // heap growth in bytes after which the collector runs after all
	gcCollectAt = 64 << 20 // heap growth in bytes that is collected between files
)

// heapObjects is the metric of the memory of all objects on the heap, in bytes.
const heapObjects = "/memory/classes/heap/objects:bytes"

// gcPause is the state that nested pauses share, as the collector's settings
// are those of the process.
var gcPause struct {
	sync.Mutex
	depth   int   // pauses that have not ended
	percent int   // settings to restore
	limit   int64 // in bytes
	procs   int
	heap    uint64 // bytes after the last collection
}

// pauseGC turns the collector off until the function it returns is called, and prepares
// the process for so many threads of file I/O. Calls nest.
//
// The runtime gets one processor more for each thread. With fewer than threads, a
// thread waits until the runtime's monitor takes one from a thread in a system call:
// 24 threads that read 4 KiB at a time had a quarter of fio's rate.
func pauseGC(threads int) (restore func()) {
	hostio.Warm(threads)
	p := &gcPause
	p.Lock()
	defer p.Unlock()
	if p.depth++; p.depth == 1 {
		runtime.GC()
		p.heap = readMetric(heapObjects)
		p.percent = debug.SetGCPercent(-1)
		p.limit = debug.SetMemoryLimit(-1)
		p.procs = runtime.GOMAXPROCS(0)
		// What the limit counts: memory of the runtime that the system does not have back.
		used := readMetric("/memory/classes/total:bytes") - readMetric("/memory/classes/heap/released:bytes")
		debug.SetMemoryLimit(min(p.limit, int64(used)+gcPauseRoom))
	}
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + threads)
	return func() {
		p.Lock()
		defer p.Unlock()
		if p.depth--; p.depth == 0 {
			debug.SetGCPercent(p.percent)
			debug.SetMemoryLimit(p.limit)
			runtime.GOMAXPROCS(p.procs)
		}
	}
}

// collectGarbage collects if the heap has grown since the last time. It is
// called between files. While several steps run it collects none, as the clock
// of another step may be running.
func collectGarbage() {
	p := &gcPause
	p.Lock()
	defer p.Unlock()
	if p.depth == 1 && readMetric(heapObjects) > p.heap+gcCollectAt {
		runtime.GC()
		p.heap = readMetric(heapObjects)
	}
}

// readMetric reads a figure of package [runtime/metrics].
func readMetric(name string) uint64 {
	samples := []metrics.Sample{{Name: name}}
	metrics.Read(samples)
	return samples[0].Value.Uint64()
}

// Qualities of service of the threads that do file I/O, after the classes that
// macOS throttles by.
const (
	QoSDefault    = "default"
	QoSUtility    = "utility"
	QoSBackground = "background"
)

// lockThread locks the goroutine to a thread of the requested quality of
// service. A thread with a changed priority is not unlocked: it ends with its
// goroutine.
//
// Only the threads that do the I/O get it, by the policies that taskpolicy(8)
// sets for a whole program: other work of the program, and the tools that it
// starts, would be throttled, too.
func lockThread(qos string) (release func(), err error) {
	runtime.LockOSThread()
	if qos == QoSDefault {
		return runtime.UnlockOSThread, nil
	}
	if err = setThreadQoS(qos); err != nil {
		err = fmt.Errorf("setting quality of service %q: %w", qos, err)
	}
	return func() {}, err
}

// achievedQoS is what the system made of the quality of service of the calling
// thread; nil where the default was requested and no other was found.
func achievedQoS(qos string) *result.Achieved {
	found, err := threadQoS()
	if qos == QoSDefault && (err != nil || found == qos) {
		return nil
	}
	if err != nil {
		found = FoundUnknown
	}
	return &result.Achieved{Asked: qos, Achieved: found}
}

// What setpriority(2) and iopolicysys of macOS take: values of
// <sys/resource.h>, and of xnu's sys/resource_private.h for the commands, which
// libSystem gives the system call of setiopolicy_np(3).
const (
	prioDarwinThread = 3      // PRIO_DARWIN_THREAD
	prioDarwinProc   = 4      // PRIO_DARWIN_PROCESS
	prioDarwinBG     = 0x1000 // PRIO_DARWIN_BG
	iopolGet         = 1      // IOPOL_CMD_GET
	iopolSet         = 2      // IOPOL_CMD_SET
	iopolDisk        = 0      // IOPOL_TYPE_DISK
	iopolThread      = 1      // IOPOL_SCOPE_THREAD
	iopolUtility     = 4      // IOPOL_UTILITY
)

// ioPolicy is struct _iopol_param_t.
type ioPolicy struct{ scope, kind, policy int32 }
