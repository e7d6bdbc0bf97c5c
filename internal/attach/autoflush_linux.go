package attach

import (
	"sync"
	"time"

	"dmgbench/internal/exfat"
)

// flushDelay is how long a change may wait until it is flushed. It is the
// interval of ext4's journal commits.
const flushDelay = 5 * time.Second

// autoFlush flushes a served volume at most flushDelay after a change, unless
// fsync has flushed it before. The kernel passes neither sync(2) nor syncfs(2)
// to an ordinary FUSE mount. No timer runs while all changes are flushed.
type autoFlush struct {
	volume *exfat.Volume
	fails  *failures
	// after is time.AfterFunc, or that of a test.
	after func(d time.Duration, f func()) (stop func() bool)

	// flushing is held during a flush; it is locked before mu.
	flushing sync.Mutex
	mu       sync.Mutex
	// stop is that of the timer; nil when none is set.
	stop   func() bool
	closed bool
	// failed means that the last flush failed.
	failed bool
}

// newAutoFlush returns one without a timer.
func newAutoFlush(v *exfat.Volume, fails *failures) *autoFlush {
	after := func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	return &autoFlush{volume: v, fails: fails, after: after}
}

// changed sets the timer if the volume has changed since it was flushed. Every
// operation that may change it calls this at its end.
func (a *autoFlush) changed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stop == nil && !a.closed && a.volume.Unsaved() {
		a.stop = a.after(flushDelay, a.flush)
	}
}

// flushed stops the timer if an fsync has flushed all there was: the next
// change has the full delay before it, so that who writes and flushes one file
// after the other is not disturbed.
func (a *autoFlush) flushed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stop != nil && !a.volume.Unsaved() {
		a.stop()
		a.stop = nil
	}
}

// flush is what the timer calls. After a failure it tries again; of failures in
// a row the first is kept.
func (a *autoFlush) flush() {
	a.flushing.Lock()
	defer a.flushing.Unlock()
	a.mu.Lock()
	a.stop = nil
	idle := a.closed || !a.volume.Unsaved()
	a.mu.Unlock()
	if idle {
		return
	}
	err := a.volume.Sync()
	if err != nil && !a.failed {
		a.fails.add("flushing", err)
	}
	a.failed = err != nil
	a.changed()
}

// close stops the timer and waits for a flush that is under way.
func (a *autoFlush) close() {
	a.mu.Lock()
	a.closed = true
	if a.stop != nil {
		a.stop()
		a.stop = nil
	}
	a.mu.Unlock()
	a.flushing.Lock()
	defer a.flushing.Unlock()
}
