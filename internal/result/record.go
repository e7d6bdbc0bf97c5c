package result

import (
	"time"
)

// Kinds of records. A reader refuses a kind that it does not know: it may be a
// damaged one, and what it leaves out may be measured data.
const (
	KindRun          = "run"          // first record of every journal, and only there
	KindSession      = "session"      // a stretch on one boot begins
	KindRound        = "round"        // the order of the cases in one round
	KindCaseStart    = "case_start"   // a case-round begins with a fresh container
	KindStepStart    = "step_start"   // a step is about to begin: what a crash interrupted
	KindStep         = "step"         // a step has ended, well or badly
	KindCaseEnd      = "case_end"     // a case-round has ended; without it its steps do not count
	KindPause        = "pause"        // the run waits for the user; the next session goes on behind it
	KindDeparture    = "departure"    // found out while running
	KindWarning      = "warning"      // of the run, or of one case
	KindSessionEnd   = "session_end"  // clean, interrupted or paused
	KindLook         = "look"         // whether another round is run, where the plan leaves it to the run
	KindPrecondition = "precondition" // a place was written to until its rate settled
	KindRunEnd       = "run_end"      // nothing is left to do
)

// How a session ended.
const (
	Clean       = "clean"
	Interrupted = "interrupted"
	Paused      = "paused"
	Lost        = "lost" // no session_end was written: killed, or the machine went down
)

// Record is one line of the journal. Exactly the payload that Kind names is set.
type Record struct {
	Schema       int            `json:"schema"` // SchemaVersion; set by [RunDir.Append]
	Seq          int            `json:"seq"`    // from 1 without gaps; set by [RunDir.Append]
	At           time.Time      `json:"at"`     // wall clock, UTC
	Kind         string         `json:"kind"`
	Run          *RunStart      `json:"run,omitempty"`
	Session      *Session       `json:"session,omitempty"` // its start facts; Finished and End are empty
	Round        *RoundStart    `json:"round,omitempty"`
	CaseStart    *CaseStart     `json:"case_start,omitempty"`
	StepStart    *StepStart     `json:"step_start,omitempty"`
	Step         *StepEnd       `json:"step,omitempty"`
	CaseEnd      *CaseEnd       `json:"case_end,omitempty"`
	Pause        *Pause         `json:"pause,omitempty"`
	Departure    *Departure     `json:"departure,omitempty"`
	Warning      *WarningRecord `json:"warning,omitempty"`
	SessionEnd   *SessionEnd    `json:"session_end,omitempty"`
	RunEnd       *RunEnd        `json:"run_end,omitempty"`
	Look         *Look          `json:"look,omitempty"`
	Precondition *Precondition  `json:"precondition,omitempty"`
}

// RunStart is what is fixed for the whole run.
type RunStart struct {
	ID         string      `json:"id"` // a safe name, see [SafeName]
	Tool       Tool        `json:"tool"`
	Plan       PlanRef     `json:"plan"`
	Seed       uint64      `json:"seed"`
	Rounds     int         `json:"rounds"` // with Auto the least number
	Departures []Departure `json:"departures"`
	Places     []Place     `json:"places"`
	Cases      []PlanCase  `json:"cases"` // in plan order, which is the order of the result
	// Identify allows host name, user and absolute paths; without it they are removed from every record.
	Identify bool `json:"identify"`
	// Keep leaves the images; later sessions of the run do so too.
	Keep bool `json:"keep,omitempty"`
	// Inputs are the names of the files that the user brought, in plan order.
	Inputs []string `json:"inputs,omitempty"`
	// Auto leaves the number of rounds to the run; nil: it is fixed.
	Auto *AutoRounds `json:"auto,omitempty"`
}

// Place is a named folder that containers are put into; "" is the run folder.
type Place struct {
	Name string `json:"name"`
	Path string `json:"path,omitempty"` // only with --identify
	// Given is set where the user named the folder: a resume has to find it again.
	Given bool `json:"given,omitempty"`
}

// PlanCase is a case as the plan asks for it.
type PlanCase struct {
	ID       string      `json:"id"`
	Keys     [][2]string `json:"keys"`
	Baseline bool        `json:"baseline"`
	Target   Target      `json:"target"`
}

// RoundStart is the order in which the cases of one round are run.
type RoundStart struct {
	Round int      `json:"round"` // from 1
	Order []string `json:"order"` // case ids
}

// CaseStart starts a case-round. A second one for the same case and round
// starts it anew: what the first attempt measured no longer counts.
type CaseStart struct {
	Case      string `json:"case"`
	Round     int    `json:"round"`
	Target    Target `json:"target"`
	Container string `json:"container"` // file name in the run's folder at the place
	Place     string `json:"place"`
}

// StepStart is which step is about to start.
type StepStart struct {
	Case  string `json:"case"`
	Round int    `json:"round"`
	Index int    `json:"index"`
	Do    string `json:"do"`
	Phase string `json:"phase,omitempty"`
}

// StepEnd carries one executed step.
type StepEnd struct {
	Case  string `json:"case"`
	Round int    `json:"round"`
	Step  Step   `json:"step"`
}

// CaseEnd ends a case-round. It may come without a [CaseStart] for a skipped case.
type CaseEnd struct {
	Case   string `json:"case"`
	Round  int    `json:"round"`
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
	// Target is what was really made: file system and band size used, backend.
	Target *Target `json:"target,omitempty"`
}

// Pause is a checkpoint at which the user has to do something. Inside a case it
// names the container, so that resume can see that it is still the same one;
// before a case Container is empty.
type Pause struct {
	Case      string `json:"case"`
	Round     int    `json:"round"`
	Step      int    `json:"step"` // index of the step that comes next
	Place     string `json:"place"`
	Container string `json:"container"`
	Identity  string `json:"identity"` // changes when the container is swapped for another one
	Message   string `json:"message"`
	Key       string `json:"key,omitempty"` // the manual axis and the value it has to have
	Value     string `json:"value,omitempty"`
	// Others are the containers that convert, transfer and damage steps have made of the case's own.
	Others []PausedContainer `json:"others,omitempty"`
}

// PausedContainer is a container other than the case's own that a pause leaves.
type PausedContainer struct {
	As        string `json:"as"` // the name that the plan gives it
	Place     string `json:"place"`
	Container string `json:"container"`
	Identity  string `json:"identity"`
}

// WarningRecord is a warning of the run, or of one case when Case is set.
type WarningRecord struct {
	Case string `json:"case,omitempty"`
	Warning
}

// SessionEnd is how a session ended.
type SessionEnd struct {
	Session int    `json:"session"`
	End     string `json:"end"` // clean | interrupted | paused
	Reason  string `json:"reason,omitempty"`
}

// RunEnd is how the run ended.
type RunEnd struct {
	Status string `json:"status"` // done | failed | skipped
}

// payload is the kind of the payload that is set, or "" unless exactly one is.
func (r *Record) payload() string {
	found, n := "", 0
	for _, p := range []struct {
		kind string
		set  bool
	}{
		{KindRun, r.Run != nil}, {KindSession, r.Session != nil}, {KindRound, r.Round != nil},
		{KindCaseStart, r.CaseStart != nil}, {KindStepStart, r.StepStart != nil}, {KindStep, r.Step != nil},
		{KindCaseEnd, r.CaseEnd != nil}, {KindPause, r.Pause != nil}, {KindDeparture, r.Departure != nil},
		{KindWarning, r.Warning != nil}, {KindSessionEnd, r.SessionEnd != nil}, {KindRunEnd, r.RunEnd != nil}, {KindLook, r.Look != nil}, {KindPrecondition, r.Precondition != nil},
	} {
		if p.set {
			found, n = p.kind, n+1
		}
	}
	if n != 1 {
		return ""
	}
	return found
}

// Precondition is how a place was written to before the rounds of a session, until
// its rate had settled by fio's rule or a limit was reached.
type Precondition struct {
	Session int            `json:"session"`
	Place   string         `json:"place"`
	Steady  bool           `json:"steady"`
	Text    string         `json:"text"`
	Slope   float64        `json:"slope"`  // of the last window: by what share of its mean the rate changes from one sample to the next, -1 where there was no window
	Window  int            `json:"window"` // samples
	Limit   float64        `json:"limit"`  // share below which the slope is settled
	Samples []SteadySample `json:"samples"`
}

// SteadySample is one file that was written, flushed and deleted.
type SteadySample struct {
	Bytes      int64 `json:"bytes"`
	DurationNS int64 `json:"duration_ns"`
}

func (p *Precondition) check() error { return optional(p.Place) }
