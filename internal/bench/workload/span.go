package workload

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/hostio"
)

// errStopped is the error of a file at which the step stopped for another
// reason than the file itself.
var errStopped = errors.New("stopped")

// span is one worker's view of a step: what it needs from start to stop of a
// file's clock. Its methods do not allocate, lock, log or send.
type span struct {
	clock clock.Clock
	call  int64           // most bytes of one call
	done  <-chan struct{} // closed when the step is cancelled
	stop  *atomic.Bool    // set when another file has failed
	write bool
	buf   []byte // reads: where calls put their bytes
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

// transfer times one file: its calls, and when writing its flush.
func (s *span) transfer(j *job) {
	j.start = int64(s.clock.Now())
	if j.ring != nil {
		j.err = j.ring.drain(j, s)
	} else {
		j.err = s.calls(j)
	}
	if s.write && j.err == nil && j.sync != hostio.SyncNone {
		j.synced, j.err = j.file.Sync(j.sync)
	}
	j.end = int64(s.clock.Now())
}

// calls makes the read or write calls of a file.
func (s *span) calls(j *job) (err error) {
	for off := int64(0); off < j.item.Size; off += s.call {
		if s.stopped() {
			return errStopped
		}
		size, n := min(s.call, j.item.Size-off), 0
		switch {
		case j.skipper != nil:
			err = j.skipper.Skip(s.write, off, size)
		case s.write:
			n, err = j.file.WriteAt(j.buf[off:off+size], off)
			err = checkWrite(n, size, err)
		default:
			n, err = j.file.ReadAt(s.buf[:size], off)
			err = checkRead(n, size, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkWrite is the error of a call that wrote n bytes instead of want.
func checkWrite(n int, want int64, err error) error {
	if err == nil && int64(n) < want {
		err = io.ErrShortWrite
	}
	return err
}

// checkRead is the error of a call that read n bytes instead of want. The end
// of the file before that is [io.ErrUnexpectedEOF].
func checkRead(n int, want int64, err error) error {
	switch {
	case int64(n) == want:
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
	closed      sync.Once
	filler      sync.WaitGroup
	waited      atomic.Int64 // ns that the writer waited for data
}

// newRing starts filling mem, which is divided into blocks, with the file's
// data. It returns when every block is full or the file ends.
func newRing(d *Data, it Item, mem []byte, block int) *ring {
	n := len(mem) / block
	r := &ring{full: make(chan []byte, n), empty: make(chan []byte, n), quit: make(chan struct{})}
	key, off := KeyOf(it.Name), int64(0)
	fill := func(b []byte) (more bool) {
		b = b[:min(int64(block), it.Size-off)]
		if len(b) > 0 {
			d.FillAt(b, key, off)
			off += int64(len(b))
			r.full <- b
		}
		return off < it.Size
	}
	more := it.Size > 0
	for i := 0; i < n && more; i++ {
		more = fill(mem[i*block : (i+1)*block : (i+1)*block])
	}
	if !more {
		return r
	}
	r.filler.Go(func() {
		for {
			select {
			case b := <-r.empty:
				if !fill(b[:block]) {
					return
				}
			case <-r.quit:
				return
			}
		}
	})
	return r
}

// drain writes the file from the ring. The wait for data is inside the file's
// span: a rest for the disk that no clock measures would make it look faster.
func (r *ring) drain(j *job, s *span) error {
	for off := int64(0); off < j.item.Size; {
		if s.stopped() {
			return errStopped
		}
		var b []byte
		select {
		case b = <-r.full:
		default:
			from := s.clock.Now()
			b = <-r.full
			r.waited.Add(int64(s.clock.Now() - from))
		}
		n, err := j.file.WriteAt(b, off)
		if err = checkWrite(n, int64(len(b)), err); err != nil {
			return err
		}
		off += int64(len(b))
		r.empty <- b
	}
	return nil
}

// close ends the filling thread, whether or not the file was written.
func (r *ring) close() {
	r.closed.Do(func() { close(r.quit) })
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

// newGates are the n parts of one start, one for each step.
func newGates(n int) []*Gate {
	b := &barrier{parties: n, open: make(chan struct{})}
	b.missing.Store(int64(n))
	gates := make([]*Gate, n)
	for i := range gates {
		gates[i] = &Gate{shared: b}
	}
	return gates
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
	gates, errs := newGates(len(steps)), make([]error, len(steps))
	var wg sync.WaitGroup
	for i, step := range steps {
		wg.Go(func() {
			defer gates[i].Leave()
			errs[i] = step(ctx, gates[i])
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
