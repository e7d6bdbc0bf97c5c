package host

import (
	"fmt"
	"math"
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

// product is blocks × their size in bytes; 0 if that is not a size.
func product[T int64 | uint32](blocks uint64, unit T) int64 {
	if unit <= 0 || blocks > uint64(math.MaxInt64)/uint64(unit) {
		return 0
	}
	return int64(blocks) * int64(unit)
}
