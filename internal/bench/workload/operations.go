package workload

import (
	"errors"
	"slices"
	"sync"

	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/hostio"
)

// together calls work for each of n workers, on a thread of its own. All start
// together once every thread is ready; one that did not get its quality of
// service does no work.
func (s *step) together(n int, work func(id int)) error {
	if s.out.QoS == nil && s.o.QoS != QoSDefault && qosNote != "" { // before the first wave
		s.out.warn("qos", qosNote)
	}
	start, errs := make(chan struct{}), make([]error, n)
	var ready, done sync.WaitGroup
	ready.Add(n)
	for id := range n {
		done.Go(func() {
			release, err := lockThread(s.o.QoS)
			defer release()
			if id == 0 {
				s.out.QoS = achievedQoS(s.o.QoS)
			}
			errs[id] = err
			ready.Done()
			if <-start; err == nil {
				work(id)
			}
		})
	}
	ready.Wait()
	flushes := hostio.Flushes()
	close(start)
	done.Wait()
	s.out.Flushes += hostio.Flushes() - flushes
	return errors.Join(errs...)
}

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
