package result

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Limits of numbers in records; far above any plan.
const (
	maxRounds = 1_000_000
	maxIndex  = 1_000_000_000
)

// The check methods reject records that no run can have written. They check
// only what the program relies on: ranges of numbers that size loops and lists,
// names that become file names, and times from which rates are computed.

func (s *Session) check() error    { return inRange("session", s.Index, 0, maxIndex) }
func (r *RoundStart) check() error { return checkRound(r.Round) }
func (s *StepStart) check() error  { return checkRound(s.Round) }
func (s *SessionEnd) check() error { return oneOf("end", s.End, Clean, Interrupted, Paused) }
func (r *RunEnd) check() error     { return oneOf("status", r.Status, Done, Failed, Skipped) }

func (p *Precondition) check() error { return checkNames(p.Place) }

func (r *RunStart) check() error {
	errs := []error{inRange("rounds", r.Rounds, 1, maxRounds), SafeName(r.ID), r.Auto.check()}
	for _, p := range r.Places {
		errs = append(errs, checkNames(p.Name))
	}
	seen := make(map[string]bool, len(r.Cases))
	for _, c := range r.Cases {
		if seen[c.ID] {
			errs = append(errs, fmt.Errorf("case %q is listed twice", c.ID))
		}
		seen[c.ID] = true
		errs = append(errs, checkNames(c.Target.Place))
	}
	return errors.Join(errs...)
}

func (c *CaseStart) check() error {
	return errors.Join(checkRound(c.Round), checkNames(c.Container, c.Place, c.Target.Place))
}

func (c *CaseEnd) check() error {
	return errors.Join(checkRound(c.Round), checkNames(cmp.Or(c.Target, &Target{}).Place),
		oneOf("status", c.Status, Done, Skipped, Failed, Discarded))
}

func (p *Pause) check() error {
	first := min(len(p.Case), 1) // a pause between cases belongs to no round
	return errors.Join(inRange("round", p.Round, first, maxRounds), checkNames(p.Container, p.Place))
}

func (a *AutoRounds) check() error {
	if a == nil {
		return nil
	}
	if len(a.Looks) == 0 || len(a.Looks) > maxRounds || !slices.IsSorted(a.Looks) {
		return errors.New("the list of rounds after which the run is judged is empty or not ascending")
	}
	return errors.Join(checkRound(a.Looks[0]), checkRound(a.Looks[len(a.Looks)-1]))
}

func (l *Look) check() error {
	return errors.Join(checkRound(l.Round), oneOf("stop", l.Stop, append([]string{""}, stops...)...))
}

func (s *StepEnd) check() error {
	if s.Step.Round != s.Round {
		return fmt.Errorf("step of round %d inside round %d", s.Step.Round, s.Round)
	}
	return errors.Join(checkRound(s.Round), s.Step.check())
}

// check rejects times that no clock can have measured, and samples that
// contradict their step. A step that failed has only the files that were
// complete.
func (s *Step) check() error {
	if s.StartNS < 0 || s.DurationNS < 0 {
		return fmt.Errorf("step starts at %d ns and takes %d ns", s.StartNS, s.DurationNS)
	}
	var bytes, busy int64
	first, last := int64(math.MaxInt64), int64(0)
	for i, f := range s.Samples {
		if f.Bytes < 0 || f.StartNS < 0 || f.DurationNS < 0 || f.DurationNS > s.DurationNS {
			return fmt.Errorf("sample %d has %d bytes, starts at %d ns and takes %d ns, its step %d ns",
				i+1, f.Bytes, f.StartNS, f.DurationNS, s.DurationNS)
		}
		bytes, busy = bytes+f.Bytes, busy+f.DurationNS
		first, last = min(first, f.StartNS), max(last, f.StartNS+f.DurationNS)
	}
	// Only the difference: in the first journals, samples had another zero than
	// steps.
	if len(s.Samples) > 0 && last-first > s.DurationNS {
		return fmt.Errorf("samples take %d ns from the first to the last, their step %d ns", last-first, s.DurationNS)
	}
	switch {
	case s.Span != nil:
		return s.checkSpan(bytes, busy)
	case len(s.Samples) > 0:
		return errors.New("samples without a span")
	}
	return nil
}

// checkSpan checks the span against the sums of the samples. It does not
// contain the times between waves.
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
		return fmt.Errorf("samples take %d ns, their span %d ns", busy, p.BusyNS)
	}
	return nil
}

// checkNames is SafeName for names that may be missing.
func checkNames(names ...string) error {
	for _, name := range names {
		if err := SafeName(name); name != "" && err != nil {
			return err
		}
	}
	return nil
}

func checkRound(round int) error { return inRange("round", round, 1, maxRounds) }

// inRange checks a number against inclusive limits.
func inRange(what string, v, low, high int) error {
	if v < low || v > high {
		return fmt.Errorf("%s %d is not between %d and %d", what, v, low, high)
	}
	return nil
}

// oneOf checks a value with a closed list.
func oneOf(what, v string, accepted ...string) error {
	if !slices.Contains(accepted, v) {
		return fmt.Errorf("%s %q is none of %s", what, v, strings.Join(accepted, ", "))
	}
	return nil
}
