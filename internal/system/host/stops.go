package host

import (
	"runtime"
	"slices"
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
	stopped, _ := stops().seen()
	slept, err := slept()
	return slept + stopped, err
}

// Stop is a time in which the process was certainly stopped, the most of a stop:
// how long ago it began and ended.
type Stop struct{ Began, Ended time.Duration }

// Stops are the latest times in which the process was stopped, since the first
// call of this or of [Suspended].
func Stops() []Stop {
	w := stops()
	_, list := w.seen()
	now := time.Since(w.origin)
	for i, s := range list {
		list[i] = Stop{now - s.Began, now - s.Ended}
	}
	return list
}

// A thread of its own sleeps for a beat at a time. What it oversleeps by leastStop
// or more is time in which the process did not run, unless the thread waited for
// a processor.
const (
	beat      = 100 * time.Millisecond
	leastStop = 200 * time.Millisecond
)

// maxStops are kept: five add up to the second after which a case does not count.
const maxStops = 16

// stopWatch is what the thread has seen.
type stopWatch struct {
	origin time.Time
	last   atomic.Int64 // beat, in ns since the origin

	mu      sync.Mutex
	stopped time.Duration // in all
	latest  []Stop        // since the origin
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
		due := time.Duration(w.last.Load()) + beat
		late := time.Duration(now) - due - (delay - before)
		if late >= leastStop {
			// It began at most a beat before this, and the rest of the beat, which some
			// systems let pass after it, and the wait for a processor came after it.
			w.add(Stop{due, due + late - beat}, late)
		}
		w.last.Store(now)
		before = delay
	}
}

func (w *stopWatch) add(s Stop, late time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped += late
	w.latest = append(w.latest[max(len(w.latest)-maxStops+1, 0):], s)
}

// seen is the time so far in all, and the latest stops. It lets the thread look
// first, should the process have gone on just now.
func (w *stopWatch) seen() (time.Duration, []Stop) {
	for time.Since(w.origin)-time.Duration(w.last.Load()) >= beat+leastStop {
		time.Sleep(beat / 10)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stopped, slices.Clone(w.latest)
}
