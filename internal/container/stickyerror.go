package container

import (
	"fmt"
	"sync"
)

// stickyError keeps the first error of a flush. The kernel reports a lost write
// once and then forgets it: a later flush that succeeds does not mean that the
// earlier data is on the disk.
type stickyError struct {
	mu  sync.Mutex
	err error
}

// get returns the first error, or nil.
func (s *stickyError) get() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		return nil
	}
	return fmt.Errorf("flushing after an earlier flush failed: %w", s.err)
}

// set keeps err if it is the first, and returns it.
func (s *stickyError) set(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	return err
}
