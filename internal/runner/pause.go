package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dmgbench/internal/engine"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/workload"
)

// pause is a checkpoint: the containers stay, the session ends.
func (x *caseRun) pause(ctx context.Context, st plan.Step) error {
	if x.slept() { // the next session could not tell
		return errSlept
	}
	p := &result.Pause{Case: x.c.ID, Round: x.round, Step: x.index + 1, Place: x.c.Settings.Place}
	p.Message = fmt.Sprintf("%s, then go on with: dmgbench resume %s", strings.TrimRight(st.Message, ". "), x.r.dir.Path())
	if err := x.leave(ctx); err != nil {
		return err
	}
	if err := x.stand(p); err != nil {
		return err
	}
	return &pausedError{p.Message}
}

// stand notes in the journal that the run waits, and which containers for.
func (x *caseRun) stand(p *result.Pause) error {
	p.Others = nil
	if x.main != nil {
		id, err := fingerprint(x.place, x.main.con.Name())
		if err != nil {
			return err
		}
		p.Container, p.Identity = x.main.con.Name(), id
	}
	for _, as := range slices.Sorted(maps.Keys(x.named)) {
		h := x.named[as]
		id, err := fingerprint(h.place, h.con.Name())
		if err != nil {
			return err
		}
		p.Others = append(p.Others, result.PausedContainer{As: as, Place: h.place.name, Container: h.con.Name(), Identity: id})
	}
	if err := errors.Join(x.r.append(result.Record{Kind: result.KindPause, Pause: p}), x.r.dir.Sync()); err != nil {
		return &journalError{err}
	}
	x.r.holding = p.Container != ""
	return nil
}

// handles are the containers that there are, the case's own first.
func (x *caseRun) handles() []*handle {
	var out []*handle
	if x.main != nil && x.main.con != nil {
		out = append(out, x.main)
	}
	for _, as := range slices.Sorted(maps.Keys(x.named)) {
		out = append(out, x.named[as])
	}
	return out
}

// leave detaches the containers and owes nothing more, since they stay.
func (x *caseRun) leave(ctx context.Context) error {
	for _, h := range x.handles() {
		if h.att == nil {
			continue
		}
		if err := x.detach(ctx, h, &result.Step{}); err != nil {
			return err
		}
	}
	x.undo.todo = nil
	return nil
}

// replay follows a step that an earlier session executed: the files that are on
// the volumes and the state of the containers, without any I/O. Where a step made
// a container it is opened again and has to be the one that was left.
func (x *caseRun) replay(ctx context.Context, st plan.Step, pause *result.Pause) error {
	x.index += 1 + len(st.Steps) // of parallel: every step behind the gate has a number
	h, err := x.on(st)
	if err != nil {
		return err
	}
	if st.Expect == "fail" { // it left nothing behind but the number of its batch
		if st.Do == "write" && h != nil {
			h.batches++
		}
		return x.reopen(ctx)
	}
	switch st.Do {
	case "create":
		con, err := x.again(ctx, x.place, pause.Container, pause.Identity, x.spec)
		if err != nil {
			return err
		}
		x.adopt(&x.main, con, x.place, x.spec)
	case "attach":
		h.opts = x.attachOptions(st)
		h.att = replayed{}
	case "detach":
		h.att = nil
	case "convert", "transfer", "damage":
		if err := x.replaySecond(ctx, h, st, pause); err != nil {
			return err
		}
	case "parallel":
		x.replayParallel(st)
	default:
		x.replayFiles(h, st)
	}
	return x.reopen(ctx)
}

// again opens a container that a pause left, if it is still the same.
func (x *caseRun) again(ctx context.Context, p *place, name, identity string, spec engine.Spec) (engine.Container, error) {
	con, err := x.eng.Open(ctx, p.dir, name, spec)
	if err != nil {
		return nil, fmt.Errorf("opening the container that the pause left: %w", err)
	}
	id, err := fingerprint(p, con.Name())
	if err != nil {
		return nil, err
	}
	if id != identity {
		return nil, fmt.Errorf("opening %q behind the pause: it was changed since: %w", con.Name(), engine.ErrGone)
	}
	return con, nil
}

// replaySecond finds again what a convert, transfer or damage step made.
func (x *caseRun) replaySecond(ctx context.Context, h *handle, st plan.Step, pause *result.Pause) error {
	i := slices.IndexFunc(pause.Others, func(o result.PausedContainer) bool { return o.As == cmpOr(st.As, st.Do) })
	if i < 0 {
		return fmt.Errorf("replaying %s: the journal has no container %q at the pause", st.Do, st.As)
	}
	p, err := x.placeOf(st)
	if err != nil {
		return err
	}
	spec := x.specFrom(h, st)
	con, err := x.again(ctx, p, pause.Others[i].Container, pause.Others[i].Identity, spec)
	if err != nil {
		return err
	}
	x.second(h, st, con, p, spec)
	return nil
}

// replayFiles enters what a step on files did to the books of h.
func (x *caseRun) replayFiles(h *handle, st plan.Step) {
	switch st.Do {
	case "write":
		h.wrote(x.draw(h, st), x.fileSet(st))
	case "copy", "stream":
		h.named = append(h.named, workload.Item{Name: st.To})
	case "delete":
		h.removed(h.chosen(st, x.key(st, h.batches)))
	}
}

// replayParallel numbers the batches of steps behind one gate as [caseRun.parallel] does.
func (x *caseRun) replayParallel(st plan.Step) {
	first, last := 0, 0
	if x.main != nil {
		first, last = x.main.batches, x.main.batches
	}
	for i, s := range st.Steps {
		h, err := x.on(s)
		if err != nil || h == nil {
			continue
		}
		if s.On == "" {
			h.batches = first + i
		}
		switch {
		case s.Expect != "fail":
			x.replayFiles(h, s)
		case s.Do == "write":
			h.batches++
		}
		if s.On == "" {
			last = max(last, h.batches)
			h.batches = last
		}
	}
}

// reopen attaches what was attached, behind the last step that is replayed, and
// looks up what only the volume knows: the sizes of streamed files.
func (x *caseRun) reopen(ctx context.Context) error {
	if x.index < x.skipTo {
		return nil
	}
	var wanted []*handle
	for _, h := range x.handles() {
		if h.att != nil {
			h.att, wanted = nil, append(wanted, h)
		}
	}
	if len(wanted) > 0 { // attaching changes containers: who is killed in it has no pause to come back to
		start := &result.StepStart{Case: x.c.ID, Round: x.round, Index: x.index - 1, Do: "pause"}
		if err := errors.Join(x.r.append(result.Record{Kind: result.KindStepStart, StepStart: start}), x.r.dir.Sync()); err != nil {
			return &journalError{err}
		}
		x.reopened = true
	}
	for _, h := range wanted {
		att, err := h.con.Attach(ctx, h.opts)
		if err != nil {
			return err
		}
		h.att = att
		if att.Volume() == nil {
			continue
		}
		for _, it := range slices.Clone(h.named) {
			if err := h.put(att.Volume(), it.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// replayed stands for an attachment of an earlier session while its steps are followed.
type replayed struct{ engine.Attachment }

// Detach has nothing to detach.
func (replayed) Detach(context.Context, bool) (engine.Report, error) { return engine.Report{}, nil }

// back returns to a pause behind which nothing was done. Containers that were attached in between are not as the pause left them.
func (x *caseRun) back(ctx context.Context, pause result.Pause) error {
	if err := x.leave(ctx); err != nil || !x.reopened {
		return err
	}
	return x.stand(&pause)
}
