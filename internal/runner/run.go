package runner

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/units"
	"dmgbench/internal/workload"
)

// cleanupTime bounds how long clean-up may take after an interrupt.
const cleanupTime = 2 * time.Minute

type caseSettings = plan.Settings

// run is one execution of one plan, in one session.
type run struct {
	c        Config
	p        *plan.Plan
	dir      *result.RunDir
	state    *result.State
	auto     *result.AutoRounds // nil where the plan has a number of rounds
	spent    int64              // bytes that steps and canaries of all sessions wrote
	aim      int                // rounds that there will be at least, for the progress
	id       string
	session  int
	holding  bool // the container of a pause is still wanted
	started  time.Duration
	cases    []plan.Case
	places   map[string]*place
	buffers  workload.Buffers
	kept     []string
	written  int64
	toWrite  int64
	finished int
	done     map[caseRoundKey]bool // ended in this session
	asked    map[string]string     // manual settings that the user resumed behind, by axis
}

// Run executes a plan from the beginning. The error is about the run as a whole;
// failing cases are in the journal and in the outcome's status.
func Run(ctx context.Context, c Config) (Outcome, error) {
	if c.Progress == nil {
		c.Progress = silent{}
	}
	if err := fits(c); err != nil {
		return Outcome{}, err
	}
	auto, err := Auto(c.Plan)
	if err != nil {
		return Outcome{}, err
	}
	id := newID(c.Clock.Wall())
	dir, err := result.CreateRun(c.Out, id)
	if err != nil {
		return Outcome{}, err
	}
	defer dir.Close()
	c.Warnings = append(slices.Clone(c.Warnings), dir.Warnings()...)
	if c.Volatile {
		dir.Volatile()
	}
	r := &run{c: c, p: c.Plan, dir: dir, id: id, cases: c.Plan.Cases(), session: 1, auto: auto}
	if err := dir.WriteFile("plan.toml", c.Plan.Canonical()); err != nil {
		return Outcome{}, err
	}
	if err := r.append(result.Record{Kind: result.KindRun, Run: r.start()}); err != nil {
		return Outcome{}, err
	}
	return r.drive(ctx)
}

// Resume goes on with an interrupted or paused run in the folder dir.
func Resume(ctx context.Context, dir string, c Config) (Outcome, error) {
	if c.Progress == nil {
		c.Progress = silent{}
	}
	rd, err := result.ResumeRun(dir)
	if err != nil {
		return Outcome{}, err
	}
	defer rd.Close()
	recs, err := rd.Journal()
	if err != nil {
		return Outcome{}, err
	}
	state, err := result.Replay(recs)
	if err != nil {
		return Outcome{}, fmt.Errorf("reading the journal of %q: %w", dir, err)
	}
	if state.Ended != nil {
		if !c.Keep && !state.Run.Keep {
			unregisterEnded(c.StateDir, state.Run.ID)
		}
		return Outcome{Dir: dir, Status: state.Ended.Status, Message: "the run is complete; nothing is left to do"}, nil
	}
	p, err := plan.Load(filepath.Join(dir, "plan.toml"))
	if err != nil {
		return Outcome{}, err
	}
	if p.Digest() != state.Run.Plan.Digest {
		return Outcome{}, fmt.Errorf("resuming %q: plan.toml was changed since the run began", dir)
	}
	c.Plan, c.Out, c.Identify, c.Keep = p, dir, state.Run.Identify, c.Keep || state.Run.Keep
	c.Warnings = append(slices.Clone(c.Warnings), rd.Warnings()...)
	r := &run{c: c, p: p, dir: rd, state: state, id: state.Run.ID, cases: p.Cases(), session: len(state.Sessions) + 1, asked: askedFor(recs), auto: state.Run.Auto}
	if r.c.Places, err = placesAgain(c, state.Run); err != nil {
		return Outcome{}, err
	}
	r.holding = state.Paused != nil && state.Paused.Container != ""
	return r.drive(ctx)
}

// newID is a safe name that no other run has.
func newID(at time.Time) string {
	var b [3]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return at.UTC().Format("20060102T150405Z") + "-" + hex.EncodeToString(b[:])
}

// fits checks free space for the largest case of each place, and for all that
// --keep leaves there, before anything is written.
func fits(c Config) error {
	if simulated(c.Engine) {
		return nil
	}
	need, kept := map[string]int64{}, map[string]int64{}
	for _, cs := range c.Plan.Cases() {
		t, at := plan.Estimate(c.Plan, cs), cs.Settings.Place
		need[at] = max(need[at], int64(t.HostPeak), int64(c.Plan.Run.SteadyFile))
		if c.Keep { // every image stays, as large as the files that were on it
			kept[at] += int64(t.LivePeak) * int64(c.Plan.Run.AtMost())
		}
	}
	var reasons []string
	for _, p := range allPlaces(c) {
		free, err := freeAt(p.Path)
		if err != nil {
			return fmt.Errorf("asking %s for free space: %w", p.title(c.Out), err)
		}
		if want := need[p.Name] + kept[p.Name]; want > free {
			reasons = append(reasons, fmt.Sprintf("%s has %s free, the plan needs %s at its peak",
				p.title(c.Out), units.Bytes(free).Human(), units.Bytes(want).Human()))
		}
	}
	if len(reasons) > 0 {
		return &NotFitError{Reasons: reasons, Hint: "use --sets or --scale for a smaller run, or --on DIR for another disk"}
	}
	return nil
}

// allPlaces are the named places and the run folder, which is the place "" unless --on gave another.
func allPlaces(c Config) []Place {
	out, root := slices.Clone(c.Places), c.Out
	if i := slices.IndexFunc(out, func(p Place) bool { return p.Name == "" }); i >= 0 {
		root = out[i].Path
	} else {
		out = append([]Place{{Name: "", Path: root}}, out...)
	}
	for _, name := range missingPlaces(c) {
		out = append(out, Place{Name: name, Path: root})
	}
	return out
}

// missingPlaces are the places that the plan names and nobody gave: they lie
// with the unnamed place, which is a departure.
func missingPlaces(c Config) []string {
	var out []string
	for _, name := range c.Plan.Places() {
		if !slices.ContainsFunc(c.Places, func(p Place) bool { return p.Name == name }) {
			out = append(out, name)
		}
	}
	return out
}

func (r *run) start() *result.RunStart {
	s := &result.RunStart{
		ID: r.id, Tool: r.c.Tool, Seed: r.p.Run.Seed, Rounds: r.p.Run.Rounds, Identify: r.c.Identify, Keep: r.c.Keep, Auto: r.auto,
		Plan:       result.PlanRef{Name: r.p.Name, Title: r.p.Title, Digest: r.p.Digest()},
		Departures: []result.Departure{},
	}
	for _, name := range missingPlaces(r.c) {
		s.Departures = append(s.Departures, result.Departure{Kind: "place", Text: fmt.Sprintf("no folder was given for place %q: it lies with the run", name)})
	}
	for _, p := range allPlaces(r.c) {
		place := result.Place{Name: p.Name, Given: slices.Contains(r.c.Places, p)}
		if r.c.Identify {
			place.Path = p.Path
		}
		s.Places = append(s.Places, place)
	}
	for _, c := range r.cases {
		pc := result.PlanCase{ID: c.ID, Keys: [][2]string{}, Baseline: c.Baseline, Target: target(c.Settings)}
		for _, kv := range c.Keys {
			pc.Keys = append(pc.Keys, [2]string{kv.Key, kv.Value})
		}
		s.Cases = append(s.Cases, pc)
	}
	return s
}

// drive runs one session: places, cases, clean-up, and how the session ended.
func (r *run) drive(ctx context.Context) (Outcome, error) {
	r.started = r.c.Clock.Now()
	for _, p := range allPlaces(r.c) {
		r.dir.Hide(absolute(p.Path), "<"+cmpOr(p.Name, "run")+">")
	}
	r.dir.Hide(r.c.StateDir, "<state>")
	for name, path := range r.c.Inputs {
		r.dir.Hide(path, "<"+name+">")
		r.dir.Hide(absolute(path), "<"+name+">")
	}
	// The registry knows the run before its journal says that it began: whoever is
	// killed in between leaves an entry too many, never a run whose places nobody knows.
	if err := r.register(); err != nil {
		return Outcome{}, err
	}
	if err := r.openSession(); err != nil {
		return Outcome{}, err
	}
	var undo cleanup
	defer r.buffers.Free()
	err := r.openPlaces(&undo)
	if err == nil {
		err = r.rounds(ctx)
	}
	out := Outcome{Dir: r.dir.Path(), Kept: r.kept}
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
		unregister(r.c.StateDir, r.id)
	}
	return out, err
}

// close removes the run's folders unless something in them is still wanted, and
// says whether nothing is left.
func (r *run) close(undo *cleanup, status string) bool {
	if status == StatusPaused || r.c.Keep || r.holding {
		for _, p := range r.places {
			p.close()
		}
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTime)
	defer cancel()
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
		Index: r.session, Host: r.c.Host, Started: r.c.Clock.Wall(), Boot: r.c.Boot,
		Engine: result.Engine{Name: info.Name, Vendor: info.Vendor, Version: info.Version, Title: info.Title, Why: r.c.Why},
	}}), r.hostWarnings())
}

func (r *run) hostWarnings() error {
	for _, w := range r.c.Warnings {
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
	e := entry{Run: r.id, Folder: absolute(r.dir.Path()), Places: map[string]string{}}
	for _, p := range allPlaces(r.c) {
		e.Places[p.Name] = absolute(p.Path)
	}
	return register(r.c.StateDir, e)
}

func (r *run) openPlaces(undo *cleanup) error {
	r.places = map[string]*place{}
	for _, p := range allPlaces(r.c) {
		if _, err := os.Stat(p.Path); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("opening %s: no such folder", p.title(r.c.Out))
		}
		if pl := r.shared(p.Path); pl != nil {
			r.places[p.Name] = pl
			continue
		}
		pl, err := openPlace(p, r.id, r.c.Hook)
		if err != nil {
			return err
		}
		r.places[p.Name] = pl
		undo.push("cleaning up", func(context.Context) error { return pl.remove(r.id) })
	}
	return nil
}

// shared is the opened place in the same folder, if several names mean one.
func (r *run) shared(path string) *place {
	for _, pl := range r.places {
		if absolute(pl.root.Path()) == absolute(path) {
			return pl
		}
	}
	return nil
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

func cmpOr(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// append writes one record with the time of day.
func (r *run) append(rec result.Record) error {
	rec.At = r.c.Clock.Wall()
	return r.dir.Append(rec)
}

// warn keeps a warning; one that cannot be kept stops the run at its next record.
func (r *run) warn(caseID, kind, text string) {
	_ = r.append(result.Record{Kind: result.KindWarning, Warning: &result.WarningRecord{
		Case: caseID, Warning: result.Warning{Kind: kind, Text: text},
	}})
}

// order is the shuffled order of the cases in one round, from seed and round alone.
func (r *run) order(round int) []string {
	ids := make([]string, len(r.cases))
	for i, c := range r.cases {
		ids[i] = c.ID
	}
	rng := mathrand.New(mathrand.NewPCG(r.p.Run.Seed, uint64(round)))
	rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return ids
}
