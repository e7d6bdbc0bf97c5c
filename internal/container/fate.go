package container

import (
	"fmt"
	"sync"
)

// fate remembers the first flush that failed. The kernel reports a lost write
// once and then forgets it: an image that flushed "successfully" afterwards
// would be a lie.
type fate struct {
	mu  sync.Mutex
	err error
}

func (f *fate) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		return nil
	}
	return fmt.Errorf("flushing after an earlier flush failed: %w", f.err)
}

func (f *fate) set(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
	return err
}
