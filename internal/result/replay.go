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
	// Manual are the values of manual axes that pauses requested, by axis: a user
	// who resumes after a pause has set them. After an interrupted session the
	// positions are unknown, and every axis is requested again.
	Manual map[string]string
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
	// Started is the step that has started and not ended, StartedAt the time of
	// day of the last step start.
	Started   *StepStart
	StartedAt time.Time
	// End is nil while the attempt is open: if no process runs it, it was
	// interrupted.
	End *CaseEnd
}

// replay is a state that records are added to.
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
		return nil, errNeverStarted("reading journal", JournalFile)
	}
	run := *recs[0].Run
	r := replay{State: State{Run: run, Orders: map[int][]string{}, Manual: map[string]string{},
		Departures: slices.Clone(run.Departures)}, cases: map[string]bool{}}
	for _, c := range run.Cases {
		r.cases[c.ID] = true
	}
	for i := range recs[1:] {
		if err := r.add(&recs[i+1]); err != nil {
			return nil, &Error{Doing: "reading journal", File: JournalFile, Line: i + 2, Err: err, Hint: hintDamaged}
		}
	}
	r.closeSession(r.last, Lost, "")
	return &r.State, nil
}

// add adds one record.
func (r *replay) add(rec *Record) (err error) {
	r.at = rec.At.UTC()
	if rec.Session == nil { // the session before ended with its last record
		r.last = r.at
	}
	_, payload, _ := rec.payload()
	switch p := payload.(type) {
	case *Session:
		err = r.addSession(*p)
	case *RoundStart:
		r.Orders[p.Round] = p.Order
	case *CaseStart: // an open attempt stays without an end
		err = r.checkCase(p.Case)
		r.open = &Attempt{Start: *p}
		r.Attempts, r.Paused = append(r.Attempts, r.open), nil
	case *StepStart: // ends a pause: a step after it has started
		if err = r.checkOpen("step", p.Case, p.Round); err == nil {
			r.open.Started, r.open.StartedAt, r.Paused = p, r.at, nil
		}
	case *StepEnd:
		if err = r.checkOpen("step", p.Case, p.Round); err == nil {
			r.open.Steps, r.open.Started, r.Paused = append(r.open.Steps, p.Step), nil, nil
		}
	case *CaseEnd:
		if err = r.checkOpen("end", p.Case, p.Round); err == nil {
			r.open.End, r.open = p, nil
		} else if p.Status != Done { // the only record of a case that was skipped or failed before it could start
			err = r.checkCase(p.Case)
			r.Attempts = append(r.Attempts, &Attempt{Start: CaseStart{Case: p.Case, Round: p.Round}, End: p})
		}
		r.Paused = nil
	case *Pause:
		if r.Paused = p; p.Key != "" {
			r.Manual[p.Key] = p.Value
		}
	case *Departure:
		r.Departures = append(r.Departures, *p)
	case *WarningRecord:
		r.Warnings = append(r.Warnings, *p)
	case *SessionEnd:
		r.closeSession(r.at, p.End, p.Reason)
	case *RunEnd:
		r.Ended = p
	case *Look:
		if n := len(r.Looks); r.Run.Auto == nil || r.Stopped() != nil || n > 0 && p.Round <= r.Looks[n-1].Round {
			return fmt.Errorf("a decision after round %d that no run makes there", p.Round)
		}
		r.Looks = append(r.Looks, *p)
	case *Precondition:
		r.Preconditions = append(r.Preconditions, *p)
	default:
		err = errors.New("a second run record")
	}
	return err
}

// addSession starts a session. An open attempt continues only after a pause.
func (r *replay) addSession(s Session) error {
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
	if s.End != Paused {
		clear(r.Manual)
	}
}

// checkCase fails for a case that the plan does not have.
func (r *replay) checkCase(id string) error {
	if !r.cases[id] {
		return fmt.Errorf("case %q is not one of the run's", id)
	}
	return nil
}

// checkOpen fails unless the open attempt is of this case and round.
func (r *replay) checkOpen(what, id string, round int) error {
	if r.open == nil || r.open.Start.Case != id || r.open.Start.Round != round {
		return fmt.Errorf("%s of case %q, round %d, which was not started", what, id, round)
	}
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
func (s *State) Final(id string, round int) *Attempt { return s.finals()[id][round] }

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
	for _, rounds := range s.finals() {
		for _, a := range rounds {
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
