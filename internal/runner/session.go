package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"dmgbench/internal/result"
)

// cleanupTime bounds how long clean-up may take after an interrupt.
const cleanupTime = 2 * time.Minute

// drive runs one session: places, cases, clean-up, and how the session ended.
func (r *run) drive(ctx context.Context) (Outcome, error) {
	r.started = r.c.Clock.Now()
	for _, p := range allPlaces(r.c) {
		r.hide(absolute(p.Path), "<"+cmpOr(p.Name, "run")+">")
	}
	r.hide(r.c.StateDir, "<state>")
	for name, path := range r.c.Inputs {
		r.dir.Hide(path, "<"+name+">")
		r.hide(absolute(path), "<"+name+">")
	}
	// The registry knows the run before its journal says that it began: whoever is
	// killed in between leaves an entry too many, never a run whose places nobody knows.
	if err := r.register(); err != nil {
		return Outcome{}, err
	}
	if err := r.openSession(); err != nil {
		return Outcome{}, err
	}
	r.tellUnsupported()
	var undo cleanup
	defer r.buffers.Free()
	err := r.openPlaces(&undo)
	if err == nil {
		err = r.rounds(ctx)
	}
	out := Outcome{Dir: r.dir.Path(), Kept: r.kept}
	if len(r.kept) > 0 {
		for _, p := range r.places {
			out.Folders = append(out.Folders, p.dir.Path())
		}
	}
	end, status := result.Clean, ""
	var pause *pausedError
	switch {
	case errors.As(err, &pause):
		out.Status, out.Message, end = StatusPaused, pause.message, result.Paused
		err = nil
	case err != nil && ctx.Err() != nil:
		out.Status, end = StatusInterrupted, result.Interrupted
		out.Message = fmt.Sprintf("go on with: dmgbench resume %s%s", r.keepFlag(), r.dir.Path())
		err = nil
	case err == nil:
		status, err = r.verdict()
		out.Status = status
	}
	if r.c.Changes != nil {
		for _, w := range r.c.Changes() {
			r.warn("", w.Kind, w.Text)
		}
	}
	clean := r.close(&undo, out.Status)
	err = errors.Join(err, r.endSession(end, status, err))
	if err != nil {
		err = &result.Error{Doing: "running", File: r.dir.Path(), Err: err,
			Hint: "what was measured is kept; go on with: dmgbench resume " + r.keepFlag() + r.dir.Path()}
	} else if status != "" && clean {
		unregisterEnded(r.c.StateDir, r.id)
	}
	return out, err
}

// hide keeps a path out of the journal, and the name that tools have for it, with links followed.
func (r *run) hide(path, instead string) {
	r.dir.Hide(path, instead)
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		r.dir.Hide(real, instead)
	}
}

// close removes the run's folders unless something in them is still wanted or attached: a volume whose image is gone hangs
// whoever uses it. It says whether nothing is left.
func (r *run) close(undo *cleanup, status string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTime)
	defer cancel()
	wanted := status == StatusPaused || r.c.Keep || r.holding
	if r.doubt && !wanted {
		r.lastLook(ctx)
	}
	if r.stuck {
		r.warn("", "cleanup", "an image may still be attached, and was left as it is: close what uses its volume, then dmgbench clean detaches and removes it")
	}
	if wanted || r.stuck {
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

// keepFlag repeats --keep for a run that began without it: the journal knows
// what the run was begun with, and no session's flags.
func (r *run) keepFlag() string {
	if r.c.Keep && r.state != nil && r.session > 1 && !r.state.Run.Keep {
		return "--keep "
	}
	return ""
}

func (r *run) openSession() error {
	info := r.c.Engine.Info()
	return errors.Join(r.append(result.Record{Kind: result.KindSession, Session: &result.Session{
		Index: r.session, Host: r.c.Host, Started: r.c.Clock.Wall(), Boot: r.c.Boot, RetryFailed: r.c.RetryFailed,
		Engine: result.Engine{Name: info.Name, Vendor: info.Vendor, Version: info.Version, Title: info.Title, Why: r.c.Why},
	}}), r.hostWarnings())
}

func (r *run) hostWarnings() error {
	for _, w := range append(slices.Clone(r.c.Warnings), r.changed()...) {
		r.warn("", w.Kind, w.Text)
	}
	return r.dir.Sync()
}

func (r *run) endSession(end, status string, cause error) error {
	reason := ""
	if cause != nil {
		reason, end = cause.Error(), result.Interrupted
	}
	err := r.append(result.Record{Kind: result.KindSessionEnd, SessionEnd: &result.SessionEnd{Session: r.session, End: end, Reason: reason}})
	if status != "" && err == nil {
		err = r.append(result.Record{Kind: result.KindRunEnd, RunEnd: &result.RunEnd{Status: status}})
	}
	return errors.Join(err, r.dir.Sync())
}

// register notes where this run keeps its images.
func (r *run) register() error {
	e := entry{Run: r.id, Folder: absolute(r.dir.Path()), Places: map[string]string{}, Inputs: absoluteAll(r.c.Inputs)}
	var before entry
	if r.session > 1 && r.c.StateDir != "" {
		before, _ = readEntry(r.c.StateDir, r.id) // without one there is nothing to take over
	}
	for _, p := range allPlaces(r.c) {
		path := absolute(p.Path)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && !before.knows(path) { // a slip of the pen holds nothing
			if path = before.Places[p.Name]; path == "" {
				continue
			}
		}
		e.Places[p.Name] = path
	}
	e.after(before)
	return register(r.c.StateDir, e)
}
