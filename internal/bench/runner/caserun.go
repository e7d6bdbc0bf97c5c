package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/host"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/units"
)

// stopError ends the session because a place is full or gone, as an interrupt
// does: no other case could be measured, and the run can be resumed when the
// place is back or has space.
type stopError struct{ error }

// Unwrap is the cause, such as ENOSPC.
func (e *stopError) Unwrap() error { return e.error }

// Stopped reports whether a run ended early because a place was full or gone.
// Its folder contains what was measured.
func Stopped(err error) bool { return errors.As(err, new(*stopError)) }

// journalError is a journal that cannot be written: the run stops, and the case
// does not count.
type journalError struct{ error }

// Unwrap is the error of the run folder.
func (e *journalError) Unwrap() error { return e.error }

// errSlept is an attempt that does not count, because the machine slept in it or
// the process was stopped.
var errSlept = errors.New("the machine slept or the process was stopped")

// An attempt that was suspended for more than sleepThreshold does not count. A
// step that was for more than stopThreshold gets a warning: less may be an effect
// of reading two clocks.
const (
	sleepThreshold = time.Second
	stopThreshold  = 100 * time.Millisecond
)

// suspended is how long the machine has slept or the process was stopped, 0 if
// unknown.
func (r *run) suspended() (slept time.Duration) {
	if r.c.Suspended != nil {
		slept, _ = r.c.Suspended()
	}
	return slept
}

// throttled is how long a limit of processor time has kept the process from
// running.
func (r *run) throttled() time.Duration {
	if r.c.Throttled == nil {
		return 0
	}
	return r.c.Throttled()
}

// runCaseRound measures one case in one round, a second time if the machine
// slept meanwhile.
func (r *run) runCaseRound(ctx context.Context, c plan.Case, round int, pause *result.Pause) error {
	end := &result.CaseEnd{Case: c.ID, Round: round}
	err := r.attempt(ctx, c, end, pause)
	if errors.Is(err, errSlept) {
		r.warn(c.ID, "slept", "the machine slept or the process was stopped during this case; it was measured again")
		err = r.attempt(ctx, c, end, nil)
	}
	if errors.Is(err, errSlept) {
		end.Status, end.Reason, err = result.Discarded, "the machine slept or the process was stopped twice while this case was measured", nil
	}
	if err != nil {
		return err
	}
	// The end record makes the case-round count. Before it is durable, a killed
	// run measures the case-round again.
	r.finished++
	r.forecast.finish(c.ID)
	r.pauseHeld = false
	if end.Status == result.Failed || end.Status == result.Discarded {
		r.c.Progress.Failure(Failure{Case: c.ID, Round: round, Status: end.Status, Reason: end.Reason})
	}
	return r.commit(result.Record{CaseEnd: end})
}

// attempt measures one case-round and sets status, reason and target of end.
// The error stops the run, except errSlept; errors that concern only the case
// are its reason.
func (r *run) attempt(ctx context.Context, c plan.Case, end *result.CaseEnd, pause *result.Pause) error {
	x, err := r.newCaseRun(c, end.Round)
	if err != nil {
		return err
	}
	if u := unsupported(x.eng, c); u != nil { // known before the first byte is written
		end.Status, end.Reason = result.Skipped, engine.Advised(u)
		return nil
	}
	// An attempt that continues a pause has its start record already.
	if pause == nil {
		r.pauseHeld = false
		start := &result.CaseStart{Case: c.ID, Round: x.round, Target: requestedTarget(c.Settings), Container: x.base,
			Place: c.Settings.Place}
		r.append(result.Record{CaseStart: start})
	}
	caseErr := x.run(ctx, pause)
	// As long as the files of the case are there.
	x.outOfInodes = errors.Is(caseErr, syscall.ENOSPC) && x.place.dir.IsOutOfInodes()
	if main := x.containers[""]; main != nil { // before containers are removed
		t, m := requestedTarget(c.Settings), main.con.Made()
		t.Filesystem, t.BandSizeUsed, t.ServedBy, t.Owners = m.Filesystem, m.BandSize, m.ServedBy, m.Owners
		t.Backend, t.Mount = cmp.Or(m.Backend, t.Backend), cmp.Or(m.Mount, t.Mount)
		end.Target = &t
	}
	if _, ok := errors.AsType[*pausedError](caseErr); ok {
		return caseErr
	}
	if ctx.Err() != nil && r.pauseHeld { // no step was executed after the pause: it is still valid
		return &pausedError{pause.Message}
	}
	x.finish()
	if err := x.stopReason(ctx, caseErr); err != nil {
		return err
	}
	if end.Status = result.Done; caseErr == nil {
		return nil
	}
	end.Status, end.Reason = result.Failed, engine.Advised(caseErr)
	switch {
	case errors.As(caseErr, new(*journalError)) && r.dir.Sync() != nil:
		return caseErr // else the disk was full of files that are removed now
	case errors.As(caseErr, new(*engine.UnsupportedError)):
		end.Status = result.Skipped
	}
	return nil
}

// stopReason is the error that ends the session after a case, or errSlept; nil
// where the error concerns only the case. The containers have been removed.
func (x *caseRun) stopReason(ctx context.Context, caseErr error) error {
	// The order matters: after an interrupt or a sleep, other errors of the
	// case are likely to be their effects.
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case x.hasSlept():
		return errSlept
	case caseErr == nil:
		return nil
	}
	why, need := "", plan.Estimate(x.r.p, x.c).HostPeak
	free, _, _, err := x.place.dir.FreeSpace()
	switch {
	case errors.Is(caseErr, syscall.EDQUOT):
		why = x.place.title + " is at its quota"
	case errors.Is(caseErr, syscall.EMFILE):
		why = fmt.Sprintf("this process has as many files open as it may, %d", hostio.MaxFiles())
	case errors.Is(caseErr, syscall.ENFILE):
		why = "the system has as many files open as it may"
	case errors.Is(caseErr, syscall.ENOMEM):
		why = "the system has no memory left"
	// A volume inside an image may also be full: then the place has space.
	case err == nil && free < int64(need) && !isSimulated(x.r.c.Engine):
		why = fmt.Sprintf("%s has %s free, the case needs %s", x.place.title, units.Bytes(free).Human(), need.Human())
	case x.outOfInodes:
		why = x.place.title + " has no inode left"
	case errors.As(caseErr, new(*journalError)):
		return nil
	}
	for _, h := range append(x.handles(), &handle{place: x.place}) {
		if why == "" && !h.place.isAt(h.place.root.Path()) { // its disk was removed, or the folder replaced
			why = h.place.title + " is gone"
		}
	}
	if why == "" {
		return nil
	}
	return &stopError{fmt.Errorf("measuring case %q: %s: %w", x.c.ID, why, caseErr)}
}

// liveFiles are the files that the steps of a case have put on a container.
type liveFiles struct {
	Live    []workload.Item       // of write steps, in the order written
	Named   []workload.Item       // of copy, stream and random steps; they belong to no batch
	Sets    map[int]string        // file set of each batch: its data verifies the files
	Batches int                   // number of the last batch
	Trees   map[int]workload.Tree `json:",omitempty"` // by batch: folders and links of trees
	Edited  int64                 // bytes that steps wrote to files since the last manifest
	// InFlight are files that were being written when the container was damaged:
	// whether they are there is not known.
	InFlight []workload.Item `json:",omitempty"`
}

// clone is a copy that can change independently.
func (l *liveFiles) clone() liveFiles {
	return liveFiles{slices.Clone(l.Live), slices.Clone(l.Named), maps.Clone(l.Sets), l.Batches,
		maps.Clone(l.Trees), l.Edited, slices.Clone(l.InFlight)}
}

// containerState is what a pause writes to the journal, to continue with a
// container.
type containerState struct {
	Spec     engine.Spec // as which it was made
	Options  engine.AttachOptions
	Attached bool // at the pause
	// Before is what the backing folder of the place occupied before the
	// container was made.
	Before engine.Usage
	liveFiles
}

// handle is one container of a case with the files on it.
type handle struct {
	con   engine.Container
	att   engine.Attachment // nil while detached
	place *workFolder
	containerState
	attachNS int64    // duration of the last attach
	manifest manifest // nil before the first one, and after a pause
}

// caseRun is one attempt at one case in one round: all state that its steps
// share.
type caseRun struct {
	r     *run
	c     plan.Case
	round int
	eng   engine.Engine
	spec  engine.Spec
	place *workFolder
	base  string // name of the case's own container, without extension

	// The case's own container, with the name "", and those that steps derived
	// from it, by the name in the plan.
	containers map[string]*handle
	undo       undoStack
	gate       *workload.Gate // of the parallel block that this step is in

	cycle    int           // of the repeat block, from 1; 0 outside
	mayFail  bool          // in a repeat block that ends at the first step that fails
	index    int           // of the next step
	executed int           // steps that have ended, without canaries
	pause    *result.Pause // that this attempt continues after its first pause.Step steps
	slept    time.Duration // suspended time of the machine at the start
	counts   bool          // its containers are kept: a later sleep does not discard it

	outOfInodes bool // the case failed since its place can have no more files
}

// newCaseRun prepares an attempt. The name of the case's container contains the
// number of the case in the plan and the round, so that it is unique in the
// run.
func (r *run) newCaseRun(c plan.Case, round int) (*caseRun, error) {
	f, err := r.placeNamed(c.Settings.Place)
	if err != nil {
		return nil, fmt.Errorf("running case %q: %w", c.ID, err)
	}
	number := 1 + slices.IndexFunc(r.cases, func(o plan.Case) bool { return o.ID == c.ID })
	return &caseRun{
		r: r, c: c, round: round, eng: engineFor(r.c.Engine, c.Settings), spec: specOf(c.Settings), place: f,
		containers: map[string]*handle{}, slept: r.suspended(), base: fmt.Sprintf("case%02d-round%d", number, round),
	}, nil
}

// placeNamed is the work folder at a place. It fails for a place that the user
// gave no folder for.
func (r *run) placeNamed(name string) (*workFolder, error) {
	if f := r.places[name]; f != nil {
		return f, nil
	}
	return nil, fmt.Errorf("no folder was given for place %q; use --on %s=DIR", name, name)
}

// run executes the steps, those after a pause if pause is not nil.
func (x *caseRun) run(ctx context.Context, pause *result.Pause) (err error) {
	x.pause = pause
	if x.r.p.Run.Canary && pause == nil {
		err = x.canary(ctx)
	}
	if x.r.p.Run.Canary {
		x.index = 2 // the canary's two steps have the first numbers
	}
	if err == nil && pause != nil {
		err = x.restore(ctx)
	}
	if err == nil {
		err = x.runSteps(ctx, x.c.Steps)
	}
	if err != nil || !x.r.c.Keep || x.containers[""] == nil {
		return err
	}
	if x.hasSlept() { // images of an attempt that does not count are not kept
		return errSlept
	}
	if err := x.detachAll(ctx); err != nil {
		return err
	}
	for _, h := range x.handles() {
		x.r.kept = append(x.r.kept, h.con.OpenWith(filepath.Join(h.place.dir.Path(), h.con.Name()))...)
	}
	x.counts = true
	return nil
}

// hasSlept reports whether the machine slept or the process was stopped since the attempt started. Kept
// images are checked before they are detached: a later sleep affects no
// measured step.
func (x *caseRun) hasSlept() bool { return !x.counts && x.r.suspended()-x.slept > sleepThreshold }

// detachAll detaches the containers and empties the undo stack, since they
// stay.
func (x *caseRun) detachAll(ctx context.Context) error {
	for _, h := range x.handles() {
		if h.att == nil {
			continue
		}
		s := &stepRun{x: x, h: h, rec: &result.Step{}}
		if err := s.detach(ctx); err != nil {
			return err
		}
	}
	x.undo = nil
	return nil
}

// finish undoes what is left. It has its own context, so that an interrupt does
// not stop it.
func (x *caseRun) finish() {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTime)
	defer cancel()
	for _, err := range x.undo.run(ctx) {
		x.r.maybeAttached = true
		x.r.warn(x.c.ID, "cleanup", err.Error())
	}
}

// handles are the existing containers, the case's own first.
func (x *caseRun) handles() []*handle {
	var out []*handle
	for _, name := range slices.Sorted(maps.Keys(x.containers)) {
		out = append(out, x.containers[name])
	}
	return out
}

// adopt makes a handle of a new container, to be detached and removed when the
// case ends.
func (x *caseRun) adopt(con engine.Container, f *workFolder, state containerState) *handle {
	if f.backing != nil && state.Spec.Format == "" {
		con = &backedFolder{con, f.backing, state.Before}
	}
	h := &handle{con: con, place: f, containerState: state}
	x.undo.push("removing the container", con.Remove)
	x.undo.push("detaching the container", func(ctx context.Context) error {
		if h.att == nil {
			return nil
		}
		_, err := h.att.Detach(ctx, false)
		if err != nil {
			_, err = h.att.Detach(ctx, true)
		}
		if err != nil { // it may be detached now, but some writes were lost
			_, still := h.att.Detach(ctx, true)
			x.r.stillAttached = x.r.stillAttached || still != nil
		}
		return err
	})
	return h
}

// runSteps executes a list of steps in order. It omits those before the pause
// that is continued.
func (x *caseRun) runSteps(ctx context.Context, list []plan.Step) error {
	for _, st := range list {
		var err error
		switch {
		case st.Do == "repeat":
			err = x.repeat(ctx, st)
		case x.pause != nil && x.index < x.pause.Step:
			x.index += 1 + len(st.Steps) // the steps of a parallel block have numbers of their own
		case ctx.Err() != nil:
			err = ctx.Err()
		case st.Do == "pause":
			err = x.pauseRun(ctx, st)
		default:
			err = x.execute(ctx, st)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// repeat executes a block in cycles. A block that is expected to fail ends at
// its first step that fails.
func (x *caseRun) repeat(ctx context.Context, st plan.Step) error {
	defer func() { x.cycle, x.mayFail = 0, false }()
	x.mayFail = st.Expect == "fail"
	for x.cycle = 1; x.cycle <= st.Times; x.cycle++ {
		err := x.runSteps(ctx, st.Steps)
		if err != nil && x.mayFail && ctx.Err() == nil && !errors.As(err, new(*journalError)) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	if x.mayFail {
		return fmt.Errorf("%s: a step in it was expected to fail and none did in %d cycles", stepName(st), st.Times)
	}
	return nil
}

// waitBefore calls Config.Wait before a step. The session's clock stands still
// meanwhile: neither times in records nor the limit of a run's time contain it.
func (x *caseRun) waitBefore(ctx context.Context, st plan.Step) {
	if x.r.c.Wait == nil {
		return
	}
	x.reportStatus(st, workload.Progress{}, true)
	from := x.r.c.Clock.Now()
	x.r.c.Wait(ctx)
	x.r.started += x.r.c.Clock.Now() - from
}

// execute executes one step and records it.
func (x *caseRun) execute(ctx context.Context, st plan.Step) error {
	if x.waitBefore(ctx, st); ctx.Err() != nil {
		return ctx.Err()
	}
	rec := x.newRecord(st)
	start := &result.StepStart{Case: x.c.ID, Round: x.round, Index: rec.Index, Do: st.Do, Phase: st.Phase}
	x.r.append(result.Record{StepStart: start})
	if err := errors.Join(x.r.journalErr, x.r.dir.Flush()); err != nil {
		return &journalError{err}
	}
	x.r.pauseHeld = false // from now on the case can only be measured from its start
	slept, throttled := x.r.suspended(), x.r.throttled()
	x.reportStatus(st, workload.Progress{}, false)
	err := x.do(ctx, st, &rec)
	if slept = x.r.suspended() - slept; slept > stopThreshold {
		addWarning(&rec, "stopped", "the process did not run for %s of this step", slept.Round(time.Millisecond))
	}
	if throttled = x.r.throttled() - throttled; throttled > 0 {
		addWarning(&rec, "throttled", "a limit of processor time (cpu.max) kept the process from running for %s of this step",
			throttled.Round(time.Microsecond))
	}
	return x.record(ctx, st, rec, err)
}

// newRecord is the record of a step before it is executed. It takes the next
// index.
func (x *caseRun) newRecord(st plan.Step) result.Step {
	rec := result.Step{
		Index: x.index, Do: st.Do, Phase: st.Phase, Round: x.round, Cycle: x.cycle, Session: x.r.session,
		Expect: cmp.Or(st.Expect, "ok"), StartNS: x.r.now(),
	}
	if stepHandlers[st.Do].timesFiles {
		rec.Op = st.Do
	}
	x.index++
	return rec
}

// record writes the record of a step and makes it durable before the next step.
// The error ends the case.
func (x *caseRun) record(ctx context.Context, st plan.Step, rec result.Step, err error) error {
	rec.DurationNS = max(rec.DurationNS-rec.RetryNS, 0)
	if err != nil {
		rec.Error = err.Error()
		if x.mayFail {
			rec.Expect = "fail"
		}
	}
	x.leaveOutStopped(&rec)
	for _, w := range rec.Warnings {
		x.r.warnProgress(x.c.ID, w.Text)
	}
	// The canary counts for max_written, but not for the progress of the plan.
	n := writtenBy(&rec)
	if x.r.writtenByAll += n; rec.Do != "canary" {
		x.r.written += n
		x.executed++
	}
	if h := x.containers[st.On]; h != nil {
		rec.Live = workload.Total(h.Live) + workload.Total(h.Named)
	}
	end := &result.StepEnd{Case: x.c.ID, Round: x.round, Step: rec}
	// The flush is outside of every timed span and before the next step: a
	// record that exists is complete and durable.
	e := x.r.commit(result.Record{Step: end})
	if e != nil && (err == nil || st.Expect == "fail" || x.mayFail) {
		return &journalError{e} // after a failed step the case ends, and writing its end reports the journal's error
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case st.Expect == "fail" && err == nil:
		return fmt.Errorf("%s: it was expected to fail and did not", stepName(st))
	case st.Expect == "fail" || err == nil:
		return nil
	}
	return fmt.Errorf("%s: %w", stepName(st), err)
}

// leaveOutStopped leaves out the files of a step during which the process was
// stopped.
func (x *caseRun) leaveOutStopped(rec *result.Step) {
	if x.r.c.Stops == nil || len(rec.Samples) == 0 {
		return
	}
	n, stops, now := 0, x.r.c.Stops(), x.r.now()
	for i, f := range rec.Samples {
		if slices.ContainsFunc(stops, func(s host.Stop) bool {
			return f.StartNS < now-int64(s.Ended) && now-int64(s.Began) < f.StartNS+f.DurationNS
		}) {
			rec.LeaveOut(i)
			n++
		}
	}
	switch {
	case n > 0 && rec.IsSerial():
		addWarning(rec, "stopped", "left out: %s, as the process did not run for a part of the time", units.Count(n, "file"))
	case n > 0:
		addWarning(rec, "stopped", "the process did not run while workers transferred files: the time of all files together "+
			"contains it")
	}
}

// writtenBy is how many bytes a step wrote to files, or the write step of a
// canary.
func writtenBy(st *result.Step) (sum int64) {
	sum = st.Written
	switch {
	case st.Stream != nil:
		return st.Stream.Out
	case st.OperationsSpan != nil:
		sum = st.OperationsSpan.Prepared
		for _, o := range st.Operations {
			if o.Kind != "read" {
				sum += o.Bytes
			}
		}
	case st.Do == "write" || st.Do == "copy" || st.Do == "canary" && st.Op == "write":
		for _, s := range st.Samples {
			sum += s.Bytes
		}
	}
	return sum
}

// reportStatus sends how far the run has come to Progress, and whether it waits
// before the step.
func (x *caseRun) reportStatus(st plan.Step, p workload.Progress, waiting bool) {
	r := x.r
	s := Status{
		Plan: r.p.Name, Case: x.c.ID, Do: st.Do, Phase: st.Phase, Round: x.round, Rounds: r.goal,
		CaseRound: r.finished, OfRounds: len(r.cases) * r.goal,
		Files: p.Files, OfFiles: p.OfFiles, Bytes: p.Bytes, OfBytes: p.OfBytes, TimedNS: int64(p.Timed),
		RunBytes: r.written, OfRunBytes: r.roundWrites * int64(r.goal), ElapsedNS: r.now(),
		Waiting: waiting,
	}
	f := &r.forecast
	own := f.cases[x.c.ID]
	last := len(own.work) - 1
	before, next := own.work[min(x.executed, last)], own.work[min(x.executed+1, last)]
	if p.OfBytes > 0 { // a share of the next step
		before += time.Duration(min(float64(p.Bytes)/float64(p.OfBytes), 1) * float64(next-before))
	}
	s.WorkNS, s.OfWorkNS = int64(f.done+before), int64(f.work)*int64(r.goal)
	s.WaitedNS, s.OfWaitNS = int64(f.waited+min(f.slept, own.wait)), int64(f.wait)*int64(r.goal)
	r.c.Progress.Status(s)
}

// stepRun is one step that is being executed.
type stepRun struct {
	x   *caseRun
	st  plan.Step
	h   *handle // container that the step acts on; nil only for create and parallel
	rec *result.Step
}

// startTimer starts the timed span of a step: what the step itself takes,
// without the bookkeeping around it. The result ends the span.
func (s *stepRun) startTimer() (stop func()) {
	s.rec.StartNS = s.x.r.now()
	return func() { s.rec.DurationNS = s.x.r.now() - s.rec.StartNS }
}
