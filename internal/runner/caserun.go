package runner

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"dmgbench/internal/engine"
	"dmgbench/internal/hostio"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/workload"
)

// journalError is a journal that cannot be written: the run stops, the case does not count.
type journalError struct{ err error }

func (e *journalError) Error() string {
	const doing = "writing the journal: "
	return doing + strings.TrimPrefix(e.err.Error(), doing)
}
func (e *journalError) Unwrap() error { return e.err }

// handle is one container of a case with the files that are on it.
type handle struct {
	con   engine.Container
	att   engine.Attachment
	opts  engine.AttachOptions
	spec  engine.Spec // what it was made as, to open it again by
	place *place
	books
}

// caseRun executes the steps of one case in one round.
type caseRun struct {
	r     *run
	c     plan.Case
	round int
	cycle int
	// reopened says that containers of a pause may have been attached again.
	reopened bool
	// failing says that the steps are in a block that ends at the first one that fails.
	failing bool
	awake   int64 // how long the machine had slept when it began
	kept    bool  // its containers stay, and it counts
	index   int
	ended   int // steps, canaries apart
	skipTo  int
	base    string
	eng     engine.Engine
	spec    engine.Spec
	place   *place
	main    *handle
	named   map[string]*handle
	undo    cleanup
	gate    *workload.Gate
}

func newCaseRun(r *run, c plan.Case, round int, eng engine.Engine, spec engine.Spec) (*caseRun, error) {
	p := r.places[c.Settings.Place]
	if p == nil {
		return nil, fmt.Errorf("running case %q: no folder was given for place %q; use --on %s=DIR", c.ID, c.Settings.Place, c.Settings.Place)
	}
	number := 0
	for i := range r.cases {
		if r.cases[i].ID == c.ID {
			number = i + 1
		}
	}
	return &caseRun{
		r: r, c: c, round: round, eng: eng, spec: spec, place: p, named: map[string]*handle{}, awake: r.suspended(),
		base: fmt.Sprintf("case%02d-round%d", number, round),
	}, nil
}

// specOf is the image that the settings ask for.
func specOf(s plan.Settings) engine.Spec {
	cache := hostio.CacheBuffered
	if s.Cache == workload.CacheDirect {
		cache = hostio.CacheDirect
	}
	return engine.Spec{
		Format: s.Format, Encryption: s.Encryption, Filesystems: s.Filesystems, Size: int64(s.Size), BandSize: int64(s.BandSize),
		VolumeName: s.VolumeName, Backend: s.Backend, ServedBy: s.ServedBy, Cache: cache, Preallocate: s.Preallocate,
	}
}

// run executes the steps, behind a pause if there is one.
func (x *caseRun) run(ctx context.Context, pause *result.Pause) error {
	if pause != nil {
		x.skipTo = pause.Step
	} else if x.r.p.Run.Canary {
		if err := x.canary(ctx); err != nil {
			return err
		}
	}
	if x.r.p.Run.Canary {
		x.index = 2 // the canary's two steps come first
	}
	err := x.steps(ctx, x.c.Steps, pause)
	if err == nil && x.r.c.Keep && x.main != nil && x.main.con != nil {
		if x.slept() { // what does not count is not kept either
			return errSlept
		}
		err = x.keep(ctx)
	}
	return err
}

// slept says that the machine did since the case began, or went on behind a pause. What is kept was asked before it was
// detached: a sleep behind that touches nothing that was measured.
func (x *caseRun) slept() bool { return !x.kept && x.r.suspended()-x.awake > slept }

// keep detaches the containers, leaves them, and says how to open them.
func (x *caseRun) keep(ctx context.Context) error {
	if err := x.leave(ctx); err != nil {
		return err
	}
	for _, h := range x.handles() {
		x.r.kept = append(x.r.kept, h.con.OpenWith(filepath.Join(h.place.dir.Path(), h.con.Name()))...)
	}
	x.kept = true
	return nil
}

// finish undoes what is left, with a context of its own so that an interrupt cannot stop it.
func (x *caseRun) finish() {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTime)
	defer cancel()
	for _, err := range x.undo.run(ctx) {
		x.r.doubt = true
		x.r.warn(x.c.ID, "cleanup", err.Error())
	}
}

// made is the target as it was really made, nil if nothing was.
func (x *caseRun) made() *result.Target {
	if x.main == nil || x.main.con == nil {
		return nil
	}
	t, m := target(x.c.Settings), x.main.con.Made()
	t.Filesystem, t.BandSizeUsed = m.Filesystem, m.BandSize
	t.Backend, t.ServedBy = cmpOr(m.Backend, t.Backend), m.ServedBy
	return &t
}

func (x *caseRun) steps(ctx context.Context, list []plan.Step, pause *result.Pause) error {
	for _, st := range list {
		if st.Do == "repeat" {
			if err := x.repeat(ctx, st, pause); err != nil {
				return err
			}
			continue
		}
		if x.index < x.skipTo {
			if err := x.replay(ctx, st, pause); err != nil {
				return err
			}
			continue
		}
		if err := x.one(ctx, st); err != nil {
			return err
		}
	}
	return nil
}

// repeat executes a block in cycles. One that has to fail ends at its first
// failing step, whatever comes behind that in the block.
func (x *caseRun) repeat(ctx context.Context, st plan.Step, pause *result.Pause) error {
	defer func() { x.cycle, x.failing = 0, false }()
	x.failing = st.Expect == "fail"
	for cycle := 1; cycle <= st.Times; cycle++ {
		x.cycle = cycle
		err := x.steps(ctx, st.Steps, pause)
		if err != nil && x.failing && ctx.Err() == nil && !errors.As(err, new(*journalError)) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	if x.failing {
		return fmt.Errorf("%s: a step in it was expected to fail and none did in %d cycles", stepName(st), st.Times)
	}
	return nil
}

// one executes one step, journals it and decides whether the case goes on.
func (x *caseRun) one(ctx context.Context, st plan.Step) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if st.Do == "pause" {
		return x.pause(ctx, st)
	}
	rec := x.record(st)
	start := &result.StepStart{Case: x.c.ID, Round: x.round, Index: rec.Index, Do: st.Do, Phase: st.Phase}
	if err := errors.Join(x.r.append(result.Record{Kind: result.KindStepStart, StepStart: start}), x.r.dir.Flush()); err != nil {
		return &journalError{err}
	}
	x.r.holding = false // from here on the case can only be begun anew
	x.r.status(x, st, workload.Progress{})
	var err error
	if st.Do == "parallel" {
		err = x.parallel(ctx, st, &rec)
	} else {
		err = x.do(ctx, st, &rec)
	}
	return x.journal(ctx, st, rec, err)
}

// record begins a step's record.
func (x *caseRun) record(st plan.Step) result.Step {
	rec := result.Step{
		Index: x.index, Do: st.Do, Phase: st.Phase, Round: x.round, Cycle: x.cycle, Session: x.r.session,
		Expect: cmpOr(st.Expect, "ok"), StartNS: x.r.now(),
	}
	switch st.Do {
	case "write", "read", "stream":
		rec.Op = st.Do
	}
	x.index++
	return rec
}

// journal ends a step: its record is durable before anything else happens.
func (x *caseRun) journal(ctx context.Context, st plan.Step, rec result.Step, err error) error {
	rec.DurationNS = max(rec.DurationNS-rec.RetryNS, 0)
	if err != nil {
		rec.Error = err.Error()
		if x.failing {
			rec.Expect = "fail"
		}
	}
	for _, w := range rec.Warnings {
		x.r.tell(x.c.ID, w.Text)
	}
	n := wrote(&rec)
	if x.r.spent += n; rec.Do != "canary" {
		x.r.written += n
		x.ended++
	}
	if h, e := x.on(st); e == nil && h != nil {
		rec.Live = workload.Total(h.live) + workload.Total(h.named)
	}
	end := &result.StepEnd{Case: x.c.ID, Round: x.round, Step: rec}
	e := errors.Join(x.r.append(result.Record{Kind: result.KindStep, Step: end}), x.r.dir.Sync())
	if e != nil && (err == nil || st.Expect == "fail" || x.failing) {
		return &journalError{e} // behind a failing step the case ends, and its end is where the journal has to be whole
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

func stepName(st plan.Step) string {
	return strings.TrimSpace(st.Do + " " + st.Phase)
}

// now is the session's clock in nanoseconds since it began.
func (r *run) now() int64 { return int64(r.c.Clock.Now() - r.started) }

// timed measures what a step itself takes; book-keeping around it is outside.
func (x *caseRun) timed(rec *result.Step, f func() error) error {
	rec.StartNS = x.r.now()
	err := f()
	rec.DurationNS = x.r.now() - rec.StartNS
	return err
}

// status tells the progress where the run stands.
func (r *run) status(x *caseRun, st plan.Step, p workload.Progress) {
	s := Status{
		Plan: r.p.Name, Case: x.c.ID, Do: st.Do, Phase: st.Phase, Round: x.round, Rounds: r.aim,
		CaseRound: r.finished, OfRounds: len(r.cases) * r.aim,
		Files: p.Files, OfFiles: p.OfFiles, Bytes: p.Bytes, OfBytes: p.OfBytes, TimedNS: int64(p.Timed),
		RunBytes: r.written, OfRunBytes: r.toWrite * int64(r.aim), ElapsedNS: r.now(),
	}
	r.forecast.fill(&s, x.ended, p, r.aim)
	r.c.Progress.Status(s)
}

func instruction(m plan.Manual, value string) string {
	return strings.TrimRight(strings.ReplaceAll(m.Instructions, "{value}", value), ". ")
}

// elapsed since start on the run's clock.
func (r *run) elapsed(start time.Duration) time.Duration { return r.c.Clock.Now() - start }
