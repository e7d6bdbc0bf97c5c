package runner

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"dmgbench/internal/bench/workload"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// run is one session of one run. Its fields are used by one goroutine; the
// steps of a parallel block get copies of the case's state, see
// [caseRun.splitParallel].
type run struct {
	c       Config
	p       *plan.Plan
	cases   []plan.Case
	dir     *result.RunDir
	state   *result.State // by the journal when the session began
	id      string
	session int                // from 1
	auto    *result.AutoRounds // nil where the plan has a fixed number of rounds
	started time.Duration      // by Config.Clock
	places  map[string]*workFolder
	buffers workload.Buffers
	kept    []string // command lines that open kept images

	pauseHeld     bool // the containers of a pause are still needed
	stillAttached bool // a container could not be detached
	maybeAttached bool // a container may be attached below the run's folders

	writtenByAll int64 // bytes that steps and canaries of all sessions wrote
	written      int64 // bytes that steps of this session wrote
	roundWrites  int64 // bytes that the steps of one round write
	goal         int   // expected number of rounds, for the progress
	forecast     forecast
	finished     int                   // case-rounds, for the progress
	done         map[caseRoundKey]bool // ended in this session
	warned       map[string]bool       // texts that Progress has received
}

// caseRoundKey names one case in one round.
type caseRoundKey struct {
	id    string
	round int
}

// newRun is the next session of a run in the state. The plan p may be nil; then
// setPlan has to follow, as a resumed run reads its plan from the run folder.
func newRun(c Config, p *plan.Plan, dir *result.RunDir, state *result.State) *run {
	if c.Progress == nil {
		c.Progress = silentProgress{}
	}
	c.Warnings = append(slices.Clone(c.Warnings), dir.Warnings()...)
	r := &run{c: c, dir: dir, state: state, id: state.Run.ID, session: len(state.Sessions) + 1, auto: state.Run.Auto,
		done: map[caseRoundKey]bool{}, warned: map[string]bool{}}
	if state.Orders == nil {
		state.Orders = map[int][]string{}
	}
	if p != nil {
		r.setPlan(p)
	}
	return r
}

// setPlan sets the plan and its cases, in plan order.
func (r *run) setPlan(p *plan.Plan) { r.c.Plan, r.p, r.cases = p, p, p.Cases() }

// newID is a safe name that no other run has: the time in UTC, which sorts runs
// by age, and three random bytes for runs that start in the same second.
func newID(at time.Time) string {
	var b [3]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return at.UTC().Format("20060102T150405Z") + "-" + hex.EncodeToString(b[:])
}

// append writes one record with the time of day. It may be lost in a power cut
// until dir.Sync.
func (r *run) append(rec result.Record) error {
	rec.At = r.c.Clock.Wall()
	return r.dir.Append(rec)
}

// commit writes one record that survives a power cut.
func (r *run) commit(rec result.Record) error { return errors.Join(r.append(rec), r.dir.Sync()) }

// warnProgress sends a warning once, whatever its numbers.
func (r *run) warnProgress(caseID, text string) {
	key := strings.Map(func(c rune) rune {
		if unicode.IsDigit(c) {
			return -1
		}
		return c
	}, text)
	if r.warned[key] {
		return
	}
	r.warned[key] = true
	if caseID != "" {
		text = caseID + ": " + text
	}
	r.c.Progress.Warning(text)
}

// warn writes a warning to the journal. An error of the journal stops the run
// at the next record.
func (r *run) warn(caseID, kind, text string) {
	r.warnProgress(caseID, text)
	_ = r.append(result.Record{Warning: &result.WarningRecord{
		Case: caseID, Warning: result.Warning{Kind: kind, Text: text},
	}})
}

// undoStack contains what has to be undone, last first.
type undoStack struct{ todo []undo }

// undo is one action that reverses another.
type undo struct {
	what string // completes an error: "removing the container"
	do   func(context.Context) error
}

// pausedError ends a session on purpose: the user has to do something.
type pausedError struct{ message string }

// Error contains what the user has to do.
func (e *pausedError) Error() string { return "paused: " + e.message }

// now is the session's clock in nanoseconds since its start.
func (r *run) now() int64 { return int64(r.c.Clock.Now() - r.started) }

// cleanupTime bounds the clean-up after an interrupt.
const cleanupTime = 2 * time.Minute

// push adds an action that is undone before all earlier ones.
func (s *undoStack) push(what string, do func(context.Context) error) {
	s.todo = append(s.todo, undo{what, do})
}

// run undoes everything, also after an error, and returns every error.
func (s *undoStack) run(ctx context.Context) []error {
	var errs []error
	for len(s.todo) > 0 {
		u := s.todo[len(s.todo)-1]
		s.todo = s.todo[:len(s.todo)-1]
		if err := u.do(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", u.what, err))
		}
	}
	return errs
}
