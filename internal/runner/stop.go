package runner

import (
	"errors"
	"fmt"
	"syscall"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/units"
)

// stopError ends the session where a place is full or gone, as an interrupt does: no case that is left could be
// measured, and resume goes on once the place is there or has room.
type stopError struct{ err error }

func (e *stopError) Error() string { return e.err.Error() }
func (e *stopError) Unwrap() error { return e.err }

// Stopped reports whether a run ended early because a place was full or gone. Its folder holds what was measured.
func Stopped(err error) bool {
	_, ok := errors.AsType[*stopError](err)
	return ok
}

// fullBelow is how many free bytes a disk may report while it refuses to write: it allocates in blocks and extents.
const fullBelow = 1 << 20

// filled says which place of a case is full, after an error and before anything is removed; "" where none is. A volume inside
// an image may be full as well: then the place has room.
func (x *caseRun) filled(err error) string {
	if errors.Is(err, syscall.EDQUOT) {
		return x.place.title + " is at its quota"
	}
	if !errors.Is(err, syscall.ENOSPC) || simulated(x.r.c.Engine) {
		return ""
	}
	places := []*place{x.place}
	for _, h := range x.handles() {
		places = append(places, h.place)
	}
	for _, p := range places {
		if free, _, _, err := p.dir.FreeSpace(); err == nil && free < fullBelow {
			return p.title + " is full"
		}
	}
	return ""
}

// tight says that the place of a case that failed has no room for it any more, although its containers were removed.
func (x *caseRun) tight() string {
	if simulated(x.r.c.Engine) {
		return ""
	}
	need := plan.Estimate(x.r.p, x.c).HostPeak
	if free, _, _, err := x.place.dir.FreeSpace(); err == nil && free < int64(need) {
		return fmt.Sprintf("%s has %s free, the case needs %s", x.place.title, units.Bytes(free).Human(), need.Human())
	}
	return ""
}

// ended reports whether a case-round is not to be measured in this session: it has ended, and is none of those to be repeated.
func (r *run) ended(id string, round int) bool {
	a := r.state.Final(id, round)
	return a != nil && a.End != nil && !(r.c.RetryFailed && a.Failed())
}

// complete is the outcome of resuming a run that has ended.
func complete(dir string, s *result.State) Outcome {
	out := Outcome{Dir: dir, Status: s.Ended.Status, Complete: true, Message: "the run is complete; nothing is left to do"}
	if n := s.FailedRounds(); n > 0 {
		verb := "s have"
		if n == 1 {
			verb = " has"
		}
		out.Message = fmt.Sprintf("the run has ended, and %d case-round%s failed; repeat with: dmgbench resume --retry-failed %s", n, verb, dir)
	}
	return out
}
