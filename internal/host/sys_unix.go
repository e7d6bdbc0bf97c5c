//go:build linux || darwin

package host

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// between is how far the first clock is ahead of the second. The second is read
// before and after the first, and the halves of that gap cancel.
func between(ahead, behind int32) (time.Duration, error) {
	var a, b, c unix.Timespec
	for _, r := range []struct {
		clock int32
		at    *unix.Timespec
	}{{behind, &a}, {ahead, &b}, {behind, &c}} {
		if err := unix.ClockGettime(r.clock, r.at); err != nil {
			return 0, fmt.Errorf("reading clock %d: %w", r.clock, err)
		}
	}
	return max(0, time.Duration(b.Nano()-a.Nano()/2-c.Nano()/2)), nil
}

func once(f func()) func() { return sync.OnceFunc(f) }

// product is blocks × their size in bytes; 0 if that is no size.
func product[T int64 | uint32](blocks uint64, unit T) int64 {
	if unit <= 0 || blocks > uint64(math.MaxInt64)/uint64(unit) {
		return 0
	}
	return int64(blocks) * int64(unit)
}

// Lock takes the lock of measuring in the state directory, which it makes where
// missing. Two runs at once would measure each other, so a second one gets
// [ErrBusy]. The lock goes with the process, however that ends.
func Lock(stateDir string) (release func(), err error) {
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return nil, fmt.Errorf("making state directory: %w", err)
	}
	name := filepath.Join(stateDir, lockName)
	// Nothing is written to it, so that nothing can be written through a link either.
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening lock: %w", err)
	}
	if err := flock(f); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrBusy
		}
		return nil, fmt.Errorf("locking %q: %w", name, err)
	}
	return once(func() { _ = f.Close() }), nil
}

func flock(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
