package host

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Suspended is for how long this process could not run: the machine slept, or since
// the first call the process was stopped by a signal, frozen with its control
// group, or on a virtual machine that was paused. Only the difference of two calls
// has a meaning.
func Suspended() (time.Duration, error) {
	stopped := stops().total()
	slept, err := slept()
	return slept + stopped, err
}

// A thread of its own sleeps for a beat at a time. What it oversleeps by leastStop
// or more is time in which the process did not run, unless the thread waited for
// a processor.
const (
	beat      = 100 * time.Millisecond
	leastStop = 200 * time.Millisecond
)

// stopWatch is what the thread has seen.
type stopWatch struct {
	origin  time.Time
	last    atomic.Int64 // beat, in ns since the origin
	stopped atomic.Int64 // ns
}

var stops = sync.OnceValue(func() *stopWatch {
	w := &stopWatch{origin: time.Now()}
	go w.watch()
	return w
})

// watch never ends: the thread costs 5 µs ten times a second.
func (w *stopWatch) watch() {
	runtime.LockOSThread()
	waited := runDelay()
	before := waited()
	for {
		_, _ = unix.Poll(nil, int(beat.Milliseconds())) // ends early at a signal
		now, delay := int64(time.Since(w.origin)), waited()
		late := time.Duration(now-w.last.Load()) - beat - (delay - before)
		if late >= leastStop {
			w.stopped.Add(int64(late))
		}
		w.last.Store(now)
		before = delay
	}
}

// total is the time so far. It lets the thread look first, should the process
// have gone on just now.
func (w *stopWatch) total() time.Duration {
	for time.Since(w.origin)-time.Duration(w.last.Load()) >= beat+leastStop {
		time.Sleep(beat / 10)
	}
	return time.Duration(w.stopped.Load())
}
