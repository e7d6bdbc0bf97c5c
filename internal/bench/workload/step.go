package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
)

// Outcome is what a step did. After an error it contains what was complete
// before it.
type Outcome struct {
	Samples []result.Sample // in the order of the items
	Span    *result.Span    // nil if no file was timed
	Cache   *result.Achieved
	Sync    *result.Achieved
	QoS     *result.Achieved // of the workers' threads; nil: the default, as asked
	Stream  *result.Stream
	// Operations by kind, and when they ran; nil where no single operation was
	// timed.
	Operations     []result.Operations
	OperationsSpan *result.OperationsSpan

	Findings []string // of Verify, none means that every byte is right
	Lost     int      // of Verify: files that are missing or unreadable
	Damaged  int      // of Verify: files of another size or with other bytes
	Warnings []result.Warning
	Bytes    int64 // bytes of complete files
	Written  int64 // of EditFiles: bytes that were written, those that only moved included
	Flushes  int64 // calls of this process that flushed a file or folder of the host while files were timed
}

// warn adds a warning.
func (o *Outcome) warn(kind, format string, args ...any) {
	o.Warnings = append(o.Warnings, result.Warning{Kind: kind, Text: fmt.Sprintf(format, args...)})
}

// step is one write or read step that is being executed.
type step struct {
	vol   Volume
	o     Options
	write bool   // else it reads
	doing string // in errors and warnings

	items  []Item
	l      layout
	opened int         // files so far
	stop   atomic.Bool // a file has failed
	out    Outcome
	found  map[string]int  // files by Found constant
	synced hostio.SyncMode // weakest flush of a file

}

// wave is the jobs that one gate starts.
type wave struct {
	jobs  []*job
	start chan struct{} // closed when the gate opens
	ready sync.WaitGroup
	done  sync.WaitGroup
	next  atomic.Int64 // job that the next free worker takes
}

// fail names the step and the file in an error.
func (s *step) fail(it Item, err error) error {
	return fmt.Errorf("%s file %q: %w", s.doing, it.Name, err)
}

// run executes the step on a thread of its own.
func (s *step) run(ctx context.Context) (Outcome, error) {
	if len(s.items) == 0 {
		return s.out, ctx.Err()
	}
	s.found = map[string]int{}
	mem, free, err := s.o.memory(s.l.memory)
	if err != nil {
		return s.out, err
	}
	defer free()
	if !s.l.dataless { // a simulated time cannot be disturbed by a collection
		defer pauseGC(s.o.Workers)()
	}
	var all sync.WaitGroup
	all.Go(func() {
		var release func()
		release, err = lockThread(s.o.QoS)
		defer release()
		s.out.QoS = achievedQoS(s.o.QoS)
		if err == nil {
			err = s.runWaves(ctx, mem)
		}
	})
	all.Wait()
	s.finishOutcome()
	return s.out, err
}

// runWaves is worker 0, and prepares and finishes each wave.
func (s *step) runWaves(ctx context.Context, mem []byte) (err error) {
	for i, items := range s.l.waves {
		jobs, err := s.prepare(ctx, items, mem)
		if err == nil && i == 0 {
			if err = s.o.Gate.wait(ctx); err != nil {
				err = s.fail(items[0], fmt.Errorf("waiting for the other steps: %w", err))
			}
		}
		if err == nil {
			s.timeWave(ctx, jobs, mem)
		}
		if e := s.finishWave(ctx, jobs); err == nil {
			err = e
		}
		if err != nil {
			return err
		}
		collectGarbage()
		if s.o.Progress != nil {
			s.o.Progress(Progress{
				Files: len(s.out.Samples), OfFiles: len(s.items), Bytes: s.out.Bytes, OfBytes: Total(s.items),
				Timed: time.Duration(s.out.Span.LastDoneNS - s.out.Span.GateNS),
			})
		}
	}
	return nil
}

// newSpan is the view of one worker. When reading, it has its own part of the
// memory.
func (s *step) newSpan(ctx context.Context, mem []byte, id int) *span {
	sp := &span{clock: s.o.Clock, most: s.l.call, done: ctx.Done(), stop: &s.stop, write: s.write}
	if !s.write && !s.l.dataless {
		each := s.l.memory / int64(s.o.Workers)
		sp.buf = mem[int64(id)*each : int64(id+1)*each]
		sp.most = min(sp.most, each)
	}
	return sp
}

// prepare opens the files of a wave and makes their data in mem. After an error
// it still returns the jobs of files that are open.
func (s *step) prepare(ctx context.Context, items []Item, mem []byte) ([]*job, error) {
	jobs := make([]*job, 0, len(items))
	for _, it := range items {
		j := &job{item: it, order: s.opened, sync: s.o.Sync, synced: hostio.SyncNone}
		s.opened++
		err := context.Cause(ctx)
		if err == nil {
			err = s.openFile(j)
		}
		if err != nil {
			return jobs, s.fail(it, err)
		}
		jobs = append(jobs, j)
		switch {
		case s.l.dataless:
			j.skipper = j.file.(Skipper)
		case s.write && it.Size > s.l.whole:
			j.ring = newRing(s.o.Data, it, mem[:s.l.cost(it)], s.l.block)
			mem = mem[s.l.cost(it):]
		case s.write:
			j.buf = mem[:it.Size]
			s.o.Data.fillParallel(j.buf, it.dataKey())
			mem = mem[s.l.cost(it):]
		}
	}
	return jobs, nil
}

// openFile opens the file of a job before the clock starts: a new file, or one
// to read, which it evicts as far as requested and looks up in the page cache.
func (s *step) openFile(j *job) (err error) {
	o := s.o.fileOptions(j.order % s.o.Workers)
	if s.write {
		if j.file, err = s.vol.Create(j.item.Name, j.item.Size, o); err != nil {
			return fmt.Errorf("creating: %w", err)
		}
		return nil
	}
	if j.file, err = s.vol.Open(j.item.Name, o); err != nil {
		return fmt.Errorf("opening: %w", err)
	}
	if err := s.evict(j.file); err != nil {
		return errors.Join(err, j.file.Close())
	}
	j.found = cacheBefore(j.file)
	return nil
}

// evict evicts an open file that is not to be found in the page cache, as far as
// the volume can.
func (s *step) evict(f File) error {
	if s.o.Cache == CacheBuffered {
		return nil
	}
	err := f.Evict()
	if err == nil || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, ErrUnknown) {
		return nil
	}
	return fmt.Errorf("evicting: %w", err)
}

// timeWave starts the workers on one wave, waits for them and adds their times
// to the span of the step.
func (s *step) timeWave(ctx context.Context, jobs []*job, mem []byte) {
	w := &wave{jobs: jobs, start: make(chan struct{})}
	for id := 1; id < min(s.o.Workers, len(jobs)); id++ {
		w.ready.Add(1)
		w.done.Go(func() {
			release, _ := lockThread(s.o.QoS) // as in worker 0
			defer release()
			sp := s.newSpan(ctx, mem, id)
			w.ready.Done()
			<-w.start
			w.work(sp, id)
		})
	}
	own := s.newSpan(ctx, mem, 0)
	w.ready.Wait()
	gate, flushes := int64(s.o.Clock.Now()), hostio.Flushes()
	close(w.start)
	w.work(own, 0)
	w.done.Wait()
	s.out.Flushes += hostio.Flushes() - flushes
	// With one file the span is exactly that of its sample.
	if len(jobs) == 1 && jobs[0].started {
		gate = jobs[0].start // no other worker had to be woken
	}
	if s.out.Span == nil {
		s.out.Span = &result.Span{GateNS: gate, FirstDoneNS: gate, LastDoneNS: gate}
	}
	sp := s.out.Span
	sp.Waves++
	sp.PausedNS = gate - sp.LastDoneNS // so far, LastDoneNS has no pauses
	left := make([]int64, s.o.Workers) // when each worker ran out of jobs
	for _, j := range jobs {
		if j.started {
			sp.BusyNS += j.end - j.start
			left[j.worker] = max(left[j.worker], j.end)
		}
	}
	// A worker that had no job leaves no time.
	left = slices.DeleteFunc(left, func(end int64) bool { return end == 0 })
	if len(left) > 0 {
		sp.FirstDoneNS += slices.Min(left) - gate
		sp.LastDoneNS += slices.Max(left) - gate
	}
}

// work transfers files of the wave until none is left.
func (w *wave) work(sp *span, id int) {
	for !sp.stopped() {
		i := int(w.next.Add(1)) - 1
		if i >= len(w.jobs) {
			return
		}
		j := w.jobs[i]
		j.started, j.worker = true, id
		if sp.transfer(j); j.err != nil {
			sp.stop.Store(true)
			return
		}
		j.done = true
	}
}

// finishWave finds out from the open files of a wave how they were transferred,
// closes them, adds the samples of complete ones, and returns the error of the
// first that is not. A cancelled step reports the cause.
func (s *step) finishWave(ctx context.Context, jobs []*job) (failed error) {
	for _, j := range jobs {
		if j.ring != nil {
			j.ring.close()
		}
		if !s.write {
			s.found[cacheAfter(j.found, j.file)]++
		} else if j.done {
			s.found[string(j.file.Cache())]++ // direct or buffered, as FoundDirect and FoundBuffered
			s.recordSync(j.synced)
		}
		if err := j.file.Close(); err != nil && j.done {
			j.done, j.err = false, fmt.Errorf("closing: %w", err)
		}
		if j.done {
			s.out.Bytes += j.item.Size
			s.out.Samples = append(s.out.Samples, result.Sample{
				File: j.item.Name, Bytes: j.item.Size, StartNS: j.start, DurationNS: j.end - j.start,
				Worker: j.worker, Order: j.order, Set: j.item.Set,
			})
			continue
		}
		if j.err == nil || errors.Is(j.err, errStopped) {
			j.err = context.Cause(ctx)
		}
		if failed == nil && j.err != nil {
			failed = s.fail(j.item, j.err)
		}
	}
	return failed
}

// recordSync keeps the weakest flush.
func (s *step) recordSync(mode hostio.SyncMode) {
	if s.synced == "" || slices.Index(syncByWeakness, mode) < slices.Index(syncByWeakness, s.synced) {
		s.synced = mode
	}
}

// waveTail is the share of the timed span, in percent, from which on idle
// workers at the ends of waves are a warning.
const waveTail = 10

// finishOutcome fills in what is known after the last wave, with warnings about
// effects of the layout on the numbers.
func (s *step) finishOutcome() {
	s.recordCache()
	if s.write {
		s.out.Sync = &result.Achieved{Asked: string(s.o.Sync), Achieved: string(s.synced)}
	}
	sp := cmp.Or(s.out.Span, &result.Span{}) // nil if no file was timed
	timed := sp.LastDoneNS - sp.GateNS
	sp.Bytes, sp.IdleNS = s.out.Bytes, max(int64(s.o.Workers)*timed-sp.BusyNS, 0)
	tail := 100 * float64(sp.LastDoneNS-sp.FirstDoneNS) / float64(max(timed, 1))
	warn := func(when bool, kind, format string, args ...any) {
		if when {
			s.out.warn(kind, format, args...)
		}
	}
	warn(s.l.rings > 0, "data-ring", "%d of %d files were too large for a quarter of the memory: their data was made "+
		"while the clock ran and written in calls of %d bytes", s.l.rings, len(s.items), s.l.block)
	warn(s.l.limited, "block", "a quarter of the memory allows calls of at most %d bytes", s.l.call)
	warn(s.o.Workers > 1 && sp.Waves > 1 && tail >= waveTail, "waves", "files were timed in %d waves, as memory and "+
		"open files allow; for %.0f%% of the time some worker was idle", sp.Waves, tail)
	warn(s.o.Gate != nil && s.write && sp.Waves > 1, "parallel-data", "data did not fit into memory at once: that of "+
		"later files was made while other steps were timed")
	warn(s.o.QoS != QoSDefault && qosNote != "", "qos", qosNote)
}

// recordCache records the requested and the achieved cache mode, with a warning
// about their difference.
func (s *step) recordCache() {
	// The weakest of the files counts for all.
	weakest := slices.IndexFunc(foundByWeakness, func(found string) bool { return s.found[found] > 0 })
	found, requested, misses, total := foundByWeakness[max(weakest, 0)], s.o.Cache, 0, 0
	for _, n := range s.found {
		total += n
	}
	if onMac && !s.l.dataless && requested == CacheDirect && found == FoundDirect {
		misses = nocacheMisses(s.items, s.l.call)
	}
	want := map[string]string{CacheDirect: FoundDirect, CacheCold: FoundCold}[requested]
	if requested == CacheDirect {
		requested = "uncached"
	}
	switch {
	case s.o.Virtual && (found == FoundDirect || found == FoundCold):
		s.out.warn("cache", "the guest saw %q, but a virtual machine's host may cache the same blocks", found)
		found = FoundUnknown
	case misses > 0:
		s.out.warn("cache", "%s %d of %d files in calls below 16 KiB or at offsets that are not a multiple of 16 KiB: "+
			"macOS may send these through the cache", s.doing, misses, len(s.items))
		if s.write {
			found = FoundUnknown
		}
	case want == "" || found == want || total == 0 || s.write && requested == CacheCold:
	case found == FoundUnknown:
		s.out.warn("cache", "%s I/O requested; whether it took effect is unknown", requested)
	default:
		s.out.warn("cache", "%s I/O requested, but %d of %d files were %s", requested, s.found[found], total, found)
	}
	s.out.Cache = &result.Achieved{Asked: s.o.Cache, Achieved: found}
}

var onMac = runtime.GOOS == "darwin" // tests set it

// nocacheUnit is the smallest write in bytes that macOS sends past the cache of
// a file with F_NOCACHE (MIN_DIRECT_WRITE_SIZE in bsd/vfs/vfs_cluster.c of
// xnu), and a page of Apple silicon, where such a transfer has to start.
const nocacheUnit = 16 << 10

// nocacheMisses counts the files with calls, all but a last shorter one, that
// macOS may send through the cache despite F_NOCACHE.
func nocacheMisses(items []Item, call int64) (n int) {
	for _, it := range items {
		if it.Size > 0 && min(it.Size, call) < nocacheUnit || it.Size > call && call%nocacheUnit != 0 {
			n++
		}
	}
	return n
}
