package runner

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"dmgbench/internal/result"
)

// runSession runs one session: places, cases, clean-up and the session's end.
func (r *run) runSession(ctx context.Context) (Outcome, error) {
	r.started = r.c.Clock.Now()
	r.hidePaths()
	if err := r.findPlaces(); err != nil {
		return Outcome{}, r.sessionError(err)
	}
	// The registry contains the run before its journal does: a run that is
	// killed in between leaves a needless entry, never images at a place that
	// the registry does not know.
	if err := r.register(); err != nil {
		return Outcome{}, err
	}
	if err := r.openSession(); err != nil {
		return Outcome{}, err
	}
	if text := DescribeUnsupported(UnsupportedCases(r.p, r.c.Engine), len(r.cases)); text != "" {
		r.c.Progress.Message(text)
	}
	var undo undoStack
	defer r.buffers.Free()
	err := r.openPlaces(&undo)
	if err == nil {
		err = r.runRounds(ctx)
	}
	out, end, err := r.sessionOutcome(ctx, err)
	status := ""
	if end == result.Clean && err == nil {
		status = out.Status
	}
	// Warnings about the machine belong to the session that they weaken, so
	// they are written before its end record.
	if r.c.Changes != nil {
		for _, w := range r.c.Changes() {
			r.warn("", w.Kind, w.Text)
		}
	}
	clean := r.cleanUp(&undo, out.Status == StatusPaused)
	err = errors.Join(err, r.endSession(end, status, err))
	if err != nil {
		err = r.sessionError(err)
	} else if status != "" && clean {
		unregisterEnded(r.c.StateDir, r.id)
	}
	return out, err
}

// sessionError is an error that ends the session, with what to do next.
func (r *run) sessionError(err error) error {
	return &result.Error{Doing: "running", File: r.dir.Path(), Err: err,
		Hint: "all measured data is kept; continue with: " + r.resumeCommand()}
}

// sessionOutcome is how the session ended, by the error of its rounds. A pause
// or an interrupt is not an error.
func (r *run) sessionOutcome(ctx context.Context, err error) (out Outcome, end string, _ error) {
	out = Outcome{Dir: r.dir.Path(), Kept: r.kept}
	if len(r.kept) > 0 {
		for _, p := range r.places {
			out.Folders = append(out.Folders, p.dir.Path())
		}
	}
	if pause, ok := errors.AsType[*pausedError](err); ok {
		out.Status, out.Message = StatusPaused, pause.message
		return out, result.Paused, nil
	}
	if err != nil && ctx.Err() != nil {
		out.Status, out.Message = StatusInterrupted, "continue with: "+r.resumeCommand()
		return out, result.Interrupted, nil
	}
	if err == nil {
		var res *result.Result
		if res, err = r.foldJournal(); err == nil {
			out.Status = res.Outcome()
		}
	}
	return out, result.Clean, err
}

// resumeCommand is the command that continues the run. It repeats --keep for a
// run that was started without it, since the journal contains the flags of the
// first session only.
func (r *run) resumeCommand() string {
	flag := ""
	if r.c.Keep && r.session > 1 && !r.state.Run.Keep {
		flag = "--keep "
	}
	return "dmgbench resume " + flag + r.dir.Path()
}

// hidePaths keeps paths of this machine out of the journal, also in the form
// that tools report: with symbolic links resolved.
func (r *run) hidePaths() {
	hide := func(path, instead string) {
		r.dir.Hide(path, instead)
		if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
			r.dir.Hide(real, instead)
		}
	}
	for _, p := range allPlaces(r.c) {
		name := p.Name
		if name == "" {
			name = "run"
		}
		hide(absolute(p.Path), "<"+name+">")
	}
	hide(r.c.StateDir, "<state>")
	for name, path := range r.c.Inputs {
		r.dir.Hide(path, "<"+name+">")
		hide(absolute(path), "<"+name+">")
	}
}

// openSession writes the session record with host and engine, and the warnings
// about the host. They are durable before the first image is made.
func (r *run) openSession() error {
	info := r.c.Engine.Info()
	err := r.append(result.Record{Session: &result.Session{
		Index: r.session, Host: r.c.Host, Started: r.c.Clock.Wall(), Boot: r.c.Boot, RetryFailed: r.c.RetryFailed,
		Engine: result.Engine{Name: info.Name, Vendor: info.Vendor, Version: info.Version, Title: info.Title,
			Why: r.c.Why},
	}})
	for _, w := range append(slices.Clone(r.c.Warnings), r.changes()...) {
		r.warn("", w.Kind, w.Text)
	}
	return errors.Join(err, r.dir.Sync())
}

// endSession writes how the session ended, and the end of the run where status
// is set.
func (r *run) endSession(end, status string, cause error) error {
	rec := &result.SessionEnd{Session: r.session, End: end}
	if cause != nil {
		rec.Reason, rec.End = cause.Error(), result.Interrupted
	}
	err := r.append(result.Record{SessionEnd: rec})
	if status != "" && err == nil {
		err = r.append(result.Record{RunEnd: &result.RunEnd{Status: status}})
	}
	return errors.Join(err, r.dir.Sync())
}

// cleanUp removes the run's folders unless an image in them is still needed or
// attached: a process that uses a volume hangs if its image is deleted. It
// reports whether everything was removed.
func (r *run) cleanUp(undo *undoStack, paused bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTime)
	defer cancel()
	// Images are needed by a pause of this session or of an earlier one that
	// was not continued, and by --keep.
	keep := paused || r.c.Keep || r.pauseHeld
	if r.maybeAttached && !keep {
		n, err := r.detachImages(ctx)
		if err != nil {
			r.warn("", "cleanup", err.Error())
		}
		// An engine that names no image may have overlooked the one that could not
		// be detached.
		r.stillAttached = err != nil || r.stillAttached && n == 0
	}
	if r.stillAttached {
		r.warn("", "cleanup", "an image may still be attached and was not deleted: close the programs that use "+
			"its volume, then dmgbench clean detaches and removes it")
	}
	if keep || r.stillAttached {
		for _, p := range r.places {
			p.close()
		}
		return false
	}
	errs := undo.run(ctx)
	for _, err := range errs {
		r.warn("", "cleanup", err.Error())
	}
	return len(errs) == 0
}

// foldJournal is the result of the journal as it is now.
func (r *run) foldJournal() (*result.Result, error) {
	if err := r.dir.Flush(); err != nil {
		return nil, err
	}
	recs, err := r.dir.Journal()
	if err != nil {
		return nil, err
	}
	res, err := result.Fold(recs)
	if err != nil {
		return nil, fmt.Errorf("folding the journal: %w", err)
	}
	return res, nil
}
