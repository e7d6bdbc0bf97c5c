package workload

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
)

// step is one write or read step that is being executed.
type step struct {
	vol   Volume
	o     Options
	write bool // else it reads

	items    []Item
	l        layout
	opened   int         // files so far
	stop     atomic.Bool // a file has failed
	out      Outcome
	achieved achieved
	sum      sums
}

// doing names the step in errors and warnings.
func (s *step) doing() string {
	if s.write {
		return "writing"
	}
	return "reading"
}

// sums adds up the waves. All times are nanoseconds on the step's clock.
type sums struct {
	gate, last         int64 // first gate, newest last done
	timed, first, busy int64 // of all waves: gate to last done, gate to first done, files
	paused             int64 // between waves
	waves              int
	ringWait, ringTime int64 // of files with a ring: waiting for data, and in all
}

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

// wave is the jobs that one gate starts.
type wave struct {
	jobs  []*job
	start chan struct{} // closed when the gate opens
	ready sync.WaitGroup
	done  sync.WaitGroup
	next  atomic.Int64 // job that the next free worker takes
	left  []int64      // when each worker ran out of jobs, -1 without a job
}

// run executes the step on a thread of its own.
func (s *step) run(ctx context.Context) (Outcome, error) {
	if len(s.items) == 0 {
		return s.out, ctx.Err()
	}
	var err error
	if s.out.QoS, err = probeQoS(s.o.QoS); err != nil {
		return s.out, err
	}
	pool := s.o.Buffers
	if pool == nil {
		pool = &Buffers{}
		defer pool.Free()
	}
	buf, err := pool.get(s.l.memory)
	if err != nil {
		return s.out, err
	}
	defer pool.put(buf)
	if !s.l.dataless { // a simulated time cannot be disturbed by a collection
		hostio.Warm(s.o.Workers)
		defer pauseGC()()
	}
	var all sync.WaitGroup
	all.Go(func() {
		defer lockThread(s.o.QoS)()
		err = s.runWaves(ctx, buf.Bytes())
	})
	all.Wait()
	s.finishOutcome()
	return s.out, err
}

// lockThread locks the goroutine to a thread of the requested quality of
// service. A thread with a changed priority is not unlocked: it ends with its
// goroutine.
func lockThread(qos string) (release func()) {
	runtime.LockOSThread()
	if qos == QoSDefault {
		return runtime.UnlockOSThread
	}
	_ = setThreadQoS(qos) // probed before the step
	return func() {}
}

// runWaves is worker 0, and prepares and finishes each wave.
func (s *step) runWaves(ctx context.Context, mem []byte) (err error) {
	waves := make(chan *wave)
	var helpers sync.WaitGroup
	for id := 1; id < s.o.Workers; id++ {
		helpers.Go(func() {
			defer lockThread(s.o.QoS)()
			sp := s.newSpan(ctx, mem, id)
			for w := range waves {
				w.ready.Done()
				<-w.start
				s.work(w, sp, id)
				w.done.Done()
			}
		})
	}
	defer helpers.Wait()
	defer close(waves)
	own := s.newSpan(ctx, mem, 0)
	for i, items := range s.l.waves {
		jobs, err := s.prepare(ctx, items, mem)
		if err == nil && i == 0 {
			if err = s.o.Gate.wait(ctx); err != nil {
				err = fmt.Errorf("%s file %q: waiting for the other steps: %w", s.doing(), items[0].Name, err)
			}
		}
		if err == nil {
			s.timeWave(jobs, waves, own)
		}
		if e := s.finishWave(ctx, jobs); err == nil {
			err = e
		}
		if err != nil {
			return err
		}
		collectGarbage()
		s.reportProgress()
	}
	return nil
}

// newSpan is the view of one worker. When reading, it has its own part of the
// memory.
func (s *step) newSpan(ctx context.Context, mem []byte, id int) *span {
	sp := &span{clock: s.o.Clock, call: s.l.call, done: ctx.Done(), stop: &s.stop, write: s.write}
	if !s.write && !s.l.dataless {
		each := s.l.memory / int64(s.o.Workers)
		sp.buf = mem[int64(id)*each : int64(id+1)*each]
		sp.call = min(sp.call, each)
	}
	return sp
}

// prepare opens the files of a wave and makes their data. After an error it
// still returns the jobs of files that are open.
func (s *step) prepare(ctx context.Context, items []Item, mem []byte) ([]*job, error) {
	jobs := make([]*job, 0, len(items))
	var used int64
	for _, it := range items {
		j := &job{item: it, order: s.opened, sync: s.o.Sync}
		s.opened++
		if ctx.Err() != nil {
			return jobs, fmt.Errorf("%s file %q: %w", s.doing(), it.Name, context.Cause(ctx))
		}
		cost := int64(0)
		if s.write {
			cost = s.l.cost(it)
		}
		if err := s.openJob(j, mem[used:used+cost:used+cost]); err != nil {
			return jobs, err
		}
		used += cost
		jobs = append(jobs, j)
	}
	return jobs, nil
}

// timeWave starts the workers on one wave and waits for them.
func (s *step) timeWave(jobs []*job, waves chan<- *wave, own *span) {
	n := min(s.o.Workers, len(jobs))
	w := &wave{jobs: jobs, start: make(chan struct{}), left: make([]int64, s.o.Workers)}
	w.ready.Add(n - 1)
	w.done.Add(n - 1)
	for range n - 1 {
		waves <- w
	}
	w.ready.Wait()
	gate := int64(s.o.Clock.Now())
	for i := range w.left {
		w.left[i] = -1
	}
	flushes := hostio.Flushes()
	close(w.start)
	s.work(w, own, 0)
	w.done.Wait()
	s.out.Flushes += hostio.Flushes() - flushes
	// With one file the span is exactly that of its sample.
	if len(jobs) == 1 && jobs[0].started {
		gate = jobs[0].start // no other worker had to be woken
	}
	s.addWave(w, gate)
}

// work transfers files of the wave until none is left.
func (s *step) work(w *wave, sp *span, id int) {
	for !sp.stopped() {
		i := int(w.next.Add(1)) - 1
		if i >= len(w.jobs) {
			break
		}
		j := w.jobs[i]
		j.started, j.worker = true, id
		sp.transfer(j)
		if w.left[id] = j.end; j.err != nil {
			s.stop.Store(true)
			break
		}
		j.done = true
	}
}

// addWave adds a wave's times to the sums.
func (s *step) addWave(w *wave, gate int64) {
	last, first := gate, int64(-1)
	for _, t := range w.left {
		last = max(last, t)
		if t >= 0 && (first < 0 || t < first) {
			first = t
		}
	}
	m := &s.sum
	if m.waves == 0 {
		m.gate = gate
	} else {
		m.paused += gate - m.last
	}
	m.last, m.waves = last, m.waves+1
	m.timed += last - gate
	m.first += max(first-gate, 0)
	for _, j := range w.jobs {
		if j.started {
			m.busy += j.end - j.start
		}
	}
}

// finishWave closes the files of a wave, adds the samples of complete ones, and
// returns the error of the first that is not.
func (s *step) finishWave(ctx context.Context, jobs []*job) error {
	var failed error
	for _, j := range jobs {
		s.examine(j)
		if err := j.file.Close(); err != nil && j.done {
			j.done, j.err = false, fmt.Errorf("closing: %w", err)
		}
		if j.done {
			s.out.Bytes += j.item.Size
			s.out.Samples = append(s.out.Samples, result.Sample{
				File: j.item.Name, Bytes: j.item.Size, StartNS: j.start, DurationNS: j.end - j.start,
				Worker: j.worker, Order: j.order, Set: j.item.Set,
			})
		} else if failed == nil && j.err != nil && !errors.Is(j.err, errStopped) {
			failed = fmt.Errorf("%s file %q: %w", s.doing(), j.item.Name, j.err)
		}
	}
	// A cancelled step reports the cause, not the file at which it stopped.
	for _, j := range jobs {
		if failed == nil && !j.done && ctx.Err() != nil {
			failed = fmt.Errorf("%s file %q: %w", s.doing(), j.item.Name, context.Cause(ctx))
		}
	}
	return failed
}

// examine finds out from the open file how it was transferred, before it is
// closed.
func (s *step) examine(j *job) {
	if j.ring != nil {
		j.ring.close()
		s.sum.ringWait += j.ring.waited.Load()
		s.sum.ringTime += j.end - j.start
	}
	switch {
	case !s.write:
		s.achieved.addCache(cacheAfter(j.found, j.file))
		return
	case !j.done:
		return
	case j.file.Cache() == hostio.CacheDirect:
		s.achieved.addCache(FoundDirect)
	default:
		s.achieved.addCache(FoundBuffered)
	}
	s.achieved.addSync(j.synced)
}

// reportProgress calls the hook of the options. No clock of the step runs.
func (s *step) reportProgress() {
	if s.o.Progress != nil {
		s.o.Progress(Progress{
			Files: len(s.out.Samples), OfFiles: len(s.items),
			Bytes: s.out.Bytes, OfBytes: Total(s.items), Timed: time.Duration(s.sum.timed),
		})
	}
}

// finishOutcome fills in what is known after the last wave.
func (s *step) finishOutcome() {
	m := s.sum
	if m.waves > 0 {
		s.out.Span = &result.Span{
			GateNS: m.gate, FirstDoneNS: m.gate + m.first, LastDoneNS: m.gate + m.timed, Bytes: s.out.Bytes,
			BusyNS: m.busy, IdleNS: max(int64(s.o.Workers)*m.timed-m.busy, 0), Waves: m.waves, PausedNS: m.paused,
		}
	}
	s.recordCache()
	if s.write {
		s.out.Sync = s.achieved.sync(s.o.Sync)
	}
	s.warnLayout()
	if text := qosNote(s.o.QoS); text != "" {
		s.out.warn("qos", "%s", text)
	}
}

// waveTail is the share of the timed span, in percent, from which on idle
// workers at the ends of waves are a warning.
const waveTail = 10

// warnLayout adds warnings about effects of the layout on the numbers.
func (s *step) warnLayout() {
	m := s.sum
	if s.l.rings > 0 {
		share := 100 * float64(m.ringWait) / float64(max(m.ringTime, 1))
		s.out.warn("data-ring", "%d of %d files were too large for a quarter of the memory: their data was made while "+
			"the clock ran and written in calls of %d bytes; %.1f%% of their time was spent waiting for it",
			s.l.rings, len(s.items), s.l.block, share)
	}
	if s.l.limited {
		s.out.warn("block", "a quarter of the memory allows calls of at most %d bytes", s.l.call)
	}
	if s.o.Workers > 1 && m.waves > 1 && m.timed > 0 {
		if tail := 100 * float64(m.timed-m.first) / float64(m.timed); tail >= waveTail {
			s.out.warn("waves", "files were timed in %d waves, as memory and open files allow; for %.0f%% of the time "+
				"some worker was idle", m.waves, tail)
		}
	}
	if s.o.Gate != nil && s.write && m.waves > 1 {
		s.out.warn("parallel-data", "data did not fit into memory at once: that of later files was made while other "+
			"steps were timed")
	}
}
