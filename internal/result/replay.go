package result

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// State is the state of a run by its journal: what resume needs to continue,
// and what a [Result] is folded from.
type State struct {
	Run           RunStart
	Sessions      []Session
	Orders        map[int][]string // order of the cases by round
	Attempts      []*Attempt       // in journal order
	Departures    []Departure
	Warnings      []WarningRecord
	Looks         []Look         // decisions on another round, in order
	Preconditions []Precondition // in order
	// Paused is the pause after which the next session continues, nil if the
	// run is not at one.
	Paused *Pause
	// Ended is nil until the run has ended.
	Ended *RunEnd
}

// Attempt is one try at a case-round.
type Attempt struct {
	Start CaseStart
	Steps []Step
	// Started is the step that has started and not ended.
	Started *StepStart
	// End is nil while the attempt is open: if no process runs it, it was
	// interrupted.
	End *CaseEnd
}

// replay is a state that records are added to, by [recordKinds].
type replay struct {
	State
	cases map[string]bool // of the plan, by id
	open  *Attempt        // the only one that steps can belong to
	at    time.Time       // of this record
	last  time.Time       // of the record before
}

// Replay adds up the records of one journal. It rejects what no run could have
// written: a step outside of a case, a case that the plan does not have.
func Replay(recs []Record) (*State, error) {
	if len(recs) == 0 || recs[0].Run == nil {
		return nil, &Error{Doing: "reading journal", File: JournalFile, Line: 1, Err: errors.New("no run record"),
			Hint: "the run was interrupted before it started: start it again with `dmgbench run`, " +
				"which reuses the folder of --out"}
	}
	r := replay{State: State{Run: *recs[0].Run, Orders: map[int][]string{}}, cases: map[string]bool{}}
	for _, c := range r.Run.Cases {
		r.cases[c.ID] = true
	}
	r.Departures = slices.Clone(r.Run.Departures)
	for i := range recs[1:] {
		if err := r.add(&recs[i+1]); err != nil {
			return nil, &Error{Doing: "reading journal", File: JournalFile, Line: i + 2, Err: err, Hint: hintDamaged}
		}
	}
	r.closeSession(r.last, Lost, "")
	return &r.State, nil
}

// add adds one record by the row of its kind.
func (r *replay) add(rec *Record) error {
	r.at = rec.At.UTC()
	if rec.Kind != KindSession { // the session before ended with its last record
		r.last = r.at
	}
	kind, err := rec.kind()
	if err != nil {
		return err
	}
	return kind.replay(r, rec)
}

func (r *replay) addRun(*RunStart) error { return errors.New("a second run record") }

// addSession starts a session. An open attempt continues only after a pause.
func (r *replay) addSession(start *Session) error {
	s := *start
	if n := len(r.Sessions); n > 0 && s.Index <= r.Sessions[n-1].Index {
		return fmt.Errorf("session %d follows session %d", s.Index, r.Sessions[n-1].Index)
	}
	r.closeSession(r.last, Lost, "")
	r.last = r.at
	s.Started, s.Finished, s.End, s.Reason = s.Started.UTC(), time.Time{}, "", ""
	if s.Started.IsZero() {
		s.Started = r.at
	}
	r.Sessions = append(r.Sessions, s)
	r.Ended = nil // a session after the end repeats rounds that failed
	if r.Paused == nil {
		r.open = nil
	}
	return nil
}

// closeSession sets the end of the last session unless it has one.
func (r *replay) closeSession(at time.Time, end, reason string) {
	if len(r.Sessions) == 0 {
		return
	}
	s := &r.Sessions[len(r.Sessions)-1]
	if s.End == "" {
		s.Finished, s.End, s.Reason = at, end, reason
	}
}

func (r *replay) addSessionEnd(s *SessionEnd) error {
	r.closeSession(r.at, s.End, s.Reason)
	return nil
}

func (r *replay) addRound(s *RoundStart) error {
	r.Orders[s.Round] = s.Order
	return nil
}

// addCaseStart opens an attempt; an open one stays without an end.
func (r *replay) addCaseStart(c *CaseStart) error {
	if !r.cases[c.Case] {
		return fmt.Errorf("case %q is not one of the run's", c.Case)
	}
	r.open = &Attempt{Start: *c}
	r.Attempts, r.Paused = append(r.Attempts, r.open), nil
	return nil
}

// attempt is the open one if it is of this case and round.
func (r *replay) attempt(what, id string, round int) (*Attempt, error) {
	if r.open == nil || r.open.Start.Case != id || r.open.Start.Round != round {
		return nil, fmt.Errorf("%s of case %q, round %d, which was not started", what, id, round)
	}
	return r.open, nil
}

// addStepStart ends a pause: a step after it has started.
func (r *replay) addStepStart(s *StepStart) error {
	a, err := r.attempt("step", s.Case, s.Round)
	if err != nil {
		return err
	}
	a.Started, r.Paused = s, nil
	return nil
}

func (r *replay) addStep(s *StepEnd) error {
	a, err := r.attempt("step", s.Case, s.Round)
	if err != nil {
		return err
	}
	a.Steps, a.Started, r.Paused = append(a.Steps, s.Step), nil, nil
	return nil
}

// addCaseEnd ends the open attempt, or is the only record of a case that was
// skipped or failed before it started.
func (r *replay) addCaseEnd(c *CaseEnd) error {
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
	a.End = c
	return nil
}

func (r *replay) addPause(p *Pause) error {
	r.Paused = p
	return nil
}

func (r *replay) addDeparture(d *Departure) error {
	r.Departures = append(r.Departures, *d)
	return nil
}

func (r *replay) addWarning(w *WarningRecord) error {
	r.Warnings = append(r.Warnings, *w)
	return nil
}

func (r *replay) addPrecondition(p *Precondition) error {
	r.Preconditions = append(r.Preconditions, *p)
	return nil
}

func (r *replay) addRunEnd(e *RunEnd) error {
	r.Ended = e
	return nil
}

// addLook adds a decision on another round.
func (r *replay) addLook(l *Look) error {
	switch n := len(r.Looks); {
	case r.Run.Auto == nil:
		return errors.New("a decision on rounds in a run with a fixed number")
	case r.Stopped() != nil:
		return fmt.Errorf("a decision after the one of round %d, which ended the run", r.Stopped().Round)
	case n > 0 && l.Round <= r.Looks[n-1].Round:
		return fmt.Errorf("a decision after round %d follows one after round %d", l.Round, r.Looks[n-1].Round)
	}
	r.Looks = append(r.Looks, *l)
	return nil
}

// Stopped is the decision that ended the run, nil until then.
func (s *State) Stopped() *Look {
	if n := len(s.Looks); n > 0 && s.Looks[n-1].Stop != "" {
		return &s.Looks[n-1]
	}
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

// better is one of two attempts at a case-round, b being the later one.
func better(a, b *Attempt) *Attempt {
	if a == nil || b.rank() >= a.rank() {
		return b
	}
	return a
}

// rank orders attempts by how much they count.
func (a *Attempt) rank() int {
	switch {
	case a.End == nil:
		return 0
	case a.End.Status != Done:
		return 1
	}
	return 2
}

// Failed reports whether the attempt ended without a result.
func (a *Attempt) Failed() bool {
	return a.End != nil && (a.End.Status == Failed || a.End.Status == Discarded)
}

// FailedRounds is how many case-rounds failed or were discarded, and were not
// measured since.
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

// Retrying reports whether the last session measured failed case-rounds again
// and was interrupted or paused meanwhile.
func (s *State) Retrying() bool {
	n := len(s.Sessions)
	return n > 0 && s.Ended == nil && s.Sessions[n-1].RetryFailed
}
