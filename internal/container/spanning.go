package container

import (
	"errors"
	"sync"
	"sync/atomic"
)

// A transfer to one file is cut into requests by the kernel, which are all
// under way at once. Cut at the ends of bands it would be one call after the
// other, and the disk idle in between: so calls that span bands are shared
// with helpers.
const (
	spanHelpers = 3       // besides the caller
	spanLeast   = 4 << 20 // bytes below which a helper would come too late
)

// piece is one band's part of a transfer.
type piece func(bd *band, p []byte, in int64) (int, error)

// spanning moves p at off band by band. After an error it gives the bytes that
// were moved before the first byte that was not.
func (b *bundle) spanning(p []byte, off int64, move piece) (int, error) {
	if _, _, n := b.locate(off, int64(len(p))); n == int64(len(p)) || len(p) < spanLeast {
		return b.oneByOne(p, off, move)
	}
	size := b.info.bandSize
	first := off / size
	s := shared{n: (off+int64(len(p))-1)/size - first + 1}
	s.do = func(i int64) (int64, error) {
		at := max((first+i)*size, off)
		i, in, n := b.locate(at, off+int64(len(p))-at)
		m, err := move(b.band(i), p[at-off:][:n], in)
		return at - off + int64(m), err
	}
	// Each helper may hold a band open beyond the limit.
	for range min(spanHelpers, s.n-1, int64(b.open.limit/8)) {
		s.helpers.Go(s.work)
	}
	s.work()
	s.helpers.Wait()
	if s.err != nil {
		return int(s.upto), s.err
	}
	return len(p), nil
}

// WritePadded implements [blockdev.Padder], where data and padding end in the
// same band.
func (b *bundle) WritePadded(p []byte, off int64, pad int) (int, error) {
	end := off + int64(len(p))
	if err := b.change(off, int64(len(p))+int64(pad)); err != nil {
		return 0, err
	}
	defer b.RUnlock()
	if len(p) == 0 || pad < 0 || (end-1)/b.info.bandSize != (end+int64(pad)-1)/b.info.bandSize {
		return 0, errors.ErrUnsupported
	}
	return b.spanning(p, off, func(bd *band, p []byte, in int64) (int, error) {
		if bd.index*b.info.bandSize+in+int64(len(p)) == end {
			return bd.write(b, p, in, pad)
		}
		return bd.write(b, p, in, 0)
	})
}

func (b *bundle) oneByOne(p []byte, off int64, move piece) (done int, err error) {
	for done < len(p) {
		i, in, n := b.locate(off+int64(done), int64(len(p)-done))
		m, err := move(b.band(i), p[done:done+int(n)], in)
		if done += m; err != nil {
			return done, err
		}
	}
	return done, nil
}

// shared is a transfer whose pieces are taken by whoever is free.
type shared struct {
	n       int64
	do      func(i int64) (upto int64, err error)
	next    atomic.Int64
	failed  atomic.Bool
	helpers sync.WaitGroup

	mu   sync.Mutex
	upto int64 // of the failed piece nearest to the start
	err  error
}

func (s *shared) work() {
	// What was taken is done, even after an error: the pieces before the failed
	// one count as moved.
	for !s.failed.Load() {
		i := s.next.Add(1) - 1
		if i >= s.n {
			return
		}
		upto, err := s.do(i)
		if err == nil {
			continue
		}
		s.failed.Store(true)
		s.mu.Lock()
		if s.err == nil || upto < s.upto {
			s.upto, s.err = upto, err
		}
		s.mu.Unlock()
	}
}
