package result

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// State is the state of a run by its journal: what resume needs to continue, and what a
// [Result] is folded from.
type State struct {
	Run           RunStart
	Sessions      []Session
	Orders        map[int][]string // order of the cases by round
	Attempts      []*Attempt       // in journal order
	Departures    []Departure
	Warnings      []WarningRecord
	Looks         []Look         // decisions on another round, in order
	Preconditions []Precondition // in order
	// Paused is the pause after which the next session continues, nil if the run is not at one.
	Paused *Pause
	// Ended is nil until the run has ended.
	Ended *RunEnd
}

// Attempt is one try at a case-round.
type Attempt struct {
	Start CaseStart
	Steps []Step
	// Begun is the step that was started and has not ended.
	Begun *StepStart
	// End is nil while the attempt is open: if no process runs it, it was interrupted.
	End *CaseEnd
}

// Replay goes through the records of one journal. It refuses what no run could
// have written: a step outside a case, a case that the plan does not have.
func Replay(recs []Record) (*State, error) {
	if len(recs) == 0 || recs[0].Run == nil {
		return nil, &Error{Doing: "reading journal", File: JournalFile, Line: 1,
			Err: errors.New("no run record"), Hint: "the run was interrupted before it began: start it again with `dmgbench run`, whose --out takes the folder over"}
	}
	r := replay{State: State{Run: *recs[0].Run, Orders: map[int][]string{}}, cases: map[string]bool{}}
	for _, c := range r.Run.Cases {
		r.cases[c.ID] = true
	}
	r.Departures = slices.Clone(r.Run.Departures)
	for i, rec := range recs[1:] {
		if err := r.add(rec); err != nil {
			return nil, &Error{Doing: "reading journal", File: JournalFile, Line: i + 2, Err: err, Hint: hintDamaged}
		}
	}
	r.closeSession(r.last, Lost, "")
	return &r.State, nil
}

type replay struct {
	State
	cases map[string]bool
	open  *Attempt  // the only one that steps can belong to
	last  time.Time // of the record before
}

func (r *replay) add(rec Record) error {
	if rec.Kind != KindSession {
		r.last = rec.At.UTC()
	}
	switch rec.Kind {
	case KindRun:
		return errors.New("a second run record")
	case KindSession:
		return r.session(*rec.Session, rec.At.UTC())
	case KindRound:
		r.Orders[rec.Round.Round] = rec.Round.Order
	case KindCaseStart:
		return r.caseStart(*rec.CaseStart)
	case KindStepStart:
		return r.stepStart(*rec.StepStart)
	case KindStep:
		return r.step(*rec.Step)
	case KindCaseEnd:
		return r.caseEnd(*rec.CaseEnd)
	case KindPause:
		r.Paused = rec.Pause
	case KindDeparture:
		r.Departures = append(r.Departures, *rec.Departure)
	case KindWarning:
		r.Warnings = append(r.Warnings, *rec.Warning)
	case KindSessionEnd:
		r.closeSession(rec.At.UTC(), rec.SessionEnd.End, rec.SessionEnd.Reason)
	case KindPrecondition:
		r.Preconditions = append(r.Preconditions, *rec.Precondition)
	case KindLook:
		return r.look(*rec.Look)
	case KindRunEnd:
		r.Ended = rec.RunEnd
	}
	return nil
}

// session starts one. An attempt that is open continues only after a pause.
func (r *replay) session(s Session, at time.Time) error {
	if n := len(r.Sessions); n > 0 && s.Index <= r.Sessions[n-1].Index {
		return fmt.Errorf("session %d follows session %d", s.Index, r.Sessions[n-1].Index)
	}
	r.closeSession(r.last, Lost, "")
	r.last = at
	s.Started, s.Finished, s.End, s.Reason = s.Started.UTC(), time.Time{}, "", ""
	if s.Started.IsZero() {
		s.Started = at
	}
	r.Sessions = append(r.Sessions, s)
	r.Ended = nil // a session after the end repeats rounds that failed
	if r.Paused == nil {
		r.open = nil
	}
	return nil
}

// closeSession fills in the end of the last session unless it has one.
func (r *replay) closeSession(at time.Time, end, reason string) {
	if len(r.Sessions) == 0 {
		return
	}
	s := &r.Sessions[len(r.Sessions)-1]
	if s.End == "" {
		s.Finished, s.End, s.Reason = at, end, reason
	}
}

func (r *replay) caseStart(c CaseStart) error {
	if !r.cases[c.Case] {
		return fmt.Errorf("case %q is not one of the run's", c.Case)
	}
	r.open = &Attempt{Start: c}
	r.Attempts, r.Paused = append(r.Attempts, r.open), nil
	return nil
}

// attempt is the open one if it is of this case and round.
func (r *replay) attempt(what, id string, round int) (*Attempt, error) {
	if r.open == nil || r.open.Start.Case != id || r.open.Start.Round != round {
		return nil, fmt.Errorf("%s of case %q, round %d, which was not begun", what, id, round)
	}
	return r.open, nil
}

func (r *replay) stepStart(s StepStart) error {
	a, err := r.attempt("step", s.Case, s.Round)
	if err != nil {
		return err
	}
	a.Begun, r.Paused = &s, nil
	return nil
}

func (r *replay) step(s StepEnd) error {
	a, err := r.attempt("step", s.Case, s.Round)
	if err != nil {
		return err
	}
	a.Steps, a.Begun, r.Paused = append(a.Steps, s.Step), nil, nil
	return nil
}

// caseEnd ends the open attempt, or is the only record of a case that was skipped or failed before it started.
func (r *replay) caseEnd(c CaseEnd) error {
	if !r.cases[c.Case] {
		return fmt.Errorf("case %q is not one of the run's", c.Case)
	}
	r.Paused = nil
	a, err := r.attempt("end", c.Case, c.Round)
	if err != nil {
		if c.Status == Done {
			return err
		}
		a = &Attempt{Start: CaseStart{Case: c.Case, Round: c.Round}}
		r.Attempts = append(r.Attempts, a)
	} else {
		r.open = nil
	}
	a.End = &c
	return nil
}

// Final is the attempt at a case-round that counts: the last that is done, else
// the last that ended, else the last. It is nil if there was none.
func (s *State) Final(id string, round int) *Attempt {
	var best *Attempt
	for _, a := range s.Attempts {
		if a.Start.Case == id && a.Start.Round == round {
			best = better(best, a)
		}
	}
	return best
}

// better picks one of two attempts at a case-round, b being the later one.
func better(a, b *Attempt) *Attempt {
	if a == nil || b.rank() >= a.rank() {
		return b
	}
	return a
}

func (a *Attempt) rank() int {
	switch {
	case a.End == nil:
		return 0
	case a.End.Status != Done:
		return 1
	}
	return 2
}

// Finished reports whether a case-round has ended, well or badly, so that
// resume does not measure it again.
func (s *State) Finished(id string, round int) bool {
	a := s.Final(id, round)
	return a != nil && a.End != nil
}

// Failed reports whether the attempt ended without a result.
func (a *Attempt) Failed() bool {
	return a.End != nil && (a.End.Status == Failed || a.End.Status == Discarded)
}

// FailedRounds is how many case-rounds failed or were discarded, and were not measured since.
func (s *State) FailedRounds() (n int) {
	for _, list := range s.finals() {
		for _, a := range list {
			if a.Failed() {
				n++
			}
		}
	}
	return n
}

// Retrying reports whether the last session measured failed case-rounds again and was interrupted or paused meanwhile.
func (s *State) Retrying() bool {
	n := len(s.Sessions)
	return n > 0 && s.Ended == nil && s.Sessions[n-1].RetryFailed
}

// Open is the attempt that the journal breaks off in, nil if there is none. If
// the run is paused inside it, it continues; otherwise it has to be started anew.
func (s *State) Open() *Attempt {
	if n := len(s.Attempts); n > 0 && s.Attempts[n-1].End == nil {
		return s.Attempts[n-1]
	}
	return nil
}
