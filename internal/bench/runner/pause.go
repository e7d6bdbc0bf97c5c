package runner

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// pauseRun is the step pause, a checkpoint: the containers stay, the session
// ends.
func (x *caseRun) pauseRun(ctx context.Context, st plan.Step) error {
	if x.hasSlept() { // the next session could not find out
		return errSlept
	}
	p := &result.Pause{Case: x.c.ID, Round: x.round, Step: x.index + 1, Place: x.c.Settings.Place,
		Message: x.r.pauseMessage(st.Message)}
	if err := x.detachAll(ctx); err != nil {
		return err
	}
	if err := x.recordPause(p); err != nil {
		return err
	}
	return &pausedError{p.Message}
}

// recordPause writes to the journal that the run waits, with the containers
// that it needs to continue.
func (x *caseRun) recordPause(p *result.Pause) error {
	p.Others = nil // a restored pause has the old list
	if x.main != nil {
		id, err := x.place.fingerprint(x.main.con.Name())
		if err != nil {
			return err
		}
		p.Container, p.Identity = x.main.con.Name(), id
	}
	for _, name := range slices.Sorted(maps.Keys(x.named)) {
		h := x.named[name]
		id, err := h.place.fingerprint(h.con.Name())
		if err != nil {
			return err
		}
		p.Others = append(p.Others, result.PausedContainer{As: name, Place: h.place.name, Container: h.con.Name(),
			Identity: id})
	}
	if err := x.r.commit(result.Record{Pause: p}); err != nil {
		return &journalError{err}
	}
	x.r.pauseHeld = p.Container != ""
	return nil
}

// restorePause returns to a pause after which no step was executed. If
// containers were attached since, their fingerprints have changed and are
// recorded anew.
func (x *caseRun) restorePause(ctx context.Context, pause result.Pause) error {
	if err := x.detachAll(ctx); err != nil || !x.reopened {
		return err
	}
	return x.recordPause(&pause)
}

// replay follows a step that an earlier session executed, by [stepHandlers]. A
// container that the step made is opened again and must be the one that was
// left. After the last replayed step, containers are attached again.
func (x *caseRun) replay(ctx context.Context, st plan.Step) error {
	// Indexes continue as in the earlier session, since the pause is one of
	// them.
	x.index += 1 + len(st.Steps) // the steps of a parallel block have numbers of their own
	h, err := x.container(st)
	if err != nil {
		return err
	}
	if err := (&stepRun{x: x, st: st, h: h}).replay(ctx); err != nil || x.isReplaying() {
		return err
	}
	return x.reattach(ctx)
}

// replay replays one step, also one of a parallel block.
func (s *stepRun) replay(ctx context.Context) error {
	if s.st.Expect == "fail" { // of a failed step, only the number of its batch remains
		if s.st.Do == "write" && s.h != nil {
			s.h.batches++
		}
		return nil
	}
	if f := stepHandlers[s.st.Do].replay; f != nil {
		return f(s, ctx)
	}
	return nil
}

// replayAttach marks the container as attached; reattach attaches it if no
// later step detached it.
func (s *stepRun) replayAttach(context.Context) error {
	s.h.opts, s.h.att = s.attachOptions(), replayedAttachment{}
	return nil
}

// replayDetach marks the container as detached.
func (s *stepRun) replayDetach(context.Context) error {
	s.h.att = nil
	return nil
}

// replayWrite draws the same files as the executed step, since names and sizes
// depend on seed, round, step and batch only.
func (s *stepRun) replayWrite(context.Context) error {
	s.h.addBatch(s.drawBatch(), s.x.fileSet(s.st))
	return nil
}

// replayDelete removes the same selection as the executed step.
func (s *stepRun) replayDelete(context.Context) error {
	s.h.remove(s.h.selected(s.st, s.key()))
	return nil
}

// replayNamed adds the file of a copy or stream step; reattach finds its size.
func (s *stepRun) replayNamed(context.Context) error {
	s.h.named = append(s.h.named, workload.Item{Name: s.st.To})
	return nil
}

// reopenMain opens the case's own container that the pause left.
func (s *stepRun) reopenMain(ctx context.Context) error {
	x := s.x
	left := result.PausedContainer{Container: x.pause.Container, Identity: x.pause.Identity}
	con, err := x.reopen(ctx, x.place, left, x.spec)
	if err == nil {
		x.main = x.adopt(con, x.place, x.spec)
	}
	return err
}

// reopenDerived opens a container that a convert, transfer or damage step made
// before the pause.
func (s *stepRun) reopenDerived(ctx context.Context) error {
	others := s.x.pause.Others
	i := slices.IndexFunc(others, func(o result.PausedContainer) bool { return o.As == s.derivedName() })
	if i < 0 {
		return fmt.Errorf("replaying %s: the journal has no container %q at the pause", s.st.Do, s.st.As)
	}
	f, spec, err := s.derivedSpec()
	if err != nil {
		return err
	}
	con, err := s.x.reopen(ctx, f, others[i], spec)
	if err == nil {
		s.registerDerived(con, f, spec)
	}
	return err
}

// reopen opens a container that a pause left, if it has not changed.
func (x *caseRun) reopen(
	ctx context.Context, f *workFolder, left result.PausedContainer, spec engine.Spec,
) (engine.Container, error) {
	con, err := x.eng.Open(ctx, f.dir, left.Container, spec)
	if err != nil {
		return nil, fmt.Errorf("opening the container that the pause left: %w", err)
	}
	id, err := f.fingerprint(con.Name())
	if err != nil {
		return nil, err
	}
	if id != left.Identity {
		return nil, fmt.Errorf("opening %q after the pause: it was changed meanwhile: %w", con.Name(), engine.ErrGone)
	}
	return con, nil
}

// reattach attaches the containers that were attached at the pause, and reads
// from their volumes the sizes of the files that copy and stream steps made.
func (x *caseRun) reattach(ctx context.Context) error {
	var attached []*handle
	for _, h := range x.handles() {
		if h.att != nil {
			h.att, attached = nil, append(attached, h)
		}
	}
	if len(attached) > 0 {
		// Attaching changes containers. A run that is killed meanwhile cannot
		// continue at the pause: the record of a step start ends it.
		start := &result.StepStart{Case: x.c.ID, Round: x.round, Index: x.index - 1, Do: "pause"}
		if err := x.r.commit(result.Record{StepStart: start}); err != nil {
			return &journalError{err}
		}
		x.reopened = true
	}
	for _, h := range attached {
		att, err := h.con.Attach(ctx, h.opts)
		if err != nil {
			return err
		}
		h.att = att
		if att.Volume() == nil {
			continue
		}
		for _, it := range slices.Clone(h.named) {
			if err := h.addNamed(att.Volume(), it.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// replayedAttachment represents an attachment of an earlier session while its
// steps are replayed.
type replayedAttachment struct{ engine.Attachment }

// Detach succeeds, as no image is attached.
func (replayedAttachment) Detach(context.Context, bool) (engine.Report, error) {
	return engine.Report{}, nil
}
