package result

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// How a session ended.
const (
	Clean       = "clean"
	Interrupted = "interrupted"
	Paused      = "paused"
	Lost        = "lost" // no session_end was written: killed, or the machine went down
)

// Record is one line of the journal: an event, its time, and exactly one
// payload. The payload's JSON key is the kind of the record. A reader rejects an
// unknown kind: the record may be damaged, and a result without it may lack
// measured data.
type Record struct {
	Schema int       `json:"schema"` // SchemaVersion; set when it is appended
	Seq    int       `json:"seq"`    // from 1 without gaps; set when it is appended
	At     time.Time `json:"at"`     // wall clock, UTC
	Kind   string    `json:"kind"`   // set when it is appended

	// Run is the first record of every journal, and only there.
	Run *RunStart `json:"run,omitempty"`
	// Session has the facts from its start; Finished and End are empty.
	Session *Session `json:"session,omitempty"`
	// Round is the order of the cases in one round.
	Round *RoundStart `json:"round,omitempty"`
	// CaseStart starts a case-round with a fresh container.
	CaseStart *CaseStart `json:"case_start,omitempty"`
	// StepStart is about a step that a crash may interrupt.
	StepStart *StepStart `json:"step_start,omitempty"`
	// Step has ended, with or without an error.
	Step *StepEnd `json:"step,omitempty"`
	// CaseEnd ends a case-round; without it its steps do not count.
	CaseEnd *CaseEnd `json:"case_end,omitempty"`
	// Pause waits for the user; the next session continues here.
	Pause *Pause `json:"pause,omitempty"`
	// Departure is a deviation that was found during the run.
	Departure  *Departure     `json:"departure,omitempty"`
	Warning    *WarningRecord `json:"warning,omitempty"`
	SessionEnd *SessionEnd    `json:"session_end,omitempty"`
	// RunEnd is written when the run has no work left.
	RunEnd *RunEnd `json:"run_end,omitempty"`
	// Look decides on another round, where the run does so.
	Look *Look `json:"look,omitempty"`
	// Precondition was written to a place until its rate settled.
	Precondition *Precondition `json:"precondition,omitempty"`
}

var (
	errSchema = errors.New("foreign schema")
	errKind   = errors.New("unknown kind of record")
)

// payload is the only payload of the record, its kind, and whether the record's
// own kind exists.
func (r *Record) payload() (kind string, payload any, known bool) {
	v := reflect.ValueOf(r).Elem()
	for i := range v.NumField() {
		f := v.Field(i)
		if f.Kind() != reflect.Pointer || known && f.IsNil() {
			continue
		}
		name, _ := jsonName(v.Type().Field(i))
		known = known || name == r.Kind
		switch {
		case f.IsNil():
		case payload != nil:
			return "", nil, known // there is another one
		default:
			kind, payload = name, f.Interface()
		}
	}
	return kind, payload, known
}

// check rejects a record that cannot be true or names files outside of the
// run's folders.
func (r *Record) check() error {
	kind, payload, known := r.payload()
	switch {
	case r.Schema != SchemaVersion:
		return fmt.Errorf("schema %d, this program knows %d: %w", r.Schema, SchemaVersion, errSchema)
	case !known:
		return fmt.Errorf("%w %q", errKind, r.Kind)
	case kind != r.Kind:
		return fmt.Errorf("record of kind %q does not contain that and only that", r.Kind)
	case r.At.IsZero():
		return fmt.Errorf("record of kind %q has no time", r.Kind)
	}
	if p, ok := payload.(interface{ check() error }); ok {
		if err := p.check(); err != nil {
			return fmt.Errorf("%s record: %w", kind, err)
		}
	}
	return nil
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
	// Identify allows host name, user and absolute paths; without it they are
	// removed from every record.
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
	// Given is set where the user named the folder: a resume has to find it
	// again.
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

// CaseEnd ends a case-round. It may come without a [CaseStart] for a skipped
// case.
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
	// Containers are the case's own container and those that convert, transfer
	// and damage steps have made of it.
	Containers []PausedContainer `json:"containers,omitempty"`
}

// PausedContainer is a container that a pause leaves.
type PausedContainer struct {
	As        string `json:"as"` // the name that the plan gives it, "" for the case's own
	Place     string `json:"place"`
	Container string `json:"container"`
	Identity  string `json:"identity"`
	// State is what the runner needs to continue with it.
	State json.RawMessage `json:"state"`
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

// Precondition is how a place was written to before the rounds of a session,
// until its rate had settled by fio's rule or a limit was reached.
type Precondition struct {
	Session int    `json:"session"`
	Place   string `json:"place"`
	Steady  bool   `json:"steady"`
	Text    string `json:"text"`
	// Slope is how much the rate of the last window changes from one sample to
	// the next, as a share of its mean; -1 without a window.
	Slope   float64        `json:"slope"`
	Window  int            `json:"window"` // samples
	Limit   float64        `json:"limit"`  // share below which the slope is settled
	Samples []SteadySample `json:"samples"`
}

// SteadySample is one file that was written, flushed and deleted.
type SteadySample struct {
	Bytes      int64 `json:"bytes"`
	DurationNS int64 `json:"duration_ns"`
}

// Why rounds = "auto" ended a run.
const (
	StopPrecise = "precision" // every interval is as narrow as asked
	StopRounds  = "rounds"    // the limits that were reached
	StopTime    = "time"
	StopWritten = "written"
	StopNothing = "nothing" // no case gave a number that could become more certain
)

var stops = []string{StopPrecise, StopRounds, StopTime, StopWritten, StopNothing}

// AutoRounds is how the number of rounds is determined during the run. It is
// fixed before the first round, as the level of every interval depends on it.
type AutoRounds struct {
	// Precision is the half-width of every headline's interval, as a share of
	// its value, at which the run ends.
	Precision float64 `json:"precision"`
	// Looks are the numbers of rounds after which the intervals are judged,
	// ascending; the last is the greatest possible number of rounds.
	Looks      []int `json:"looks"`
	MaxRounds  int   `json:"max_rounds"`            // as asked; what MaxWritten allows may be less
	MaxTimeNS  int64 `json:"max_time_ns,omitempty"` // of all sessions together; 0 is no limit
	MaxWritten int64 `json:"max_written,omitempty"` // bytes written by steps and canaries; 0 is no limit
	// Decisions are what came of it, look by look; none before the first round,
	// and none in a pooled result.
	Decisions []Look `json:"decisions,omitempty"`
}

// Look is one decision on whether another round is run.
type Look struct {
	Round     int            `json:"round"`      // rounds that were done
	Stop      string         `json:"stop"`       // precision | rounds | time | written | nothing; "" goes on
	Text      string         `json:"text"`       // the same in words
	ElapsedNS int64          `json:"elapsed_ns"` // of all sessions so far
	Written   int64          `json:"written"`    // bytes so far
	Judged    int            `json:"judged"`     // headlines that can have an interval
	Wide      []WideInterval `json:"wide"`       // those whose interval is wider than asked, or missing
}

// WideInterval is a headline that is not as certain as asked.
type WideInterval struct {
	Case  string `json:"case"`
	Phase string `json:"phase"`
	Op    string `json:"op"`
	Cycle int    `json:"cycle"`
	// Half is the half-width as a share of the value; -1: no interval yet, or
	// the value is zero.
	Half float64 `json:"half"`
}

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
	var bytes, busy int64
	for i, f := range s.Samples {
		if f.Bytes < 0 || f.StartNS < 0 || f.DurationNS < 0 || f.DurationNS > s.DurationNS {
			return fmt.Errorf("sample %d has %d bytes, starts at %d ns and takes %d ns, its step %d ns",
				i+1, f.Bytes, f.StartNS, f.DurationNS, s.DurationNS)
		}
		if !f.Stopped || !s.IsSerial() {
			bytes, busy = bytes+f.Bytes, busy+f.DurationNS
		}
	}
	p := cmp.Or(s.Span, &Span{})
	long := p.LastDoneNS - p.GateNS // without the times between waves, PausedNS
	switch {
	case s.StartNS < 0 || s.DurationNS < 0:
		return fmt.Errorf("step starts at %d ns and takes %d ns", s.StartNS, s.DurationNS)
	case p.GateNS < 0 || p.FirstDoneNS < p.GateNS || p.LastDoneNS < p.FirstDoneNS || p.PausedNS < 0 || p.IdleNS < 0:
		return fmt.Errorf("span from %d ns, first done at %d ns, last at %d ns, paused %d ns, idle %d ns",
			p.GateNS, p.FirstDoneNS, p.LastDoneNS, p.PausedNS, p.IdleNS)
	case p.PausedNS > s.DurationNS-long:
		return fmt.Errorf("span takes %d ns and pauses %d ns, its step takes %d ns", long, p.PausedNS, s.DurationNS)
	case bytes != p.Bytes || busy > p.BusyNS || s.Error == "" && busy < p.BusyNS:
		return fmt.Errorf("samples have %d bytes and take %d ns, their span %d and %d ns",
			bytes, busy, p.Bytes, p.BusyNS)
	}
	return s.checkOperations()
}

// checkOperations rejects operations without the time in which they ran.
func (s *Step) checkOperations() error {
	if span := s.OperationsSpan; len(s.Operations) > 0 &&
		(span == nil || span.DurationNS < 0 || span.DurationNS > s.DurationNS || span.OwnNS < 0) {
		return fmt.Errorf("operations run for %v of %d ns", span, s.DurationNS)
	}
	for i := range s.Operations {
		if err := s.Operations[i].check(s); err != nil {
			return err
		}
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
