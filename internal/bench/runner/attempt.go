package runner

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
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

// runCaseRound measures one case in one round, a second time if the machine
// slept meanwhile.
func (r *run) runCaseRound(ctx context.Context, id string, round int, pause *result.Pause) error {
	c := r.findCase(id)
	if c == nil {
		return fmt.Errorf("resuming: the plan has no case %q", id)
	}
	end := &result.CaseEnd{Case: id, Round: round}
	err := r.attempt(ctx, *c, end, pause)
	if errors.Is(err, errSlept) {
		r.warn(id, "slept", "the machine slept during this case; it was measured again")
		err = r.attempt(ctx, *c, end, nil)
	}
	if errors.Is(err, errSlept) {
		end.Status, end.Reason, err = result.Discarded, "the machine slept twice while this case was measured", nil
	}
	if err != nil {
		return err
	}
	// The end record makes the case-round count. Before it is durable, a killed
	// run measures the case-round again.
	r.finished++
	r.forecast.finish(id)
	r.done[caseRoundKey{id, round}] = true
	r.pauseHeld = false
	if end.Status == result.Failed || end.Status == result.Discarded {
		r.c.Progress.Failure(Failure{Case: id, Round: round, Status: end.Status, Reason: end.Reason})
	}
	return r.commit(result.Record{CaseEnd: end})
}

// attempt measures one case-round and sets status, reason and target of end.
// The error stops the run, except errSlept; errors that concern only the case
// are its reason.
func (r *run) attempt(ctx context.Context, c plan.Case, end *result.CaseEnd, pause *result.Pause) error {
	eng, round := engineFor(r.c.Engine, c.Settings), end.Round
	if u := unsupported(eng, c); u != nil { // known before the first byte is written
		end.Status, end.Reason = result.Skipped, engine.Advised(u)
		return nil
	}
	x, err := newCaseRun(r, c, round, eng)
	if err != nil {
		return err
	}
	// An attempt that continues a pause has its start record already.
	if pause == nil {
		start := &result.CaseStart{Case: c.ID, Round: round, Target: requestedTarget(c.Settings), Container: x.base,
			Place: c.Settings.Place}
		if err := r.append(result.Record{CaseStart: start}); err != nil {
			return err
		}
	}
	caseErr := x.run(ctx, pause)
	end.Target = x.actualTarget() // before containers are removed
	if _, ok := errors.AsType[*pausedError](caseErr); ok {
		return caseErr
	}
	if ctx.Err() != nil && r.pauseHeld && x.main != nil && x.restorePause(context.WithoutCancel(ctx), *pause) == nil {
		return &pausedError{pause.Message} // no step was executed after the pause: it is still valid
	}
	x.finish()
	if err := x.stopReason(ctx, caseErr); err != nil {
		return err
	}
	switch {
	case caseErr == nil:
		end.Status, end.Reason = result.Done, ""
	case errors.As(caseErr, new(*journalError)):
		if r.dir.Sync() != nil { // the disk may have been full of files that are removed now
			return caseErr
		}
		end.Status, end.Reason = result.Failed, caseErr.Error()
	case errors.As(caseErr, new(*engine.UnsupportedError)):
		end.Status, end.Reason = result.Skipped, engine.Advised(caseErr)
	default:
		end.Status, end.Reason = result.Failed, engine.Advised(caseErr)
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
	why := x.fullPlace(caseErr)
	if why == "" && errors.As(caseErr, new(*journalError)) {
		return nil
	}
	for _, f := range x.usedPlaces() {
		if why == "" && f.isGone() {
			why = f.title + " is gone"
		}
	}
	if why == "" {
		return nil
	}
	return &stopError{fmt.Errorf("measuring case %q: %s: %w", x.c.ID, why, caseErr)}
}

// usedPlaces are the places with containers of the case.
func (x *caseRun) usedPlaces() []*workFolder {
	out := []*workFolder{x.place}
	for _, h := range x.handles() {
		out = append(out, h.place)
	}
	return out
}

// fullPlace describes the place of a failed case if it has too little space for
// the case, although its containers were removed; else "". A volume inside an
// image may also be full: then the place has space.
func (x *caseRun) fullPlace(err error) string {
	if errors.Is(err, syscall.EDQUOT) {
		return x.place.title + " is at its quota"
	}
	if isSimulated(x.r.c.Engine) {
		return ""
	}
	need := plan.Estimate(x.r.p, x.c).HostPeak
	if free, _, _, err := x.place.dir.FreeSpace(); err == nil && free < int64(need) {
		return fmt.Sprintf("%s has %s free, the case needs %s", x.place.title, units.Bytes(free).Human(), need.Human())
	}
	return ""
}
