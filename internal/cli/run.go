package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/bench/runner"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/result/runfolders"
	"dmgbench/internal/system/units"
)

// largeRun is the number of bytes to write from which a run has to be
// confirmed: it takes time and wears the disk.
const largeRun = 20 * units.Bytes(1e9)

// runPlans is the command "run". All plans, places and inputs are checked
// before the first plan is executed: a run of hours must not fail because of
// the last plan's name.
func (a *app) runPlans(ctx context.Context, args []string) error {
	if a.isSet("dry-run") && a.json {
		return usageError("", "reading --format: --dry-run prints text only")
	}
	if a.isSet("dry-run") && a.isSet("wait-between-steps") {
		return usageError("", "reading --wait-between-steps: --dry-run executes no step")
	}
	s, err1 := a.sessions()
	given, err2 := a.locations()
	if err := cmp.Or(err1, err2); err != nil {
		return err
	}
	runs := make([]runner.Config, len(args))
	var err error
	for i, name := range args {
		refused := exitWith(exitUsage)
		// Problems are printed, so that a user mends those of all plans in one go.
		if p := a.loadUsable(name); p != nil {
			runs[i], refused = a.applyFlags(p, given)
		}
		err = cmp.Or(err, refused)
	}
	if err != nil {
		return err
	}
	if !a.isSet("dry-run") {
		const interrupted = "interrupted before the run started: no file was made"
		return explainInterrupt(a.execute(ctx, runs, given, s), interrupted)
	}
	for _, c := range runs {
		if err := a.dryRun(ctx, c, s); err != nil {
			return err
		}
	}
	return nil
}

// applyFlags applies the flags, places and inputs to a plan. A plan is shown
// without its files and folders, too.
func (a *app) applyFlags(p *plan.Plan, given locations) (c runner.Config, err error) {
	c = runner.Config{Out: cmp.Or(a.text("out"), runsDir), Keep: a.isSet("keep")}
	o, err := a.overrides(p, given)
	if err == nil {
		c.Plan, _, err = p.Apply(o)
	}
	if err != nil {
		return c, err
	}
	c.Places, err = matchPlaces(c.Plan, given.places)
	err = cmp.Or(err, checkRunnable(c.Plan))
	dry := a.isSet("dry-run")
	if !dry || len(given.inputs) > 0 {
		err = cmp.Or(err, matchInputs(c.Plan, given.inputs))
	}
	if !dry {
		err = cmp.Or(err, requirePlaces(c.Plan, c.Places))
	}
	return c, err
}

// overrides are the flags that change the plan. Each of them becomes a
// deviation of the result, unless the plan allows the change.
func (a *app) overrides(p *plan.Plan, given locations) (o plan.Overrides, err error) {
	o = plan.Overrides{Sets: a.number("sets"), Workers: a.number("workers"), MaxRounds: a.number("max-rounds"),
		Filesystem: a.text("fs"), Precondition: a.text("precondition"), Here: given.here}
	o.Scale, _ = a.command.Flags().GetFloat64("scale")
	switch rounds := a.text("rounds"); rounds {
	case "":
	case "auto":
		o.Auto = true
	default:
		if o.Rounds, err = strconv.Atoi(rounds); err != nil || o.Rounds < 1 { // 0 stands for those of the plan
			return o, usageError("", "reading --rounds: want a whole number from 1, or auto, not %q", rounds)
		}
	}
	if seed, _ := a.command.Flags().GetUint64("seed"); a.isGiven("seed") {
		o.Seed = &seed
	}
	var errs [4]error
	o.Precision, errs[0] = positiveQuantity(a, "precision", units.ParseShare)
	o.MaxTime, errs[1] = positiveQuantity(a, "max-time", units.ParseDuration)
	o.MaxWritten, errs[2] = positiveQuantity(a, "max-written", units.ParseBytes)
	if only := a.text("only"); only != "" {
		o.Only, errs[3] = p.ParseSelector(only)
	}
	return o, cmp.Or(errs[:]...)
}

// dryRun prints what a run would do to stdout, and what depends on this machine
// to stderr.
func (a *app) dryRun(ctx context.Context, c runner.Config, s runfolders.Sessions) error {
	// The engine that a run would try first; a probe would leave files.
	e, _, err := a.chooseEngine(ctx, a.text("engine"), engineConfig{})
	if err := runner.DryRun(a.stdout, c.Plan, e, runner.AssumedRate); err != nil {
		return err
	}
	if err != nil {
		a.warn(fmt.Sprintf("warning: cannot list the cases that would be skipped: %v", err))
		err = nil
	} else if text := runner.DescribeUnsupported(runner.UnsupportedCases(c.Plan, e), len(c.Plan.Cases())); text != "" {
		err = a.print("%s", text)
	}
	if s.Count > 1 {
		err = a.print("\nSESSIONS: all of this %d times, with a pause of %s in between", s.Count, s.Pause)
	}
	spaces, unknown := runner.Spaces(c)
	if err = cmp.Or(err, unknown); err != nil {
		return err
	}
	missing := missingPlaces(c.Plan, c.Places)
	spaces = slices.DeleteFunc(spaces, func(s runner.Space) bool { return slices.Contains(missing, s.Place.Name) })
	for _, s := range spaces {
		fmt.Fprintln(a.stderr, printable(s.String()))
	}
	for _, err := range []error{requirePlaces(c.Plan, c.Places), runner.CheckSpace(spaces)} {
		if err != nil {
			fmt.Fprintln(a.stderr, printable(fmt.Sprintf("this run would be refused: %v\nhint: %s", err, hint(err))))
		}
	}
	return nil
}

// execute executes the runs, in several sessions if --sessions asks for them.
// One engine and one passphrase serve all of them. It stops after an interrupted
// run, which the remaining plans would not be compared with.
func (a *app) execute(ctx context.Context, runs []runner.Config, given locations, s runfolders.Sessions) error {
	ctx, wait, err := a.waitForLines(ctx)
	if err != nil {
		return err
	}
	// The engine is chosen last, as a probe takes seconds and writes files.
	c, err := a.runConfig(ctx, given, a.text("engine"))
	if err != nil {
		return err
	}
	c.Identify, c.Wait = a.isSet("identify"), wait
	var total units.Bytes // of all plans, rounds and sessions, with --rounds auto at most
	for _, run := range runs {
		for _, c := range run.Plan.Cases() {
			total += plan.Estimate(run.Plan, c).BytesWritten * units.Bytes(run.Plan.Run.AtMost()*s.Count)
		}
	}
	if total >= largeRun && wait == nil && a.canAsk() && !a.isSet("yes") {
		question := fmt.Sprintf("This writes up to %s in total. Continue?", total.Human())
		const hint = "--dry-run shows what it would do, --sets 1 shortens it, --yes does not ask"
		if err := a.confirm(ctx, question, hint); err != nil {
			return err
		}
	}
	dirs := outFolders(a.text("out"), runs, c.Clock.Wall().Format("20060102T150405Z"))
	todo := make([]int, s.Count)
	for i := range todo {
		todo[i] = i
	}
	for i, dir := range dirs {
		if s.Count == 1 {
			break
		}
		c.Plan, c.Places, c.Out = runs[i].Plan, runs[i].Places, dir
		if err := a.registerSessions(s, c, dir); err != nil {
			return err
		}
	}
	return a.runSessions(ctx, s, dirs, todo, func(dirs []string) (code int, err error) {
		for i, dir := range dirs {
			c.Plan, c.Places, c.Out = runs[i].Plan, runs[i].Places, dir
			if a.isSet("watch") {
				a.message("in another terminal: dmgbench watch " + quoted(runner.Absolute(dir)))
			}
			got, err := a.session(ctx, c, runner.Run)
			if code = max(code, got); err != nil || code == exitInterrupted {
				return code, err
			}
		}
		return code, nil
	})
}

// outFolders are the run folders of the plans. Names get a number where a plan
// is given twice, and default names where the folder exists, as a run of less
// than a second leaves its name to the next run.
func outFolders(out string, runs []runner.Config, now string) (dirs []string) {
	for _, run := range runs {
		dir := cmp.Or(out, filepath.Join(runsDir, run.Plan.Name+"-"+now))
		if out != "" && len(runs) > 1 {
			dir = filepath.Join(out, run.Plan.Name)
		}
		name := dir
		for n := 2; slices.Contains(dirs, name) || out == "" && exists(name); n++ {
			name = dir + "-" + strconv.Itoa(n)
		}
		dirs = append(dirs, name)
	}
	return dirs
}

// exists reports whether there is a file of that name, or a link.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// resumeRun is the command "resume". It continues the run in a folder, or the
// sessions in it. A run that has ended only prints its report again, unless
// --retry-failed asks for its failed rounds.
func (a *app) resumeRun(ctx context.Context, args []string) (err error) {
	defer func() { err = explainInterrupt(err, "interrupted before the run continued: it did not change") }()
	dir := args[0]
	ctx, wait, err := a.waitForLines(ctx)
	if err != nil {
		return err
	}
	s, err := runfolders.ReadSessions(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if s != nil {
		return a.resumeSessions(ctx, dir, *s, wait)
	}
	code, err := a.resumeFolder(ctx, dir, wait)
	if err != nil {
		return err
	}
	return exitWith(code)
}

// resumeFolder continues the run in a folder and returns its exit status.
func (a *app) resumeFolder(ctx context.Context, dir string, wait func(context.Context)) (int, error) {
	state, err := runfolders.State(dir)
	if err != nil {
		return 0, err
	}
	// The runner decides alike; here it makes the plan and places be read.
	if a.isSet("retry-failed") && state.FailedRounds() > 0 {
		state.Ended = nil
	}
	var p *plan.Plan
	if state.Ended == nil {
		if p, err = plan.Load(filepath.Join(dir, result.PlanFile)); err != nil {
			return 0, err
		}
	}
	c, err := a.resumeConfig(ctx, dir, state, p)
	if err != nil {
		return 0, err
	}
	c.RetryFailed, c.Wait = a.isSet("retry-failed"), wait
	return a.session(ctx, c, func(ctx context.Context, c runner.Config) (runner.Outcome, error) {
		return runner.Resume(ctx, dir, c)
	})
}

// resumeConfig is how a run continues in a folder: with the engine and places of
// the state, and its passphrase. p is nil for a run that has ended.
func (a *app) resumeConfig(ctx context.Context, dir string, state *result.State, p *plan.Plan) (runner.Config, error) {
	name, probe, err := resumedEngine(state, a.text("engine"))
	if err != nil {
		return runner.Config{}, err
	}
	home, err := a.stateDir()
	if err != nil {
		return runner.Config{}, err
	}
	given, err := a.locations()
	if err != nil {
		return runner.Config{}, err
	}
	c, err := a.runConfig(ctx, given, name, runner.FolderOf(home, state.Run.ID), dir)
	if err != nil {
		return c, err
	}
	// --identify is a property of the run: all its sessions record the same facts.
	c.Plan, c.Out, c.Identify = p, dir, state.Run.Identify
	if probe {
		c.Why = "as in the session before"
		if err := a.probe(ctx, c.Engine, c.StateDir); err != nil {
			err = fmt.Errorf("resuming with %s, the engine of the run: %w", c.Engine.Info().Title, err)
			return c, withHint(err, doctorHint+"; a run cannot change its engine")
		}
	}
	if p == nil {
		return c, nil
	}
	// Its places are those of --on, and those that the registry in the state folder knows.
	if c.Places, err = resumePlaces(p, given, state.Run); err != nil {
		return c, err
	}
	if c.Places, err = runner.PlacesOf(c, state.Run); err != nil {
		return c, err
	}
	return c, a.checkPassphrase(c, state)
}

// resumedEngine is the engine of the earlier sessions. Another one is refused,
// because values of two engines are not rounds of one case. probe is true where
// auto had chosen the engine, which has to be probed again.
func resumedEngine(s *result.State, requested string) (name string, probe bool, err error) {
	if len(s.Sessions) == 0 || s.Ended != nil {
		return requested, false, nil
	}
	used := s.Sessions[len(s.Sessions)-1].Engine
	isUsed := func(c engineChoice) bool { return c.name == used.Name }
	switch {
	case requested == used.Name:
		return requested, false, nil
	case requested == "auto" && slices.ContainsFunc(engineChoices, isUsed):
		return used.Name, strings.HasPrefix(used.Why, "auto"), nil
	}
	return "", false, usageError("continue with --engine "+used.Name+", or leave it out", "reading --engine: "+
		"the run was started with %q, and values of two engines are not rounds of one case", used.Name)
}

// locations are the parsed values of --on and --input. Places and inputs are
// named by the plan, and the user assigns folders and files to the names.
type locations struct {
	places []runner.Place    // folders; a place without a name is for plans with one place
	here   []string          // names of places that are measured in the run folder
	inputs map[string]string // files, by the name that the plan gives them
}

// locations parses --on and, where the command has it, --input. A path of --on
// that contains an equals sign is written as =DIR or ./DIR, a folder that is
// named "here" as ./here.
func (a *app) locations() (l locations, err error) {
	seen := map[string]bool{}
	for _, arg := range a.list("on") {
		name, dir, ok := strings.Cut(arg, "=")
		if !ok || strings.ContainsAny(name, `/\`) {
			name, dir = "", arg
		}
		if seen[name] {
			return l, usageError("", "reading --on: place %q is given twice", name)
		}
		seen[name] = true
		if name != "" && dir == plan.Here {
			l.here = append(l.here, name)
			continue
		}
		fi, err := os.Stat(dir)
		if err == nil && !fi.IsDir() {
			err = errors.New("it is not a folder")
		}
		if err != nil {
			return l, usageError("give an existing folder", "reading --on %q: %w", arg, err)
		}
		l.places = append(l.places, runner.Place{Name: name, Path: runner.Absolute(dir)})
	}
	if a.command.Name() == "doctor" {
		return l, nil
	}
	if err := a.addBacking(l.places); err != nil {
		return l, err
	}
	// Whether the files exist is checked when a run needs them, so that a dry run
	// works without them.
	l.inputs = map[string]string{}
	for _, arg := range a.list("input") {
		name, path, _ := strings.Cut(arg, "=")
		if name == "" || path == "" || l.inputs[name] != "" {
			return l, usageError("", "reading --input: %q is not NAME=PATH, or is given twice", arg)
		}
		l.inputs[name] = path
	}
	return l, nil
}

// addBacking parses --backing, for places that --on gives.
func (a *app) addBacking(places []runner.Place) error {
	for _, arg := range a.list("backing") {
		name, dir, _ := strings.Cut(arg, "=")
		i := slices.IndexFunc(places, func(p runner.Place) bool { return p.Name == name })
		fi, err := os.Stat(dir)
		switch {
		case name == "" || i < 0 || places[i].Backing != "":
			return usageError("give the folder of the place too: --on "+name+"=DIR",
				"reading --backing: %q is not NAME=DIR of a place of --on, or is given twice", arg)
		case err == nil && !fi.IsDir():
			err = errors.New("it is not a folder")
		}
		if err != nil {
			return usageError("give an existing folder", "reading --backing %q: %w", arg, err)
		}
		places[i].Backing = runner.Absolute(dir)
	}
	return nil
}

// matchInputs compares the given files with those that a plan declares: all
// that are required, and no others, because a misspelt name would be ignored.
func matchInputs(p *plan.Plan, inputs map[string]string) error {
	for _, in := range p.Inputs {
		if !in.Optional && inputs[in.Name] == "" {
			return usageError("give it with --input "+in.Name+"=PATH", "running plan %q: it needs the file %q: %s",
				p.Name, in.Name, cmp.Or(in.About, "an input"))
		}
	}
	for name := range inputs {
		if !slices.ContainsFunc(p.Inputs, func(in plan.Input) bool { return in.Name == name }) {
			return usageError("", "running plan %q: it asks for no file %q", p.Name, name)
		}
	}
	return nil
}

// matchPlaces gives the folders of --on the names of a plan's places. A folder
// without a name is for the only place of a plan if all cases are there. A
// place that no case uses is refused.
func matchPlaces(p *plan.Plan, given []runner.Place) ([]runner.Place, error) {
	out, names := slices.Clone(given), p.Places()
	for i, place := range out {
		if place.Name != "" && !slices.Contains(names, place.Name) {
			hint := "its places are " + strings.Join(names, ", ")
			if len(names) == 0 {
				hint = "the plan names no place; --on DIR without a name moves the images out of the run folder"
			}
			return nil, usageError(hint, "running plan %q: no case of it is at place %q", p.Name, place.Name)
		}
		inRunFolder := func(c plan.Case) bool { return c.Settings.Place == "" }
		if place.Name == "" && len(given) == 1 && len(names) == 1 && len(missingPlaces(p, nil)) == 1 &&
			!slices.ContainsFunc(p.Cases(), inRunFolder) {
			out[i].Name = names[0]
		}
	}
	return out, nil
}

// missingPlaces are the places of a plan without a folder, in the order of the
// plan. Places that are measured in the run folder with the user's consent need
// none.
func missingPlaces(p *plan.Plan, have []runner.Place) []string {
	return slices.DeleteFunc(p.Places(), func(name string) bool {
		_, here := plan.HereFor(name)
		return here || slices.ContainsFunc(have, func(pl runner.Place) bool { return pl.Name == name })
	})
}

// requirePlaces refuses a plan without a folder for each place: measured
// elsewhere, the values would have the name of a disk that they are not from.
func requirePlaces(p *plan.Plan, have []runner.Place) error {
	missing := missingPlaces(p, have)
	if len(missing) == 0 {
		return nil
	}
	hint := fmt.Sprintf("add %s; or %s to measure in the run folder, which is a deviation",
		onFlags(missing, "DIR"), onFlags(missing, plan.Here))
	for _, name := range missing {
		if note := p.PlaceNote(name); note != nil {
			hint += "; " + name + ": " + note.Instructions
		}
	}
	return usageError(hint, "running plan %q: no folder was given for %s", p.Name, quotedList(missing))
}

// onFlags are the flags that give every place the folder dir, for hints: "--on
// a=DIR --on b=DIR".
func onFlags(names []string, dir string) string {
	return "--on " + strings.Join(names, "="+dir+" --on ") + "=" + dir
}

// quotedList is `"a" and "b"`.
func quotedList(names []string) string { return `"` + strings.Join(names, `" and "`) + `"` }

// resumePlaces gives the folders of --on the names that a run has for them. A
// place cannot change to the run folder or back.
func resumePlaces(p *plan.Plan, l locations, run result.RunStart) ([]runner.Place, error) {
	for _, name := range l.here {
		if !slices.Contains(p.Places(), plan.HereName(name)) {
			return nil, usageError("give the folder that the place is in now: --on "+name+"=DIR",
				"resuming with --on %s=%s: the run was not started with it", name, plan.Here)
		}
	}
	if slices.ContainsFunc(run.Places, func(p result.Place) bool { return p.Name == "" && p.Given }) {
		return l.places, nil
	}
	return matchPlaces(p, l.places)
}
