package container

import (
	"fmt"
	"sync/atomic"
)

// stickyError keeps the first error of a flush. The kernel reports a lost write
// once and then forgets it: a later flush that succeeds does not mean that the
// earlier data is on the disk.
type stickyError struct{ first atomic.Pointer[error] }

// get returns the first error, or nil.
func (s *stickyError) get() error {
	if err := s.first.Load(); err != nil {
		return fmt.Errorf("flushing after an earlier flush failed: %w", *err)
	}
	return nil
}

// set keeps err if it is the first, and returns it.
func (s *stickyError) set(err error) error {
	s.first.CompareAndSwap(nil, &err)
	return err
}
