package clock

import (
	"context"
	"sync"
	"time"
)

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
