package workload

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"dmgbench/internal/hostio"
	"dmgbench/internal/result"
)

// errStopped is what a file ends with when the step stops for another reason
// than the file itself.
var errStopped = errors.New("stopped")

// step is one write or read step under way.
type step struct {
	vol   Volume
	o     Options
	doing string // "writing" or "reading"
	// open gets one file ready for its span, on the step's own goroutine.
	open func(j *job, mem []byte) error
	// work is the span.
	work func(s *span, j *job)

	items []Item
	l     layout
	stop  atomic.Bool // a file has failed
	out   Outcome
	found tally
	sum   sums
	order int
}

// sums adds up the waves. All are nanoseconds on the step's clock.
type sums struct {
	gate, last         int64 // first gate, newest last done
	timed, first, busy int64 // of all waves: gate to last done, gate to first done, files
	paused             int64
	waves              int
	ringWait, ringTime int64
}

// wave is the jobs that one gate lets go.
type wave struct {
	jobs  []*job
	start chan struct{}
	ready sync.WaitGroup
	done  sync.WaitGroup
	next  atomic.Int64
	left  []int64 // when each worker had nothing more to do
}

// run does the step on a thread of its own and gives what came of it.
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
	if !s.l.dataless { // nothing real is timed there that a collection could disturb
		hostio.Warm(s.o.Workers)
		defer quiet()()
	}
	var all sync.WaitGroup
	all.Go(func() {
		defer ownThread(s.o.QoS)()
		err = s.waves(ctx, buf.Bytes())
	})
	all.Wait()
	s.conclude()
	return s.out, err
}

// ownThread locks the goroutine to a thread of the asked quality of service.
// A thread with a changed priority is not given back: it ends with its goroutine.
func ownThread(qos string) (release func()) {
	runtime.LockOSThread()
	if qos == QoSDefault {
		return runtime.UnlockOSThread
	}
	_ = setThreadQoS(qos) // probed before the step
	return func() {}
}

// waves is worker 0 and, between the waves, everything else.
func (s *step) waves(ctx context.Context, mem []byte) (err error) {
	crew := make(chan *wave)
	var helpers sync.WaitGroup
	for id := 1; id < s.o.Workers; id++ {
		helpers.Go(func() {
			defer ownThread(s.o.QoS)()
			sp := s.newSpan(ctx, mem, id)
			for w := range crew {
				w.ready.Done()
				<-w.start
				s.take(w, sp, id)
				w.done.Done()
			}
		})
	}
	defer helpers.Wait()
	defer close(crew)
	own := s.newSpan(ctx, mem, 0)
	for i, items := range s.l.waves {
		jobs, err := s.prepare(ctx, items, mem)
		if err == nil && i == 0 {
			if err = s.o.Gate.wait(ctx); err != nil {
				err = fmt.Errorf("%s file %q: waiting for the other steps: %w", s.doing, items[0].Name, err)
			}
		}
		if err == nil {
			s.time(jobs, crew, own)
		}
		if e := s.finish(ctx, jobs); err == nil {
			err = e
		}
		if err != nil {
			return err
		}
		tidy()
		s.progress()
	}
	return nil
}

func (s *step) newSpan(ctx context.Context, mem []byte, id int) *span {
	sp := &span{clock: s.o.Clock, call: s.l.call, done: ctx.Done(), stop: &s.stop}
	if s.doing == "reading" && !s.l.dataless {
		each := s.l.memory / int64(s.o.Workers)
		sp.buf = mem[int64(id)*each : int64(id+1)*each]
		sp.call = min(sp.call, each)
	}
	return sp
}

// prepare opens the files of a wave and makes their data. After an error it
// still gives the jobs whose files are open.
func (s *step) prepare(ctx context.Context, items []Item, mem []byte) ([]*job, error) {
	jobs := make([]*job, 0, len(items))
	var used int64
	for _, it := range items {
		j := &job{item: it, order: s.order, asked: s.o.Sync}
		s.order++
		if ctx.Err() != nil {
			return jobs, fmt.Errorf("%s file %q: %w", s.doing, it.Name, context.Cause(ctx))
		}
		cost := int64(0)
		if s.doing == "writing" {
			cost = s.l.cost(it)
		}
		if err := s.open(j, mem[used:used+cost:used+cost]); err != nil {
			return jobs, err
		}
		used += cost
		jobs = append(jobs, j)
	}
	return jobs, nil
}

// time lets the workers loose on one wave.
func (s *step) time(jobs []*job, crew chan<- *wave, own *span) {
	n := min(s.o.Workers, len(jobs))
	w := &wave{jobs: jobs, start: make(chan struct{}), left: make([]int64, s.o.Workers)}
	w.ready.Add(n - 1)
	w.done.Add(n - 1)
	for range n - 1 {
		crew <- w
	}
	w.ready.Wait()
	gate := int64(s.o.Clock.Now())
	for i := range w.left {
		w.left[i] = -1
	}
	flushes := hostio.Flushes()
	close(w.start)
	s.take(w, own, 0)
	w.done.Wait()
	s.out.Flushes += hostio.Flushes() - flushes
	if len(jobs) == 1 && jobs[0].begun {
		gate = jobs[0].start // nobody had to be woken
	}
	s.add(w, gate)
}

// take works off files of the wave until none is left.
func (s *step) take(w *wave, sp *span, id int) {
	for !sp.stopped() {
		i := int(w.next.Add(1)) - 1
		if i >= len(w.jobs) {
			break
		}
		j := w.jobs[i]
		j.begun, j.worker = true, id
		s.work(sp, j)
		if w.left[id] = j.end; j.err != nil {
			s.stop.Store(true)
			break
		}
		j.done = true
	}
}

// add puts a wave's times to the sums.
func (s *step) add(w *wave, gate int64) {
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
		if j.begun {
			m.busy += j.end - j.start
		}
	}
}

// finish closes the files of a wave, keeps the samples of complete ones and
// gives the error of the first that is not.
func (s *step) finish(ctx context.Context, jobs []*job) error {
	var failed error
	for _, j := range jobs {
		s.look(j)
		if err := j.file.Close(); err != nil && j.done {
			j.done, j.err = false, fmt.Errorf("closing: %w", err)
		}
		if j.done {
			s.keep(j)
		} else if failed == nil && j.err != nil && !errors.Is(j.err, errStopped) {
			failed = fmt.Errorf("%s file %q: %w", s.doing, j.item.Name, j.err)
		}
	}
	for _, j := range jobs {
		if failed == nil && !j.done && ctx.Err() != nil {
			failed = fmt.Errorf("%s file %q: %w", s.doing, j.item.Name, context.Cause(ctx))
		}
	}
	return failed
}

// look reads from the open file how its span went, before it is closed.
func (s *step) look(j *job) {
	if j.ring != nil {
		j.ring.close()
		s.sum.ringWait += j.ring.waited.Load()
		s.sum.ringTime += j.end - j.start
	}
	if s.doing == "reading" {
		s.found.saw(cacheAfter(j.found, j.file))
		return
	}
	if !j.done {
		return
	}
	if j.file.Cache() == hostio.CacheDirect {
		s.found.saw(FoundDirect)
	} else {
		s.found.saw(FoundBuffered)
	}
	s.found.flushed(j.synced)
}

func (s *step) keep(j *job) {
	s.out.Bytes += j.item.Size
	s.out.Samples = append(s.out.Samples, result.Sample{
		File: j.item.Name, Bytes: j.item.Size, StartNS: j.start, DurationNS: j.end - j.start,
		Worker: j.worker, Order: j.order, Set: j.item.Set,
	})
}

// progress reports to the caller how far the step is. No clock of the step runs.
func (s *step) progress() {
	if s.o.Progress != nil {
		s.o.Progress(Progress{
			Files: len(s.out.Samples), OfFiles: len(s.items),
			Bytes: s.out.Bytes, OfBytes: Total(s.items), Timed: time.Duration(s.sum.timed),
		})
	}
}

// conclude completes the outcome of the step.
func (s *step) conclude() {
	m := s.sum
	if m.waves > 0 {
		s.out.Span = &result.Span{
			GateNS: m.gate, FirstDoneNS: m.gate + m.first, LastDoneNS: m.gate + m.timed, Bytes: s.out.Bytes,
			BusyNS: m.busy, IdleNS: max(int64(s.o.Workers)*m.timed-m.busy, 0), Waves: m.waves, PausedNS: m.paused,
		}
	}
	s.cacheFound()
	if s.doing == "writing" {
		s.out.Sync = &result.Achieved{Asked: string(s.o.Sync), Achieved: string(s.found.sync(s.o.Sync))}
	}
	s.warnLayout()
	if text := qosNote(s.o.QoS); text != "" {
		s.out.warn("qos", "%s", text)
	}
}

func (s *step) warnLayout() {
	m := s.sum
	if s.l.rings > 0 {
		share := 100 * float64(m.ringWait) / float64(max(m.ringTime, 1))
		s.out.warn("data-ring", "%d of %d files were too large for a quarter of the memory: their data was made while the clock ran"+
			" and written in calls of %d bytes; %.1f%% of their time was spent waiting for it", s.l.rings, len(s.items), s.l.block, share)
	}
	if s.l.tight {
		s.out.warn("block", "a quarter of the memory allows calls of at most %d bytes", s.l.call)
	}
	if s.o.Workers > 1 && m.waves > 1 && m.timed > 0 {
		if tail := 100 * float64(m.timed-m.first) / float64(m.timed); tail >= 10 {
			s.out.warn("waves", "files were timed in %d waves, as memory and open files allow; for %.0f%% of the time some worker was idle",
				m.waves, tail)
		}
	}
	if s.o.Gate != nil && s.doing == "writing" && m.waves > 1 {
		s.out.warn("parallel-data", "data did not fit into memory at once: that of later files was made while other steps were timed")
	}
}

// cacheFound records which cache mode was requested and which was found.
func (s *step) cacheFound() {
	found := s.found.cache()
	hidden := s.o.Virtual && (found == FoundDirect || found == FoundCold)
	if hidden {
		s.out.warn("cache", "the guest saw %q, but a virtual machine's host may cache the same blocks", found)
		found = FoundUnknown
	}
	if n := nocacheMisses(s.items, s.l.call); onMac && !s.l.dataless && s.o.Cache == CacheDirect && found == FoundDirect && n > 0 {
		s.out.warn("cache", "%d of %d files are %s in calls below 16 KiB or at offsets that are not a multiple of 16 KiB: macOS may send these through the cache",
			n, len(s.items), map[bool]string{true: "written", false: "read"}[s.doing == "writing"])
		if s.doing == "writing" {
			hidden, found = true, FoundUnknown
		}
	}
	s.out.Cache = &result.Achieved{Asked: s.o.Cache, Achieved: found}
	if hidden {
		return
	}
	want := map[string]string{CacheDirect: FoundDirect, CacheCold: FoundCold}[s.o.Cache]
	if s.doing == "writing" && s.o.Cache == CacheCold {
		want = ""
	}
	if n := s.found.files(); want != "" && n > 0 && found != want {
		s.out.warn("cache", "%s", cacheMissed(s.o.Cache, found, s.found.seen[found], n))
	}
}

var onMac = runtime.GOOS == "darwin" // tests set it

// nocacheUnit is the least that macOS writes past the cache of a file with F_NOCACHE (MIN_DIRECT_WRITE_SIZE in
// bsd/vfs/vfs_cluster.c of xnu), and a page of Apple silicon, where such a transfer has to start.
const nocacheUnit = 16 << 10

// nocacheMisses counts the files whose calls, all but a last shorter one, macOS may send through the
// cache despite F_NOCACHE.
func nocacheMisses(items []Item, call int64) (n int) {
	for _, it := range items {
		if it.Size > 0 && min(it.Size, call) < nocacheUnit || it.Size > call && call%nocacheUnit != 0 {
			n++
		}
	}
	return n
}

// cacheMissed is the warning about files that were not read or written as requested.
func cacheMissed(asked, found string, missed, of int) string {
	if asked == CacheDirect {
		asked = "uncached"
	}
	if found == FoundUnknown {
		return asked + " I/O requested; whether it took effect is unknown"
	}
	which := fmt.Sprintf("%d of %d files were", missed, of)
	if missed == of {
		which = fmt.Sprintf("all %d files were", of)
	}
	if found == FoundResident {
		found = "still in the page cache"
	}
	return fmt.Sprintf("%s I/O requested, but %s %s", asked, which, found)
}

// tally counts what was found of the files. The worst of them counts for all.
type tally struct {
	seen map[string]int
	weak hostio.SyncMode
}

func (t *tally) saw(what string) {
	if t.seen == nil {
		t.seen = map[string]int{}
	}
	t.seen[what]++
}

func (t *tally) files() (n int) {
	for _, c := range t.seen {
		n += c
	}
	return n
}

// cache gives what weakens the number most of what was seen.
func (t *tally) cache() string {
	for _, what := range []string{FoundUnknown, FoundResident, FoundBuffered, FoundCold, FoundDirect} {
		if t.seen[what] > 0 {
			return what
		}
	}
	return FoundUnknown
}

func (t *tally) flushed(mode hostio.SyncMode) {
	if mode == "" {
		mode = hostio.SyncNone
	}
	if t.weak == "" || depth(mode) < depth(t.weak) {
		t.weak = mode
	}
}

// sync is the weakest flush of all files; without a file it is unknown, "".
func (t *tally) sync(asked hostio.SyncMode) hostio.SyncMode {
	if asked == hostio.SyncNone {
		return hostio.SyncNone
	}
	return t.weak
}

func depth(m hostio.SyncMode) int {
	switch m {
	case hostio.SyncFull:
		return 2
	case hostio.SyncFsync:
		return 1
	}
	return 0
}
