package runner

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"time"
	"unicode"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/workload"
)

// run is one session of one run. Its fields are used by one goroutine; the steps of
// a parallel block get copies of the case's state, see [caseRun.splitParallel].
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
	manualSet    map[string]string     // values of manual axes that the user set during a pause, by axis
}

// caseRoundKey names one case in one round.
type caseRoundKey struct {
	id    string
	round int
}

// Run executes a plan from the start. The error is about the run as a whole; failed
// cases are in the journal and in the outcome's status.
func Run(ctx context.Context, c Config) (Outcome, error) {
	if err := checkWritable(c); err != nil {
		return Outcome{}, err
	}
	if err := checkRunSpace(c); err != nil {
		return Outcome{}, err
	}
	auto, err := AutoRounds(c.Plan)
	if err != nil {
		return Outcome{}, err
	}
	id := newID(c.Clock.Wall())
	dir, err := result.CreateRun(c.Out, id)
	if err != nil {
		return Outcome{}, err
	}
	defer dir.Close()
	if c.Volatile {
		dir.Volatile()
	}
	if err := dir.WriteFile(result.PlanFile, c.Plan.Canonical()); err != nil {
		return Outcome{}, err
	}
	r := newRun(c, c.Plan, dir, &result.State{Run: result.RunStart{ID: id, Auto: auto}})
	if err := r.append(result.Record{Run: r.runStart()}); err != nil {
		return Outcome{}, err
	}
	return r.runSession(ctx)
}

// Resume continues an interrupted or paused run in the folder dir.
func Resume(ctx context.Context, dir string, c Config) (Outcome, error) {
	r, err := resumeRun(ctx, dir, c)
	if err != nil {
		return Outcome{}, err
	}
	defer r.dir.Close()
	state := r.state
	if state.Ended != nil && !(c.RetryFailed && state.FailedRounds() > 0) {
		if !c.Keep && !state.Run.Keep {
			unregisterEnded(c.StateDir, state.Run.ID)
		}
		return completeOutcome(dir, state), nil
	}
	if err := r.checkResume(); err != nil {
		return Outcome{}, err
	}
	r.pauseHeld = state.Paused != nil && state.Paused.Container != ""
	r.maybeAttached = true // until the session has looked for images of earlier ones
	return r.runSession(ctx)
}

// resumeRun opens and locks the run folder and reads its journal.
func resumeRun(ctx context.Context, dir string, c Config) (*run, error) {
	var say func(string)
	if c.Progress != nil {
		say = c.Progress.Message
	}
	var d *result.RunDir
	err := RetryWhileLocked(ctx, c.Clock, result.ErrBusy, say, func() (err error) {
		d, err = result.ResumeRun(dir)
		return err
	})
	if err != nil {
		return nil, err
	}
	recs, err := d.Journal()
	if err != nil {
		d.Close()
		return nil, err
	}
	state, err := result.Replay(recs)
	if err != nil {
		d.Close()
		return nil, fmt.Errorf("reading the journal of %q: %w", dir, err)
	}
	c.Out, c.Identify, c.Keep = dir, state.Run.Identify, c.Keep || state.Run.Keep
	c.RetryFailed = c.RetryFailed || state.Retrying()
	r := newRun(c, nil, d, state)
	r.manualSet = manualSettings(recs)
	return r, nil
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

// newID is a safe name that no other run has: the time in UTC, which sorts runs by
// age, and three random bytes for runs that start in the same second.
func newID(at time.Time) string {
	var b [3]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return at.UTC().Format("20060102T150405Z") + "-" + hex.EncodeToString(b[:])
}

// runStart is the first record of the journal. It contains everything that is fixed
// for the whole run; paths are in it only with --identify.
func (r *run) runStart() *result.RunStart {
	s := &result.RunStart{
		ID: r.id, Tool: r.c.Tool, Seed: r.p.Run.Seed, Rounds: r.p.Run.Rounds, Identify: r.c.Identify, Keep: r.c.Keep,
		Auto: r.auto, Plan: result.PlanRef{Name: r.p.Name, Title: r.p.Title, Digest: r.p.Digest()},
	}
	s.Inputs, s.Departures = inputs(r.c)
	for _, name := range missingPlaces(r.c) {
		if _, here := plan.HereFor(name); here { // a change of the plan, which is a deviation already
			continue
		}
		s.Departures = append(s.Departures, result.Departure{Kind: "place",
			Text: fmt.Sprintf("no folder was given for place %q: the run folder is used", name)})
	}
	// Given marks the places that the user named: a resumed run must find them
	// again.
	for _, p := range allPlaces(r.c) {
		place := result.Place{Name: p.Name, Given: slices.Contains(r.c.Places, p)}
		if r.c.Identify {
			place.Path = p.Path
		}
		s.Places = append(s.Places, place)
	}
	for _, c := range r.cases {
		pc := result.PlanCase{ID: c.ID, Keys: [][2]string{}, Baseline: c.Baseline, Target: requestedTarget(c.Settings)}
		for _, kv := range c.Keys {
			pc.Keys = append(pc.Keys, [2]string{kv.Key, kv.Value})
		}
		s.Cases = append(s.Cases, pc)
	}
	return s
}

// requestedTarget is the target of a case as the plan asks for it.
func requestedTarget(s plan.Settings) result.Target {
	t := result.Target{
		Kind: s.Target, Place: s.Place, Format: s.Format, Encryption: s.Encryption,
		Size: int64(s.Size), BandSize: int64(s.BandSize), Backend: s.Backend,
	}
	if len(s.Filesystems) > 0 {
		t.Filesystem = s.Filesystems[0]
	}
	return t
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

// warn writes a warning to the journal. An error of the journal stops the run at
// the next record.
func (r *run) warn(caseID, kind, text string) {
	r.warnProgress(caseID, text)
	_ = r.append(result.Record{Warning: &result.WarningRecord{
		Case: caseID, Warning: result.Warning{Kind: kind, Text: text},
	}})
}

// shuffledCases is the order of the cases in one round. It depends on seed and
// round only.
func (r *run) shuffledCases(round int) []string {
	ids := make([]string, len(r.cases))
	for i, c := range r.cases {
		ids[i] = c.ID
	}
	rng := mathrand.New(mathrand.NewPCG(r.p.Run.Seed, uint64(round)))
	rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return ids
}

// completeOutcome is the outcome of resuming a run that has ended.
func completeOutcome(dir string, s *result.State) Outcome {
	out := Outcome{Dir: dir, Status: s.Ended.Status, Complete: true, Message: "the run is complete; no work is left"}
	if n := s.FailedRounds(); n > 0 {
		out.Message = fmt.Sprintf("the run has ended; %s failed; repeat with: dmgbench resume --retry-failed %s",
			count(n, "case-round"), dir)
	}
	return out
}
