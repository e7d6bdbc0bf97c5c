package result

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Kinds of records. A reader rejects an unknown kind: the record may be
// damaged, and a result without it may lack measured data.
const (
	KindRun          = "run"          // first record of every journal, and only there
	KindSession      = "session"      // a session starts, on one boot of the machine
	KindRound        = "round"        // the order of the cases in one round
	KindCaseStart    = "case_start"   // a case-round starts with a fresh container
	KindStepStart    = "step_start"   // a step is about to start: what a crash interrupted
	KindStep         = "step"         // a step has ended, with or without an error
	KindCaseEnd      = "case_end"     // a case-round has ended; without it its steps do not count
	KindPause        = "pause"        // the run waits for the user; the next session continues here
	KindDeparture    = "departure"    // a deviation that was found during the run
	KindWarning      = "warning"      // of the run, or of one case
	KindSessionEnd   = "session_end"  // clean, interrupted or paused
	KindLook         = "look"         // whether there is another round, where the run decides that
	KindPrecondition = "precondition" // a place was written to until its rate settled
	KindRunEnd       = "run_end"      // the run has no work left
)

// recordKind is one row of [recordKinds]: how records of one kind are checked
// and replayed. The name is also the JSON key of the payload.
type recordKind struct {
	name   string
	isSet  func(*Record) bool
	check  func(*Record) error
	replay func(*replay, *Record) error
}

// newKind makes a row for a kind with the payload of type T. check may be nil:
// every payload is valid.
func newKind[T any](
	name string, payload func(*Record) *T, check func(*T) error, add func(*replay, *T) error,
) recordKind {
	k := recordKind{
		name:   name,
		isSet:  func(rec *Record) bool { return payload(rec) != nil },
		check:  func(*Record) error { return nil },
		replay: func(r *replay, rec *Record) error { return add(r, payload(rec)) },
	}
	if check != nil {
		k.check = func(rec *Record) error { return check(payload(rec)) }
	}
	return k
}

// recordKinds are all kinds. A new kind is a row here, a field of [Record], and
// its method of replay.
var recordKinds = []recordKind{
	newKind(KindRun, func(r *Record) *RunStart { return r.Run }, (*RunStart).check, (*replay).addRun),
	newKind(KindSession, func(r *Record) *Session { return r.Session }, (*Session).check, (*replay).addSession),
	newKind(KindRound, func(r *Record) *RoundStart { return r.Round }, (*RoundStart).check, (*replay).addRound),
	newKind(KindCaseStart, func(r *Record) *CaseStart { return r.CaseStart }, (*CaseStart).check,
		(*replay).addCaseStart),
	newKind(KindStepStart, func(r *Record) *StepStart { return r.StepStart }, (*StepStart).check,
		(*replay).addStepStart),
	newKind(KindStep, func(r *Record) *StepEnd { return r.Step }, (*StepEnd).check, (*replay).addStep),
	newKind(KindCaseEnd, func(r *Record) *CaseEnd { return r.CaseEnd }, (*CaseEnd).check, (*replay).addCaseEnd),
	newKind(KindPause, func(r *Record) *Pause { return r.Pause }, (*Pause).check, (*replay).addPause),
	newKind(KindDeparture, func(r *Record) *Departure { return r.Departure }, nil, (*replay).addDeparture),
	newKind(KindWarning, func(r *Record) *WarningRecord { return r.Warning }, nil, (*replay).addWarning),
	newKind(KindSessionEnd, func(r *Record) *SessionEnd { return r.SessionEnd }, (*SessionEnd).check,
		(*replay).addSessionEnd),
	newKind(KindLook, func(r *Record) *Look { return r.Look }, (*Look).check, (*replay).addLook),
	newKind(KindPrecondition, func(r *Record) *Precondition { return r.Precondition }, (*Precondition).check,
		(*replay).addPrecondition),
	newKind(KindRunEnd, func(r *Record) *RunEnd { return r.RunEnd }, (*RunEnd).check, (*replay).addRunEnd),
}

var (
	errSchema = errors.New("foreign schema")
	errKind   = errors.New("unknown kind of record")
)

// kind is the row of the record, or an error if there is none or its payload is
// not the only one.
func (r *Record) kind() (*recordKind, error) {
	var row *recordKind
	payloads := 0
	for i := range recordKinds {
		if recordKinds[i].isSet(r) {
			payloads++
		}
		if recordKinds[i].name == r.Kind {
			row = &recordKinds[i]
		}
	}
	switch {
	case r.Kind == "":
		return nil, errors.New("record without a kind")
	case row == nil:
		return nil, fmt.Errorf("%w %q", errKind, r.Kind)
	case payloads != 1 || !row.isSet(r):
		return nil, fmt.Errorf("record of kind %q does not contain that and only that", r.Kind)
	}
	return row, nil
}

// setKind sets the kind by the payload, unless it is set.
func (r *Record) setKind() {
	if i := slices.IndexFunc(recordKinds, func(k recordKind) bool { return k.isSet(r) }); i >= 0 {
		r.Kind = cmp.Or(r.Kind, recordKinds[i].name)
	}
}

// check rejects a record that cannot be true or names files outside of the
// run's folders.
func (r *Record) check() error {
	if r.Schema != SchemaVersion {
		return fmt.Errorf("schema %d, this program knows %d: %w", r.Schema, SchemaVersion, errSchema)
	}
	kind, err := r.kind()
	if err != nil {
		return err
	}
	if r.At.IsZero() {
		return fmt.Errorf("record of kind %q has no time", r.Kind)
	}
	if err := kind.check(r); err != nil {
		return fmt.Errorf("%s record: %w", r.Kind, err)
	}
	return nil
}
