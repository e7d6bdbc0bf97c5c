package container

import "sync"

// coalescer merges concurrent calls for the same work: one call runs, and all
// calls that arrive while it runs share the next one. The work of each caller
// starts after its call.
type coalescer struct {
	mu            sync.Mutex
	running, next *sharedCall
}

// sharedCall is one run of the work and its result.
type sharedCall struct {
	done chan struct{}
	err  error
}

// do returns when work has run from start to end after the call, with its
// error.
func (c *coalescer) do(work func() error) error {
	c.mu.Lock()
	call := c.next
	first := call == nil
	if first {
		call = &sharedCall{done: make(chan struct{})}
		c.next = call
	}
	before := c.running
	c.mu.Unlock()
	if !first {
		<-call.done
		return call.err
	}
	if before != nil {
		<-before.done
	}
	c.mu.Lock()
	c.running, c.next = call, nil
	c.mu.Unlock()
	call.err = work()
	c.mu.Lock()
	c.running = nil
	c.mu.Unlock()
	close(call.done)
	return call.err
}
