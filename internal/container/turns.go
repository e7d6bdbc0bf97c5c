package container

import "sync"

// turns joins calls that want the same work done: one is at work at a time,
// and those that came while it was share the next. Each caller's work begins
// after its call.
type turns struct {
	mu      sync.Mutex
	running *turn
	next    *turn
}

type turn struct {
	done chan struct{}
	err  error
}

// take returns once work ran from start to end after the call, with its error.
func (t *turns) take(work func() error) error {
	t.mu.Lock()
	mine := t.next
	first := mine == nil
	if first {
		mine = &turn{done: make(chan struct{})}
		t.next = mine
	}
	before := t.running
	t.mu.Unlock()
	if !first {
		<-mine.done
		return mine.err
	}
	if before != nil {
		<-before.done
	}
	t.mu.Lock()
	t.running, t.next = mine, nil
	t.mu.Unlock()
	mine.err = work()
	t.mu.Lock()
	t.running = nil
	t.mu.Unlock()
	close(mine.done)
	return mine.err
}
