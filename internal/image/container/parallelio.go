package container

import (
	"sync"
	"sync/atomic"
)

// The kernel cuts a transfer to one file into requests and runs them at the
// same time. A transfer over several files, or one that is encrypted piece by
// piece, would run one request after the other and leave the disk idle in
// between. Helper goroutines take pieces of such transfers.
const (
	ioHelpers   = 3       // goroutines in addition to the caller's
	minParallel = 4 << 20 // bytes of a transfer over several bands below which starting helpers does not pay
)

// runPieces calls do(0) … do(n-1) on the caller's goroutine and at most so many
// helpers. do returns how far its piece was completed, counted from the start
// of the whole. After an error no further piece is started, but every piece
// that was started is completed, so that all pieces before the failed one are
// complete. The result is that of the failed piece with the smallest progress.
func runPieces(helpers int, n int64, do func(i int64) (progress int64, err error)) (progress int64, err error) {
	var s struct {
		next   atomic.Int64
		failed atomic.Bool
		group  sync.WaitGroup

		mu       sync.Mutex // of the result
		progress int64
		err      error
	}
	work := func() {
		for !s.failed.Load() {
			i := s.next.Add(1) - 1
			if i >= n {
				return
			}
			progress, err := do(i)
			if err == nil {
				continue
			}
			s.failed.Store(true)
			s.mu.Lock()
			if s.err == nil || progress < s.progress {
				s.progress, s.err = progress, err
			}
			s.mu.Unlock()
		}
	}
	for range min(int64(helpers), n-1) {
		s.group.Go(work)
	}
	work()
	s.group.Wait()
	return s.progress, s.err
}

// inParallel calls do(0) … do(n-1) on up to so many goroutines, starts no
// further call after an error, and returns the error of the lowest number.
func inParallel(workers int, n int64, do func(i int64) error) error {
	_, err := runPieces(workers-1, n, func(i int64) (int64, error) { return i, do(i) })
	return err
}

// inPieces moves p, with pad zeros after it, from off in pieces that end at
// first and at every unit after it. After an error it returns the bytes of p
// that were moved before the first byte that was not.
func inPieces(helpers int, p []byte, off int64, pad int, first, unit int64,
	move func(p []byte, off int64, pad int) (int, error)) (int, error) {
	n := int64(len(p))
	end := off + n + int64(pad)
	moved, err := runPieces(helpers, 1+ceil(max(end-first, 0), unit), func(i int64) (int64, error) {
		from, to := max(off, first+(i-1)*unit), min(first+i*unit, end)
		part := p[min(from-off, n):min(to-off, n)]
		m, err := move(part, from, int(to-from)-len(part))
		return from - off + int64(m), err
	})
	if err != nil {
		return int(min(moved, n)), err
	}
	return len(p), nil
}
