package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
)

// handle is one container of a case with the files on it.
type handle struct {
	con   engine.Container
	att   engine.Attachment // nil while detached
	opts  engine.AttachOptions
	spec  engine.Spec // as which it was made, to open it again
	place *workFolder
	liveFiles
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

	main  *handle            // the case's own container, nil before it is created
	named map[string]*handle // containers that steps derived from it, by the name in the plan
	undo  undoStack
	gate  *workload.Gate // of the parallel block that this step is in

	cycle    int           // of the repeat block, from 1; 0 outside
	mayFail  bool          // in a repeat block that ends at the first step that fails
	index    int           // of the next step
	executed int           // steps that have ended, without canaries
	pause    *result.Pause // that this attempt continues; its first pause.Step steps are replayed
	reopened bool          // containers of the pause may have been attached again
	slept    int64         // suspended time of the machine at the start, in nanoseconds
	counts   bool          // its containers are kept: a later sleep does not discard it
}

// newCaseRun prepares an attempt. The name of the case's container contains the
// number of the case in the plan and the round, so that it is unique in the
// run.
func newCaseRun(r *run, c plan.Case, round int, eng engine.Engine) (*caseRun, error) {
	f := r.places[c.Settings.Place]
	if f == nil {
		return nil, fmt.Errorf("running case %q: %w", c.ID, missingPlaceError(c.Settings.Place))
	}
	number := 1 + slices.IndexFunc(r.cases, func(o plan.Case) bool { return o.ID == c.ID })
	return &caseRun{
		r: r, c: c, round: round, eng: eng, spec: specOf(c.Settings), place: f, named: map[string]*handle{},
		slept: r.suspended(), base: fmt.Sprintf("case%02d-round%d", number, round),
	}, nil
}

// missingPlaceError is the error of a step or case at a place that the user
// gave no folder for.
func missingPlaceError(name string) error {
	return fmt.Errorf("no folder was given for place %q; use --on %s=DIR", name, name)
}

// specOf is the image that the settings request.
func specOf(s plan.Settings) engine.Spec {
	cache := hostio.CacheBuffered
	if s.Cache == workload.CacheDirect {
		cache = hostio.CacheDirect
	}
	return engine.Spec{
		Format: s.Format, Encryption: s.Encryption, Filesystems: s.Filesystems, Size: int64(s.Size),
		BandSize: int64(s.BandSize), VolumeName: s.VolumeName, Backend: s.Backend, ServedBy: s.ServedBy, Cache: cache,
		Preallocate: s.Preallocate,
	}
}

// run executes the steps, those after a pause if pause is not nil.
func (x *caseRun) run(ctx context.Context, pause *result.Pause) error {
	x.pause = pause
	if x.r.p.Run.Canary && pause == nil {
		if err := x.canary(ctx); err != nil {
			return err
		}
	}
	if x.r.p.Run.Canary {
		x.index = 2 // the canary's two steps have the first numbers
	}
	err := x.runSteps(ctx, x.c.Steps)
	if err == nil && x.r.c.Keep && x.main != nil && x.main.con != nil {
		if x.hasSlept() { // images of an attempt that does not count are not kept
			return errSlept
		}
		err = x.keepImages(ctx)
	}
	return err
}

// hasSlept reports whether the machine slept since the attempt started. Kept
// images are checked before they are detached: a later sleep affects no
// measured step.
func (x *caseRun) hasSlept() bool { return !x.counts && x.r.suspended()-x.slept > sleepThreshold }

// keepImages detaches the containers, leaves them, and collects the command
// lines that open them.
func (x *caseRun) keepImages(ctx context.Context) error {
	if err := x.detachAll(ctx); err != nil {
		return err
	}
	for _, h := range x.handles() {
		x.r.kept = append(x.r.kept, h.con.OpenWith(filepath.Join(h.place.dir.Path(), h.con.Name()))...)
	}
	x.counts = true
	return nil
}

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
	x.undo.todo = nil
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
	if x.main != nil && x.main.con != nil {
		out = append(out, x.main)
	}
	for _, name := range slices.Sorted(maps.Keys(x.named)) {
		out = append(out, x.named[name])
	}
	return out
}

// container finds the container that a step acts on, nil before the case's own
// is created.
func (x *caseRun) container(st plan.Step) (*handle, error) {
	if st.On == "" {
		return x.main, nil
	}
	if h := x.named[st.On]; h != nil {
		return h, nil
	}
	return nil, fmt.Errorf("no step has made a container %q", st.On)
}

// adopt makes a handle of a new container, to be detached and removed when the
// case ends.
func (x *caseRun) adopt(con engine.Container, f *workFolder, spec engine.Spec) *handle {
	h := &handle{con: con, place: f, spec: spec}
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
		h.att = nil
		return err
	})
	return h
}

// actualTarget is the target as it was made, nil if none was.
func (x *caseRun) actualTarget() *result.Target {
	if x.main == nil || x.main.con == nil {
		return nil
	}
	t, m := requestedTarget(x.c.Settings), x.main.con.Made()
	t.Filesystem, t.BandSizeUsed = m.Filesystem, m.BandSize
	t.Backend, t.ServedBy = cmp.Or(m.Backend, t.Backend), m.ServedBy
	return &t
}

// runSteps executes a list of steps in order. Steps before the pause that is
// continued are replayed.
func (x *caseRun) runSteps(ctx context.Context, list []plan.Step) error {
	for _, st := range list {
		var err error
		switch {
		case st.Do == "repeat":
			err = x.repeat(ctx, st)
		case x.isReplaying():
			err = x.replay(ctx, st)
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

// execute executes one step and records it.
func (x *caseRun) execute(ctx context.Context, st plan.Step) error {
	rec := x.newRecord(st)
	start := &result.StepStart{Case: x.c.ID, Round: x.round, Index: rec.Index, Do: st.Do, Phase: st.Phase}
	err := errors.Join(x.r.append(result.Record{StepStart: start}), x.r.dir.Flush())
	if err != nil {
		return &journalError{err}
	}
	x.r.pauseHeld = false // from now on the case can only be measured from its start
	x.reportStatus(st, workload.Progress{})
	err = x.do(ctx, st, &rec)
	return x.record(ctx, st, rec, err)
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
	for _, w := range rec.Warnings {
		x.r.warnProgress(x.c.ID, w.Text)
	}
	// The canary counts for max_written, but not for the progress of the plan.
	n := writtenBy(&rec)
	if x.r.writtenByAll += n; rec.Do != "canary" {
		x.r.written += n
		x.executed++
	}
	if h, e := x.container(st); e == nil && h != nil {
		rec.Live = h.size()
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
	case st.Expect == "fail":
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", stepName(st), err)
	}
	return nil
}

// writtenBy is how many bytes a step wrote to files, or the write step of a
// canary.
func writtenBy(st *result.Step) (sum int64) {
	switch {
	case st.Stream != nil:
		return st.Stream.Out
	case st.Do == "write" || st.Do == "copy" || st.Do == "canary" && st.Op == "write":
		if st.Span != nil {
			return st.Span.Bytes
		}
		for _, s := range st.Samples {
			sum += s.Bytes
		}
	}
	return sum
}

// stepName names a step in errors: its kind and its phase.
func stepName(st plan.Step) string { return strings.TrimSpace(st.Do + " " + st.Phase) }

// reportStatus sends how far the run has come to Progress.
func (x *caseRun) reportStatus(st plan.Step, p workload.Progress) {
	r := x.r
	s := Status{
		Plan: r.p.Name, Case: x.c.ID, Do: st.Do, Phase: st.Phase, Round: x.round, Rounds: r.goal,
		CaseRound: r.finished, OfRounds: len(r.cases) * r.goal,
		Files: p.Files, OfFiles: p.OfFiles, Bytes: p.Bytes, OfBytes: p.OfBytes, TimedNS: int64(p.Timed),
		RunBytes: r.written, OfRunBytes: r.roundWrites * int64(r.goal), ElapsedNS: r.now(),
	}
	r.forecast.fill(&s, x.executed, p, r.goal)
	r.c.Progress.Status(s)
}

// errSlept is an attempt that does not count, because the machine slept in it.
var errSlept = errors.New("the machine slept")

// sleepThreshold is the reported sleep in nanoseconds from which on the machine
// has really slept: less may be an effect of reading two clocks.
const sleepThreshold = int64(1e9)

// suspended is how long the machine has slept since boot in nanoseconds, 0 if
// unknown.
func (r *run) suspended() int64 {
	if r.c.Suspended == nil {
		return 0
	}
	ns, err := r.c.Suspended()
	if err != nil {
		return 0
	}
	return ns
}

// liveFiles are the files that the steps of a case have put on a container.
type liveFiles struct {
	live    []workload.Item      // of write steps, in the order written
	named   []workload.Item      // of copy and stream steps; they belong to no batch
	sets    map[int]plan.FileSet // file set of each batch: its data verifies the files
	batches int                  // number of the last batch
}

// clone is a copy that can change independently.
func (l *liveFiles) clone() liveFiles {
	out := *l
	out.live, out.named, out.sets = slices.Clone(l.live), slices.Clone(l.named), maps.Clone(l.sets)
	return out
}

// size is the sum of all files in bytes.
func (l *liveFiles) size() int64 { return workload.Total(l.live) + workload.Total(l.named) }

// isReplaying reports whether the next step was executed before the pause that
// this attempt continues.
func (x *caseRun) isReplaying() bool { return x.pause != nil && x.index < x.pause.Step }

// stepRun is one step that is being executed or replayed.
type stepRun struct {
	x   *caseRun
	st  plan.Step
	h   *handle      // container that the step acts on; nil only for create and parallel
	rec *result.Step // nil while the step is replayed
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
