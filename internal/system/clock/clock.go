// Package clock is the one clock of the program, real or virtual, injected
// everywhere.
//
// Timed spans, settles, back-offs and progress all read the same Clock, so a
// test that waits ten minutes of protocol time takes none. The package keeps
// time only: it never formats, schedules or measures.
package clock

import (
	"context"
	"sync"
	"time"
)

// Clock gives monotonic and wall time and waits.
type Clock interface {
	// Now is the monotonic time since an origin that is fixed for the
	// life of the process. Two readings subtract to a duration.
	Now() time.Duration
	// Wall is the time of day, in UTC.
	Wall() time.Time
	// Sleep waits for d or until ctx is done, and then returns its error.
	Sleep(ctx context.Context, d time.Duration) error
}

// Real is the machine's clock.
type Real struct{ origin time.Time }

var _ Clock = Real{}

// NewReal returns the machine's clock with its origin at this moment.
func NewReal() Real { return Real{origin: time.Now()} }

// Now is the monotonic time since the clock was made.
func (r Real) Now() time.Duration { return time.Since(r.origin) }

// Wall is the time of day, in UTC.
func (Real) Wall() time.Time { return time.Now().UTC() }

// Sleep waits for d or until ctx is done.
func (Real) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Virtual is a clock that moves only on Advance, or when somebody
// sleeps on it: a sleep returns at once and moves the clock on by its length.
// It is safe for concurrent use.
type Virtual struct {
	mu    sync.Mutex
	now   time.Duration
	epoch time.Time
}

var _ Clock = (*Virtual)(nil)

// NewVirtual returns a clock at zero, with epoch as its time of day.
func NewVirtual(epoch time.Time) *Virtual { return &Virtual{epoch: epoch.UTC()} }

// Now is the time that has passed on this clock.
func (v *Virtual) Now() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now
}

// Wall is the epoch plus the time that has passed.
func (v *Virtual) Wall() time.Time { return v.epoch.Add(v.Now()) }

// Advance moves the clock on by d; a negative d is ignored.
func (v *Virtual) Advance(d time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.now += max(d, 0)
}

// Sleep moves the clock on by d, unless ctx is done already.
func (v *Virtual) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	v.Advance(d)
	return nil
}
