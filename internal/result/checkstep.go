package result

import (
	"errors"
	"fmt"
	"math"
)

// check refuses times that no clock can have given, and samples that contradict the
// step that they are in. A step that failed keeps only the files that were complete.
func (s *Step) check() error {
	if s.StartNS < 0 || s.DurationNS < 0 {
		return fmt.Errorf("step begins at %d ns and takes %d ns", s.StartNS, s.DurationNS)
	}
	var bytes, busy int64
	first, last := int64(math.MaxInt64), int64(0)
	for i, f := range s.Samples {
		if f.Bytes < 0 || f.StartNS < 0 || f.DurationNS < 0 {
			return fmt.Errorf("sample %d has %d bytes, begins at %d ns and takes %d ns", i+1, f.Bytes, f.StartNS, f.DurationNS)
		}
		if f.DurationNS > s.DurationNS {
			return fmt.Errorf("sample %d takes %d ns, its step %d ns", i+1, f.DurationNS, s.DurationNS)
		}
		bytes, busy = bytes+f.Bytes, busy+f.DurationNS
		first, last = min(first, f.StartNS), max(last, f.StartNS+f.DurationNS)
	}
	if len(s.Samples) > 0 && last-first > s.DurationNS { // the first journals had another zero in samples than in steps
		return fmt.Errorf("samples take %d ns from the first to the last, their step %d ns", last-first, s.DurationNS)
	}
	if s.Span == nil {
		if len(s.Samples) > 0 {
			return errors.New("samples without a span")
		}
		return nil
	}
	return s.checkSpan(bytes, busy)
}

// checkSpan checks the span against the sums of the samples. Times between waves are cut out of it.
func (s *Step) checkSpan(bytes, busy int64) error {
	p := s.Span
	if p.GateNS < 0 || p.FirstDoneNS < p.GateNS || p.LastDoneNS < p.FirstDoneNS || p.PausedNS < 0 || p.IdleNS < 0 {
		return fmt.Errorf("span from %d ns, first done at %d ns, last at %d ns, paused %d ns, idle %d ns",
			p.GateNS, p.FirstDoneNS, p.LastDoneNS, p.PausedNS, p.IdleNS)
	}
	if long := p.LastDoneNS - p.GateNS; long > s.DurationNS || p.PausedNS > s.DurationNS-long {
		return fmt.Errorf("span takes %d ns and pauses %d ns, its step takes %d ns", long, p.PausedNS, s.DurationNS)
	}
	if bytes != p.Bytes {
		return fmt.Errorf("samples have %d bytes, their span %d", bytes, p.Bytes)
	}
	if busy > p.BusyNS || s.Error == "" && busy < p.BusyNS {
		return fmt.Errorf("samples take %d ns, their span says %d ns", busy, p.BusyNS)
	}
	return nil
}
