// Package runner executes a plan: rounds in shuffled order, fresh containers,
// steps, a journal after every one of them, and a clean-up stack that runs on
// every path out.
//
// It measures only the length of steps; files are timed by the workload. It
// judges nothing and draws no report. What it writes lies in the run folder and
// in a marked folder of its own at each place; nothing else is ever touched.
package runner

import (
	"context"
	"fmt"
	"strings"

	"dmgbench/internal/clock"
	"dmgbench/internal/engine"
	"dmgbench/internal/hostio"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// Place is a named folder that containers are put into; the place "" is the run folder.
type Place struct{ Name, Path string }

// title is what people call the place of a run with this folder.
func (p Place) title(folder string) string {
	switch {
	case p.Name != "":
		return fmt.Sprintf("place %q", p.Name)
	case folder != "" && absolute(p.Path) == absolute(folder):
		return "the run folder"
	}
	return fmt.Sprintf("folder %q", p.Path)
}

// Config is everything a run needs. The zero value of a field that is not
// marked as required is usable.
type Config struct {
	Plan     *plan.Plan // required by Run, as executed
	Tool     result.Tool
	Out      string           // required: the run folder
	Places   []Place          // besides the run folder
	Engine   engine.Engine    // required: makes the images
	Why      string           // why this engine was picked
	Clock    clock.Clock      // required
	Host     result.Host      // facts of this machine
	Boot     string           // digest that tells two boots apart
	Memory   int64            // bytes the program may use
	Virtual  bool             // a hypervisor may cache what the guest believes to be on a disk
	Warnings []result.Warning // of the host
	// Suspended is how long the machine has slept since boot in nanoseconds; nil: not known.
	Suspended func() (int64, error)
	// Changes are what has happened to the machine since the session began, where that weakens
	// numbers; it is asked once, behind the last case. nil: nobody looks.
	Changes  func() []result.Warning
	Identify bool
	// Volatile leaves the run folder to the system's memory: it does not survive a power cut. For simulations,
	// whose runs are many and made again from their seed.
	Volatile bool
	Keep     bool // leave the images
	// RetryFailed measures the case-rounds again that failed or were discarded; of Resume.
	RetryFailed bool
	Inputs      map[string]string // files the plan asks for, by name
	StateDir    string            // registry of runs; "": none is kept
	Progress    Progress          // nil: none
	Hook        hostio.Hook       // sees, and may fail, every operation at the places; nil: none
}

// Progress is told how a run goes on, never inside a timed span.
type Progress interface {
	// Status replaces the last status.
	Status(Status)
	// Message is said once.
	Message(text string)
	// Warning is a message about what weakens the numbers; it is in the result, too. What differs in its numbers only comes once a session.
	Warning(text string)
	// Failure is a case that failed in a round, when it happens; it is in the result, too.
	Failure(Failure)
}

// Failure is how a case ended in one round where it was not measured.
type Failure struct {
	Case   string `json:"case"`
	Round  int    `json:"round"`
	Status string `json:"status"` // failed | discarded
	Reason string `json:"reason"`
}

// Status is where a run stands.
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
	// Forecast, of all rounds and sessions: work in time at assumed speeds, and what the protocol prescribes to wait.
	WorkNS   int64 `json:"work_ns"` // done
	OfWorkNS int64 `json:"of_work_ns"`
	WaitedNS int64 `json:"waited_ns"`
	OfWaitNS int64 `json:"of_wait_ns"`
}

type silent struct{}

func (silent) Status(Status)   {}
func (silent) Message(string)  {}
func (silent) Warning(string)  {}
func (silent) Failure(Failure) {}

// Outcome of a run or of one session of it.
type Outcome struct {
	Dir     string
	Status  string   // done | failed | skipped | interrupted | paused
	Message string   // what to do next
	Kept    []string // command lines that open what --keep left
	Folders []string // that it lies in
	// Complete says that there was nothing to resume.
	Complete bool
}

// How a run stands in [Outcome].
const (
	StatusDone        = result.Done
	StatusFailed      = result.Failed
	StatusSkipped     = result.Skipped
	StatusInterrupted = "interrupted"
	StatusPaused      = "paused"
)

// NotFitError says that the host is not fit to measure on; exit status 4.
type NotFitError struct {
	Reasons []string
	Hint    string
}

// Error joins the reasons.
func (e *NotFitError) Error() string {
	return fmt.Sprintf("checking the host: %s", strings.Join(e.Reasons, "; "))
}

// cleanup is a stack of what has to be undone, last first.
type cleanup struct{ todo []undo }

type undo struct {
	what string
	do   func(context.Context) error
}

func (c *cleanup) push(what string, do func(context.Context) error) {
	c.todo = append(c.todo, undo{what, do})
}

// run undoes everything and gives every error; it goes on after one.
func (c *cleanup) run(ctx context.Context) []error {
	var errs []error
	for len(c.todo) > 0 {
		u := c.todo[len(c.todo)-1]
		c.todo = c.todo[:len(c.todo)-1]
		if err := u.do(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", u.what, err))
		}
	}
	return errs
}
