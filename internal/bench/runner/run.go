package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/units"
)

// run is one session of one run. Its fields are used by one goroutine; the
// steps of a parallel block get copies of the case's state, see
// [stepRun.parallel].
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
	folders []*workFolder // of the places, each once
	buffers workload.Buffers
	kept    []string // command lines that open kept images

	journalErr error // the first record that could not be appended

	pauseHeld     bool // the images of a pause are still needed
	stillAttached bool // an image could not be detached
	maybeAttached bool // an image may be attached below the run's folders

	writtenByAll int64 // bytes that steps and canaries of all sessions wrote
	written      int64 // bytes that steps of this session wrote
	roundWrites  int64 // bytes that the steps of one round write
	goal         int   // expected number of rounds, for the progress
	forecast     forecast
	finished     int             // case-rounds, for the progress
	warned       map[string]bool // texts that Progress has received
}

// Run executes a plan from the start. The error is about the run as a whole;
// failed cases are in the journal and in the outcome's status.
func Run(ctx context.Context, c Config) (Outcome, error) {
	if err := checkWritable(c); err != nil {
		return Outcome{}, err
	}
	if !isSimulated(c.Engine) { // its disks need no space
		spaces, err := Spaces(c)
		if err == nil {
			err = CheckSpace(spaces)
		}
		if err != nil {
			return Outcome{}, err
		}
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
	r := newRun(c, dir, &result.State{Run: result.RunStart{ID: id, Auto: auto}, Orders: map[int][]string{}})
	if err := dir.WriteFile(result.PlanFile, c.Plan.Canonical()); err != nil {
		return Outcome{}, err
	}
	r.append(result.Record{Run: r.runStart()})
	return r.runSession(ctx)
}

// Resume continues an interrupted or paused run in the folder dir. A run that has
// ended is continued only with Config.RetryFailed and if case-rounds failed; else
// Resume returns its outcome.
func Resume(ctx context.Context, dir string, c Config) (Outcome, error) {
	c.Progress = cmp.Or[Progress](c.Progress, silentProgress{})
	d, err := lockRun(ctx, c.Clock, dir, c.Progress.Message)
	if err != nil {
		return Outcome{}, err
	}
	defer d.Close()
	state, err := d.State()
	if err != nil {
		return Outcome{}, err
	}
	c.Plan, c.Out, c.Identify, c.Keep = nil, dir, state.Run.Identify, c.Keep || state.Run.Keep
	c.RetryFailed = c.RetryFailed || state.Retrying()
	n := state.FailedRounds()
	if state.Ended != nil && !(c.RetryFailed && n > 0) {
		if !c.Keep {
			unregisterEnded(c.StateDir, state.Run.ID)
		}
		out := Outcome{Dir: dir, Status: state.Ended.Status, Complete: true,
			Message: "the run is complete; no work is left"}
		if n > 0 {
			out.Message = fmt.Sprintf("the run has ended; %s failed; repeat with: dmgbench resume --retry-failed %s",
				units.Count(n, "case-round"), dir)
		}
		return out, nil
	}
	r := newRun(c, d, state)
	if err := r.checkResume(); err != nil {
		return Outcome{}, err
	}
	r.pauseHeld = state.Paused != nil && state.Paused.Container != ""
	r.maybeAttached = true // until the session has looked for images of earlier ones
	return r.runSession(ctx)
}

// newRun prepares the next session of the run that state describes. Where c has no
// plan, setPlan has to follow: a resumed run reads its plan from the run folder.
func newRun(c Config, dir *result.RunDir, state *result.State) *run {
	c.Progress = cmp.Or[Progress](c.Progress, silentProgress{})
	if c.Volatile {
		dir.Volatile()
	}
	c.Warnings = append(slices.Clone(c.Warnings), dir.Warnings()...)
	r := &run{c: c, dir: dir, state: state, id: state.Run.ID, session: len(state.Sessions) + 1, auto: state.Run.Auto,
		warned: map[string]bool{}}
	if c.Plan != nil {
		r.setPlan(c.Plan)
	}
	return r
}

// setPlan sets the plan and its cases, in plan order.
func (r *run) setPlan(p *plan.Plan) { r.c.Plan, r.p, r.cases = p, p, p.Cases() }

// runStart is the first record of the journal. It contains everything that is
// fixed for the whole run; paths are in it only with --identify.
func (r *run) runStart() *result.RunStart {
	s := &result.RunStart{
		ID: r.id, Tool: r.c.Tool, Seed: r.p.Run.Seed, Rounds: r.p.Run.Rounds, Identify: r.c.Identify, Keep: r.c.Keep,
		Auto: r.auto, Plan: result.PlanRef{Name: r.p.Name, Title: r.p.Title, Digest: r.p.Digest()},
	}
	s.Inputs, s.Departures = inputs(r.c)
	for _, name := range missingPlaces(r.c) {
		if _, here := plan.HereFor(name); !here { // that is a change of the plan, which is a deviation already
			s.Departures = append(s.Departures, result.Departure{Kind: "place",
				Text: fmt.Sprintf("no folder was given for place %q: the run folder is used", name)})
		}
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

// runSession runs one session: places, cases, clean-up and the session's end.
func (r *run) runSession(ctx context.Context) (out Outcome, err error) {
	r.started = r.c.Clock.Now()
	r.hidePaths()
	for _, p := range allPlaces(r.c) { // a mistyped folder is not remembered
		if _, err := os.Stat(p.Path); errors.Is(err, fs.ErrNotExist) {
			return out, r.sessionError(fmt.Errorf("opening %s: no such folder", p.title(r.c.Out)))
		}
	}
	// Register the run before any image is made: a run that is killed in between
	// leaves a needless entry, never images at a place that the registry does not
	// know.
	if err := r.register(); err != nil {
		return out, err
	}
	if err := r.openSession(); err != nil {
		return out, err
	}
	if text := DescribeUnsupported(UnsupportedCases(r.p, r.c.Engine), len(r.cases)); text != "" {
		r.c.Progress.Message(text)
	}
	var undo undoStack
	defer r.buffers.Free()
	if err = r.openPlaces(&undo); err == nil {
		err = r.runRounds(ctx)
	}
	end := &result.SessionEnd{Session: r.session}
	out, end.End, err = r.sessionOutcome(ctx, err)
	if err != nil {
		end.Reason = err.Error()
	}
	// Warnings about the machine belong to the session that they weaken, so
	// they are written before its end record.
	if r.c.Changes != nil {
		for _, w := range r.c.Changes() {
			r.warn("", w.Kind, w.Text)
		}
	}
	clean := r.cleanUp(&undo, out.Status == StatusPaused)
	r.append(result.Record{SessionEnd: end})
	if end.End == result.Clean {
		r.append(result.Record{RunEnd: &result.RunEnd{Status: out.Status}})
	}
	if err = errors.Join(err, r.journalErr, r.dir.Sync()); err != nil {
		err = r.sessionError(err)
	} else if end.End == result.Clean && clean {
		unregisterEnded(r.c.StateDir, r.id)
	}
	return out, err
}

// sessionError is an error that ends the session, with what to do next.
func (r *run) sessionError(err error) error {
	return &result.Error{Doing: "running", File: r.dir.Path(), Err: err,
		Hint: "all measured data is kept; continue with: " + r.resumeCommand()}
}

// sessionOutcome returns how the session ended, by the error of its rounds. A pause
// and a cancelled ctx are no errors; any other error is returned.
func (r *run) sessionOutcome(ctx context.Context, err error) (out Outcome, end string, _ error) {
	out = Outcome{Dir: r.dir.Path(), Kept: r.kept}
	for _, f := range r.folders {
		if len(r.kept) > 0 {
			out.Folders = append(out.Folders, f.dir.Path())
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
			return out, result.Clean, nil
		}
	}
	return out, result.Interrupted, err
}

// resumeCommand is the command that continues the run.
func (r *run) resumeCommand() string { return "dmgbench resume " + engine.ShellQuote(r.dir.Path()) }

// hidePaths keeps paths of this machine out of the records that follow, also in the
// form that tools report: with symbolic links resolved.
func (r *run) hidePaths() {
	hide := func(path, instead string) {
		r.dir.Hide(path, instead)
		if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
			r.dir.Hide(real, instead)
		}
	}
	for _, p := range allPlaces(r.c) {
		hide(Absolute(p.Path), "<"+cmp.Or(p.Name, "run")+">")
	}
	hide(r.c.StateDir, "<state>")
	for name, path := range r.c.Inputs {
		r.dir.Hide(path, "<"+name+">")
		hide(Absolute(path), "<"+name+">")
	}
}

// openSession writes the session record with host and engine, and the warnings
// about the host. They are durable before the first image is made.
func (r *run) openSession() error {
	info := r.c.Engine.Info()
	r.append(result.Record{Session: &result.Session{
		Index: r.session, Host: r.c.Host, Started: r.c.Clock.Wall(), Boot: r.c.Boot, RetryFailed: r.c.RetryFailed,
		Engine: result.Engine{Name: info.Name, Vendor: info.Vendor, Version: info.Version, Title: info.Title,
			Why: r.c.Why},
	}})
	for _, w := range append(slices.Clone(r.c.Warnings), r.changes()...) {
		r.warn("", w.Kind, w.Text)
	}
	return errors.Join(r.journalErr, r.dir.Sync())
}

// cleanUp detaches images that were left attached, then removes the run's folders
// unless an image in them is still needed or attached: a process that uses a volume
// hangs if its image is deleted. It reports whether everything was removed.
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
		// If the engine detached no image, an earlier failure to detach still counts.
		r.stillAttached = err != nil || r.stillAttached && n == 0
	}
	if r.stillAttached {
		r.warn("", "cleanup", "an image may still be attached and was not deleted: close the programs that use "+
			"its volume, then dmgbench clean detaches and removes it")
	}
	if keep || r.stillAttached {
		for _, f := range r.folders {
			f.close()
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
	return r.dir.Fold()
}

// append writes one record with the time of day. It may be lost in a power cut
// until dir.Sync. The first error is kept in journalErr; every later commit and the
// end of the session return it.
func (r *run) append(rec result.Record) {
	rec.At = r.c.Clock.Wall()
	r.journalErr = cmp.Or(r.journalErr, r.dir.Append(rec))
}

// commit writes one record that survives a power cut.
func (r *run) commit(rec result.Record) error {
	r.append(rec)
	return errors.Join(r.journalErr, r.dir.Sync())
}

// now is the session's clock in nanoseconds since its start.
func (r *run) now() int64 { return int64(r.c.Clock.Now() - r.started) }

var digits = regexp.MustCompile(`[0-9]+`)

// warnProgress shows a warning to the user, once in a session; texts that differ
// only in digits count as the same.
func (r *run) warnProgress(caseID, text string) {
	key := digits.ReplaceAllString(text, "")
	if r.warned[key] {
		return
	}
	r.warned[key] = true
	if caseID != "" {
		text = caseID + ": " + text
	}
	r.c.Progress.Warning(text)
}

// warn shows a warning to the user, see warnProgress, and writes it to the journal.
func (r *run) warn(caseID, kind, text string) {
	r.warnProgress(caseID, text)
	r.append(result.Record{Warning: &result.WarningRecord{
		Case: caseID, Warning: result.Warning{Kind: kind, Text: text},
	}})
}

// pausedError ends a session on purpose: the user has to do something.
type pausedError struct{ message string }

// Error contains what the user has to do.
func (e *pausedError) Error() string { return "paused: " + e.message }

// cleanupTime bounds the clean-up at the end of a session.
const cleanupTime = 2 * time.Minute

// undoStack is what has to be undone, last first.
type undoStack []func(context.Context) error

// push adds an action that is undone before all earlier ones. Its name
// completes an error: "removing the container".
func (s *undoStack) push(name string, do func(context.Context) error) {
	*s = append(*s, func(ctx context.Context) error {
		if err := do(ctx); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
}

// run undoes everything, also after an error, and returns every error.
func (s *undoStack) run(ctx context.Context) (errs []error) {
	for _, do := range slices.Backward(*s) {
		if err := do(ctx); err != nil {
			errs = append(errs, err)
		}
	}
	*s = nil
	return errs
}

// detachImages detaches the images below the run's folders, whichever session
// attached them, and returns their number. An engine without [engine.Releaser]
// detaches all its images when its process ends.
func (r *run) detachImages(ctx context.Context) (n int, err error) {
	e, ok := r.c.Engine.(engine.Releaser)
	if !ok {
		return 0, nil
	}
	for _, f := range r.folders {
		names, err := e.Release(ctx, f.dir.Path())
		n += len(names)
		for _, name := range names {
			r.warn("", "leftover", name+" was still attached, and was detached")
		}
		if err != nil {
			return n, fmt.Errorf("detaching leftovers in %s: %w", f.title, err)
		}
	}
	return n, nil
}

// openPlaces opens the work folder of every place. Places with the same folder share
// one work folder.
func (r *run) openPlaces(undo *undoStack) error {
	r.places = map[string]*workFolder{}
	for _, p := range allPlaces(r.c) {
		i := slices.IndexFunc(r.folders, func(f *workFolder) bool { return f.isAt(p.Path) })
		if i < 0 {
			f, err := openWorkFolder(p, r.id, r.c.Hook)
			if err != nil {
				return err
			}
			i, f.title = len(r.folders), p.title(r.c.Out)
			r.folders = append(r.folders, f)
			undo.push("cleaning up", func(context.Context) error { return f.remove(r.id) })
		}
		f := r.folders[i]
		if r.places[p.Name] = f; p.Backing != "" && f.backing == nil {
			var err error
			if f.backing, err = hostio.OpenDir(p.Backing); err != nil {
				return fmt.Errorf("opening the backing folder of %s: %w", f.title, hostio.WithoutPath(err))
			}
		}
	}
	return nil
}

// register writes the places and inputs of this session to the registry, so
// that [Clean] finds what a killed run leaves, and resume finds the places
// again.
func (r *run) register() error {
	if r.c.StateDir == "" {
		return nil
	}
	e := newEntry(r.c, r.id, r.dir.Path())
	before, _ := readEntry(r.c.StateDir, r.id) // without one there are no former folders
	for _, p := range before.folders() {
		isPlace := slices.ContainsFunc(e.folders(), func(q Place) bool { return q.Path == p.Path })
		if !isPlace && before.mayContainImages(p) {
			e.Former = append(e.Former, p.Path)
		}
	}
	return writeEntry(r.c.StateDir, e)
}
