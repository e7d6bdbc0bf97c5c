// Package runner executes a plan: rounds in shuffled order, fresh containers,
// steps, a journal record after each step, and a clean-up stack that runs on
// every return path.
//
// The runner measures only the duration of steps; the workload times files. It
// judges no numbers and renders no report. It writes to the run folder and to a
// marked folder of its own at each place, and to no other folder.
//
// # A session
//
// [Run] and [Resume] each execute one session (run.go): they register the run's
// places, write the session record, open the places, measure what is left to
// measure, and remove the images. The rounds of a session (rounds.go) go through
// the combinations of the manual axes, then through rounds, then through the
// cases in an order that depends on seed and round only. With rounds = "auto",
// they decide after each round whether there is another one.
//
// One attempt at one case in one round is a caseRun (caserun.go): it holds all
// state that the steps of the case share. Each kind of step is one row of the
// table stepHandlers (steps.go): what the step needs and how it is executed.
//
// # What survives a crash
//
// The order of writes makes every interruption recoverable:
//
//  1. The registry contains a run before its journal does (registry.go). So
//     [Clean] finds the images of a run that was killed at any moment.
//  2. A folder at a place is marked before the first image is made in it, and the
//     marker is the last file that is deleted (places.go). So each folder
//     that a killed run leaves is recognized as its own, or is empty.
//  3. The record of a step is flushed to the disk before the next step starts. A
//     case-round counts from the moment its end record is flushed; without it,
//     the next session measures the case-round again, with a fresh container.
//  4. At a pause, the containers are detached before the pause record is written
//     with their fingerprints and their files. The next session continues after
//     the pause (resume.go) only if no fingerprint has changed.
//
// # Errors
//
// An error of a step ends its case, not the run. These end the session instead:
// a full or missing place ([Stopped]), a journal that cannot be written, and an
// interrupt. What the engine does not support is known before a case starts
// (preview.go), and skips it.
package runner

import (
	"context"
	"fmt"
	"strings"
	"time"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/host"
	"dmgbench/internal/system/hostio"
)

// Config is everything a run needs. The zero value of a field that is not
// marked as required is usable.
type Config struct {
	Plan     *plan.Plan // required by Run, as executed
	Tool     result.Tool
	Out      string           // required: the run folder
	Places   []Place          // other than the run folder
	Engine   engine.Engine    // required: makes the images
	Why      string           // why this engine was chosen
	Clock    clock.Clock      // required
	Host     result.Host      // facts of this machine
	Boot     string           // digest that identifies this boot of the machine
	Memory   int64            // bytes the program may use
	Virtual  bool             // a hypervisor may cache data that the guest believes to be on a disk
	Warnings []result.Warning // of the host
	// Suspended is for how long the machine has slept or this process was stopped; 0
	// with an error, nil: unknown.
	Suspended func() (time.Duration, error)
	// Stops are the latest times in which this process was stopped; nil: unknown.
	Stops func() []host.Stop
	// Throttled is for how long a limit of processor time has kept this process
	// from running; nil: unknown.
	Throttled func() time.Duration
	// Changes reports how the machine changed during the session, as far as
	// that weakens numbers. It is called once, after the last case. May be nil.
	Changes  func() []result.Warning
	Identify bool
	// Volatile keeps the run folder in the system's memory: it does not survive
	// a power cut. For simulations, which can be repeated from their seed.
	Volatile bool
	Keep     bool // keep the images
	// RetryFailed makes Resume measure the case-rounds again that failed or
	// were discarded.
	RetryFailed bool
	Inputs      map[string]string // paths of the files that the plan names as inputs, by name
	StateDir    string            // contains the registry of runs; "": the run is not registered
	Progress    Progress          // may be nil
	// Wait is called before each step, after a Status that is marked as waiting. It
	// returns when the step may start, or when ctx is done. May be nil.
	Wait func(ctx context.Context)
	Hook hostio.Hook // observes, and may fail, every operation at the places; may be nil
}

// Progress receives the progress of a run, never inside a timed span.
type Progress interface {
	// Status replaces the previous status.
	Status(Status)
	// Message is shown once.
	Message(text string)
	// Warning is a message about a fact that weakens the numbers. The result
	// contains it, too. Of warnings that differ only in their numbers, a
	// session sends the first.
	Warning(text string)
	// Failure is sent when a case fails in a round. The result contains it,
	// too.
	Failure(Failure)
}

// Failure is a case-round that was not measured.
type Failure struct {
	Case   string `json:"case"`
	Round  int    `json:"round"`
	Status string `json:"status"` // failed | discarded
	Reason string `json:"reason"`
}

// Status is how far a run has come.
type Status struct {
	Plan       string `json:"plan"` // its name
	Case       string `json:"case"`
	Do         string `json:"do"`
	Phase      string `json:"phase"`
	Round      int    `json:"round"`
	Rounds     int    `json:"rounds"`
	CaseRound  int    `json:"case_rounds"` // finished
	OfRounds   int    `json:"of_case_rounds"`
	Files      int    `json:"files"`
	OfFiles    int    `json:"of_files"`
	Bytes      int64  `json:"bytes"`
	OfBytes    int64  `json:"of_bytes"`
	TimedNS    int64  `json:"timed_ns"`
	RunBytes   int64  `json:"run_bytes"` // written by the run so far
	OfRunBytes int64  `json:"of_run_bytes"`
	ElapsedNS  int64  `json:"elapsed_ns"` // of the session
	// The forecast covers all rounds and sessions: the work as time at assumed
	// speeds, and the waiting that the protocol prescribes.
	WorkNS   int64 `json:"work_ns"` // done
	OfWorkNS int64 `json:"of_work_ns"`
	WaitedNS int64 `json:"waited_ns"`
	OfWaitNS int64 `json:"of_wait_ns"`
	// Waiting is set where Config.Wait is called next.
	Waiting bool `json:"waiting,omitempty"`
}

// assumedWeight is the share of the work of a run for which assumed speeds count
// as much as measured ones. It keeps the time left from jumping at the start of
// a run.
const assumedWeight = 0.05

// Left estimates the time until the run ends: the waiting that the protocol
// prescribes, and the work at the speed since an earlier status, which is an
// assumed one at first. It is 0 without a forecast.
func (s Status) Left(before Status) time.Duration {
	work := float64(s.OfWorkNS - before.WorkNS)
	if work <= 0 {
		return 0
	}
	// The speed so far is took/share. assumedWeight adds that much of the work
	// at the assumed speed, which is 1 ns of work a nanosecond.
	share := min(float64(s.WorkNS-before.WorkNS)/work, 1)
	took := float64(s.ElapsedNS - before.ElapsedNS - (s.WaitedNS - before.WaitedNS))
	whole := (max(took, 0) + assumedWeight*work) / (share + assumedWeight)
	return time.Duration(whole*(1-share)) + time.Duration(max(s.OfWaitNS-s.WaitedNS, 0))
}

// silentProgress is used where Config.Progress is nil, so that callers need not
// check for it.
type silentProgress struct{}

func (silentProgress) Status(Status)   {}
func (silentProgress) Message(string)  {}
func (silentProgress) Warning(string)  {}
func (silentProgress) Failure(Failure) {}

// Outcome of a run or of one session of it.
type Outcome struct {
	Dir     string
	Status  string   // done | failed | skipped | interrupted | paused
	Message string   // what to do next
	Kept    []string // command lines that open the images that --keep left
	Folders []string // that contain those images
	// Complete reports that the run had ended before: resuming it did not
	// measure.
	Complete bool
}

// Values of the field Status of [Outcome].
const (
	StatusDone        = result.Done
	StatusFailed      = result.Failed
	StatusSkipped     = result.Skipped
	StatusInterrupted = "interrupted"
	StatusPaused      = "paused"
)

// NotFitError means that the host is not fit to measure on; exit status 4.
type NotFitError struct {
	Reasons []string
	Hint    string
}

// Error joins the reasons.
func (e *NotFitError) Error() string {
	return fmt.Sprintf("checking the host: %s", strings.Join(e.Reasons, "; "))
}

// Advice is the hint.
func (e *NotFitError) Advice() string { return e.Hint }

// Place is a named folder that containers are put into. The place "" is the
// default: the run folder, unless --on gave another.
type Place struct {
	Name, Path string
	// Backing is the folder in which the file system at Path keeps its files,
	// "" unless that is to be measured.
	Backing string
}
