package result

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Error is an error about one file of a run folder, with what helps against it.
type Error struct {
	Doing string // "reading journal"
	File  string // name inside the run folder, or the path that was given
	Line  int    // from 1, 0 where lines mean nothing
	Err   error
	Hint  string // shown on a line of its own, may be empty
}

// Error is `<doing> "<file>" line <n>: <cause>`; the hint is not in it.
func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s %q line %d: %v", e.Doing, e.File, e.Line, e.Err)
	}
	return fmt.Sprintf("%s %q: %v", e.Doing, e.File, e.Err)
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrUnsafeName is returned for a name that could lead somewhere else than it should.
var ErrUnsafeName = errors.New("not a plain file name")

// maxName is the longest name in bytes that every file system takes.
const maxName = 255

// SafeName checks that name is one path element only: no
// separator of any system, no control or invisible character, neither hidden
// nor usable as an option of a command. Names of places, containers and runs
// pass it whenever a journal is written or read, so that a journal made by
// somebody else cannot lead out of the run's own folders.
func SafeName(name string) error {
	bad := func(why string) error { return fmt.Errorf("name %q: %s: %w", name, why, ErrUnsafeName) }
	switch {
	case name == "":
		return bad("is empty")
	case len(name) > maxName:
		return fmt.Errorf("name %q…: longer than %d bytes: %w", name[:32], maxName, ErrUnsafeName)
	case !utf8.ValidString(name):
		return bad("is not UTF-8")
	case name[0] == '.' || name[0] == '-' || name[0] == '~':
		return bad(fmt.Sprintf("begins with %q", name[:1]))
	case strings.TrimSpace(name) != name:
		return bad("begins or ends with a space")
	}
	for _, r := range name {
		if strings.ContainsRune(`/\:`, r) || !unicode.IsPrint(r) {
			return bad(fmt.Sprintf("contains %q", r))
		}
	}
	return nil
}

// limits of what a record may claim; far above any plan.
const (
	maxRounds = 1_000_000
	maxIndex  = 1_000_000_000
)

// check refuses a record that cannot be true or names files outside of the run's folders.
func (r *Record) check() error {
	if r.Schema != SchemaVersion {
		return fmt.Errorf("schema %d, this program knows %d: %w", r.Schema, SchemaVersion, errSchema)
	}
	if r.Kind == "" {
		return errors.New("record without a kind")
	}
	if !slices.Contains(kinds, r.Kind) {
		return fmt.Errorf("%w %q", errKind, r.Kind)
	}
	if r.payload() != r.Kind {
		return fmt.Errorf("record of kind %q does not carry that and only that", r.Kind)
	}
	if r.At.IsZero() {
		return fmt.Errorf("record of kind %q has no time", r.Kind)
	}
	if err := r.checkPayload(); err != nil {
		return fmt.Errorf("%s record: %w", r.Kind, err)
	}
	return nil
}

var (
	errSchema = errors.New("foreign schema")
	errKind   = errors.New("unknown kind of record")
)

var kinds = []string{KindRun, KindSession, KindRound, KindCaseStart, KindStepStart, KindStep, KindCaseEnd,
	KindPause, KindDeparture, KindWarning, KindSessionEnd, KindRunEnd, KindLook, KindPrecondition}

func (r *Record) checkPayload() error {
	switch r.Kind {
	case KindRun:
		return r.Run.check()
	case KindSession:
		return inRange("session", r.Session.Index, 0, maxIndex)
	case KindRound:
		return inRange("round", r.Round.Round, 1, maxRounds)
	case KindCaseStart:
		c := r.CaseStart
		return errors.Join(inRange("round", c.Round, 1, maxRounds), optional(c.Container), optional(c.Place),
			optional(c.Target.Place))
	case KindStepStart:
		return inRange("round", r.StepStart.Round, 1, maxRounds)
	case KindStep:
		s := r.Step
		if s.Step.Round != s.Round {
			return fmt.Errorf("step says round %d inside round %d", s.Step.Round, s.Round)
		}
		return errors.Join(inRange("round", s.Round, 1, maxRounds), s.Step.check())
	case KindCaseEnd:
		return r.CaseEnd.check()
	case KindPause:
		p, first := r.Pause, 1
		if p.Case == "" { // between cases: it belongs to no round
			first = 0
		}
		return errors.Join(inRange("round", p.Round, first, maxRounds), optional(p.Container), optional(p.Place))
	case KindSessionEnd:
		return oneOf("end", r.SessionEnd.End, Clean, Interrupted, Paused)
	case KindPrecondition:
		return r.Precondition.check()
	case KindLook:
		return r.Look.check()
	case KindRunEnd:
		return oneOf("status", r.RunEnd.Status, Done, Failed, Skipped)
	}
	return nil
}

func (r *RunStart) check() error {
	errs := []error{inRange("rounds", r.Rounds, 1, maxRounds), SafeName(r.ID), r.Auto.check()}
	for _, p := range r.Places {
		errs = append(errs, optional(p.Name))
	}
	seen := make(map[string]bool, len(r.Cases))
	for _, c := range r.Cases {
		if seen[c.ID] {
			errs = append(errs, fmt.Errorf("case %q is listed twice", c.ID))
		}
		seen[c.ID] = true
		errs = append(errs, optional(c.Target.Place))
	}
	return errors.Join(errs...)
}

func (c *CaseEnd) check() error {
	place := ""
	if c.Target != nil {
		place = c.Target.Place
	}
	return errors.Join(inRange("round", c.Round, 1, maxRounds), optional(place),
		oneOf("status", c.Status, Done, Skipped, Failed, Discarded))
}

// optional is SafeName for names that may be missing.
func optional(name string) error {
	if name == "" {
		return nil
	}
	return SafeName(name)
}

func inRange(what string, v, low, high int) error {
	if v < low || v > high {
		return fmt.Errorf("%s %d is not between %d and %d", what, v, low, high)
	}
	return nil
}

func oneOf(what, v string, accepted ...string) error {
	if !slices.Contains(accepted, v) {
		return fmt.Errorf("%s %q is none of %s", what, v, strings.Join(accepted, ", "))
	}
	return nil
}

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
