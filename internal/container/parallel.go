package container

import (
	"sync"
	"sync/atomic"
)

// inParallel runs do(0) … do(n-1) on up to workers goroutines, the caller's
// among them, stops handing out after an error, and returns the error of the
// lowest number.
func inParallel(workers int, n int64, do func(i int64) error) error {
	if n == 1 {
		return do(0)
	}
	var next atomic.Int64
	var failed atomic.Bool
	var mu sync.Mutex
	var first error
	at := n
	work := func() {
		for i := next.Add(1) - 1; i < n && !failed.Load(); i = next.Add(1) - 1 {
			if err := do(i); err != nil {
				failed.Store(true)
				mu.Lock()
				if i < at {
					at, first = i, err
				}
				mu.Unlock()
			}
		}
	}
	var helpers sync.WaitGroup
	for range min(int64(workers), n) - 1 {
		helpers.Go(work)
	}
	work()
	helpers.Wait()
	return first
}
