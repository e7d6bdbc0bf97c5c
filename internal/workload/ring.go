package workload

import (
	"sync"
	"sync/atomic"
)

// ring feeds one file that memory cannot hold: a thread of its own fills
// blocks ahead of the worker that writes them.
type ring struct {
	full, empty chan []byte
	quit        chan struct{}
	closed      sync.Once
	filler      sync.WaitGroup
	waited      atomic.Int64 // ns that the writer stood waiting for data
}

// newRing starts filling mem, which is divided into blocks, with the file's data
// and returns when every block is full or the file ends.
func newRing(d *Data, it Item, mem []byte, block int) *ring {
	n := len(mem) / block
	r := &ring{full: make(chan []byte, n), empty: make(chan []byte, n), quit: make(chan struct{})}
	key, off := KeyOf(it.Name), int64(0)
	fill := func(b []byte) bool {
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
	if more {
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
	}
	return r
}

// drain writes the file from the ring. Waiting for data is inside the file's
// span: a rest for the disk that no clock saw would flatter it.
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
		if err := put(j.file, b, off); err != nil {
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
