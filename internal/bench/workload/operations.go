package workload

import (
	"slices"

	"dmgbench/internal/system/clock"
)

// ownTime is the median time in nanoseconds of a call that does no work, with
// that of the clock: it is part of the latency of every operation.
func ownTime(c clock.Clock, call func()) int64 {
	times := make([]int64, 1001)
	for i := range times {
		start := c.Now()
		call()
		times[i] = int64(c.Now() - start)
	}
	slices.Sort(times)
	return times[len(times)/2]
}
