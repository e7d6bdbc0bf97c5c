package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"dmgbench/internal/bench/engine/hdiutil"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/linuxhdiutil/imagetool"
	"dmgbench/internal/report"
	"dmgbench/internal/result"
	"dmgbench/internal/result/runfolders"
	"dmgbench/internal/system/host"
	"dmgbench/internal/system/safetext"
	"dmgbench/internal/system/units"
	"dmgbench/internal/watch"
)

// answer is the JSON of one run on stdout, in one line. Its keys are part of
// the interface for programs; new ones may be added.
type answer struct {
	Run     string     `json:"run"` // run id
	Dir     string     `json:"dir"` // the run folder
	Status  string     `json:"status"`
	Cases   caseCounts `json:"cases"`
	Message string     `json:"message,omitempty"`
	Rounds  string     `json:"rounds,omitempty"`          // how --rounds auto ended
	Kept    []string   `json:"kept,omitempty"`            // commands that open the images
	Secret  string     `json:"passphrase_file,omitempty"` // of kept images that are encrypted
	Exit    int        `json:"exit"`
}

// caseCounts counts the cases of a run by their status.
type caseCounts struct {
	Done        int `json:"done"`
	Failed      int `json:"failed"`
	Skipped     int `json:"skipped"`
	Discarded   int `json:"discarded"`
	NotFinished int `json:"not_finished"` // resume continues them
}

// session executes run, which is runner.Run or runner.Resume, writes result.json
// and the report, prints the answer and returns the exit status of the run.
func (a *app) session(ctx context.Context, c runner.Config,
	run func(context.Context, runner.Config) (runner.Outcome, error),
) (int, error) {
	a.chownAtExit(c.Out)
	pr := a.newProgress()
	pr.onlyWaiting = c.Wait != nil
	if c.Plan != nil { // a finished run is resumed without its plan
		pr.names = report.CaseNames(c.Plan)
	}
	c.Progress = pr
	// The runner cleans up when ctx is cancelled; this only explains the pause.
	stop := context.AfterFunc(ctx, func() {
		pr.Message("interrupted: cleaning up; a second interrupt exits at once, and dmgbench clean removes the rest")
	})
	defer stop()
	a.warnLeftovers(ctx, c.StateDir, c.Out)
	if _, build := host.OSVersion(); c.Plan != nil && build != "" && !hdiutil.IsKnown(build) {
		a.message(fmt.Sprintf("no answers of the disk image tools of build %s of macOS are on file: "+
			"dmgbench doctor --apple shows whether they differ", build))
	}
	release, err := prepareHost(ctx, &c)
	if err != nil {
		return 0, err
	}
	var out runner.Outcome
	// Before the first image is made: after a crash the next session needs it.
	if err = a.savePassphrase(c); err == nil {
		done := pr.answerSignal()
		out, err = run(ctx, c)
		stop()
		done()
	}
	release()
	if err != nil {
		if runner.Stopped(err) { // what was measured has a report; a full disk may have no space for it
			if _, r, noReport := runfolders.Update(c.Out); noReport == nil {
				pr.Message(pr.summary(r))
			}
		}
		return 0, err
	}
	// Places are known only now: the runner makes its marked folders there.
	for _, folder := range out.Folders {
		a.chownAtExit(folder)
	}
	secret := a.dropPassphrase(c, out)
	out.Message = namedAsGiven(out.Message, c.Out)
	return a.printOutcome(c, out, pr, secret)
}

// printOutcome analyzes the run, prints its report and what to do next, and
// returns its exit status. The report goes to stdout, all else to stderr.
// secret is the passphrase file of kept images, "" without one.
func (a *app) printOutcome(c runner.Config, out runner.Outcome, pr *progress, secret string) (int, error) {
	p, r, err := runfolders.Update(c.Out)
	if err != nil {
		return 0, err
	}
	code := 0
	switch {
	case out.Status == runner.StatusInterrupted, out.Status == runner.StatusPaused:
		code = exitInterrupted
	// A result may be worse than the outcome of its last session: earlier
	// sessions may have failed cases.
	case out.Status == runner.StatusFailed, out.Status == runner.StatusSkipped, r.Outcome() != result.Done:
		code = exitCases
	}
	if a.json {
		by := casesByStatus(r)
		return code, json.NewEncoder(a.stdout).Encode(answer{r.Run, c.Out, out.Status,
			caseCounts{by[result.Done], by[result.Failed], by[result.Skipped], by[result.Discarded],
				by[result.NotFinished]}, out.Message, endOfRounds(r), out.Kept, secret, code})
	}
	// A run that had ended before has no new figures to print.
	if out.Complete {
		return code, a.print("%s\nreport: %s", out.Message, filepath.Join(c.Out, result.ReportFile))
	}
	// An error of stdout is returned at the end: what to do next goes to stderr
	// nevertheless.
	err = a.render(p, r, "text")
	kept := "The images are kept until dmgbench clean. To open them:\n  " + strings.Join(out.Kept, "\n  ")
	lines := nonempty(endOfRounds(r), pr.summary(r), a.reportPath(c.Out), out.Message,
		report.TextIf(len(out.Kept) > 0, kept),
		report.TextIf(secret != "", "The passphrase of the encrypted images is in "+secret))
	fmt.Fprintln(a.stderr, printable(strings.Join(lines, "\n")))
	return code, err
}

// casesByStatus counts the cases of a result; see
// [result.Result.DisplayStatus].
func casesByStatus(r *result.Result) map[string]int {
	by := map[string]int{}
	for i := range r.Cases {
		by[r.DisplayStatus(&r.Cases[i])]++
	}
	return by
}

// endOfRounds is how --rounds auto ended, "" where the number was fixed or the
// run has not ended.
func endOfRounds(r *result.Result) string {
	if r.Auto == nil {
		return ""
	}
	last := append([]result.Look{{}}, r.Auto.Decisions...)[len(r.Auto.Decisions)]
	return report.TextIf(last.Stop != "", "rounds "+last.Text)
}

// reportPath is where the report of a run is, and the command that prints all
// of it.
func (a *app) reportPath(dir string) string {
	text := "report: " + filepath.Join(dir, result.ReportFile)
	if !a.isSet("verbose") {
		text += "\nall figures: dmgbench report " + quoted(dir) + " --verbose"
	}
	return text
}

// namedAsGiven names the run folder in commands as the user typed it. Texts of a
// journal contain "<run>" instead of a path.
func namedAsGiven(text, dir string) string {
	return strings.NewReplacer(" "+runner.Absolute(dir), " "+quoted(dir), " <run>", " "+quoted(dir)).Replace(text)
}

// Sessions are how often run executes its plans, with a pause in between. They
// are the unit of compare, because all rounds of one share the state of the
// machine.

// sessions parses --sessions and --pause.
func (a *app) sessions() (s runfolders.Sessions, err error) {
	s.Schema, s.Count = result.SchemaVersion, max(a.number("sessions"), 1)
	if s.Count == 1 && a.text("pause") != "" {
		return s, usageError("add --sessions N", "reading --pause: there is one session only")
	}
	if s.Count > runfolders.MaxSessions {
		return s, usageError("", "reading --sessions: at most %d", runfolders.MaxSessions)
	}
	text := cmp.Or(a.text("pause"), defaultPause)
	d, err := units.ParseDuration(text)
	if err != nil || d < 0 {
		return s, usageError("a time such as 90 s, 10 min or 1 h", "reading --pause: %q is not a time to wait", text)
	}
	s.Pause = time.Duration(d)
	return s, nil
}

// registerSessions writes what the sessions below dir are: into the folder, and
// the paths of their places and inputs, which are private, into
// the registry of runs.
func (a *app) registerSessions(s runfolders.Sessions, c runner.Config, dir string) (err error) {
	a.chownAtExit(dir)
	if s.ID, err = runner.RegisterSessions(c, dir); err != nil {
		return err
	}
	return s.Write(dir)
}

// runSessions calls do for each of the sessions todo, which are the last of all
// the sessions in dirs: with its run folder in each of dirs. An interrupt ends
// the sessions; the command that continues them is printed.
func (a *app) runSessions(ctx context.Context, s runfolders.Sessions, dirs []string, todo []int,
	do func(own []string) (int, error),
) error {
	code := 0
	for i, n := range todo {
		own := sessionFolders(s, dirs, n)
		if n > 0 && code != exitInterrupted && !exists(own[0]) {
			done := s.Count - len(todo) + i
			before := sessionFolders(s, dirs, n-1)
			if err := a.pauseSessions(ctx, s, before[len(before)-1], done); err != nil {
				code = exitInterrupted
			}
		}
		if code != exitInterrupted {
			got, err := do(own)
			if err != nil {
				return err
			}
			code = max(code, got)
		}
		if code != exitInterrupted {
			continue
		}
		for _, dir := range dirs {
			if s.Count > 1 {
				a.message(fmt.Sprintf("%d of %d sessions have not ended; continue with:\n  dmgbench resume %s",
					len(todo)-i, s.Count, quoted(dir)))
			}
		}
		return exitWith(code)
	}
	for _, dir := range dirs {
		if s.Count > 1 {
			a.forgetSessions(dir)
		}
		if s.Count > 1 && !a.json {
			a.message(fmt.Sprintf("%d sessions are in %s: dmgbench compare BEFORE %s, or dmgbench report %s", s.Count,
				dir, quoted(dir), quoted(dir)))
		}
	}
	return exitWith(code)
}

// forgetSessions removes the entry of sessions that have ended. If that fails, it
// stays until their folder is deleted and clean finds that.
func (a *app) forgetSessions(dir string) {
	state, err1 := a.stateDir()
	s, err2 := runfolders.ReadSessions(dir)
	if err1 == nil && err2 == nil && s != nil {
		runner.Unregister(state, s.ID)
	}
}

// sessionFolders are the run folders of session n, from 0, in dirs: these
// themselves for a single session.
func sessionFolders(s runfolders.Sessions, dirs []string, n int) (own []string) {
	if s.Count == 1 {
		return dirs
	}
	for _, dir := range dirs {
		own = append(own, s.Folders(dir)[n])
	}
	return own
}

// pauseSessions waits until the pause since the end of the session in folder is
// over.
func (a *app) pauseSessions(ctx context.Context, s runfolders.Sessions, folder string, done int) error {
	now, wait := a.clock.Wall(), s.Pause
	if state, err := runfolders.State(folder); err == nil && len(state.Sessions) > 0 {
		wait -= max(0, now.Sub(state.Sessions[len(state.Sessions)-1].Finished))
	}
	if wait <= 0 {
		return nil
	}
	next := now.Add(wait).Format("15:04")
	a.message(fmt.Sprintf("session %d of %d is done; the next starts at %s UTC", done, s.Count, next))
	return a.clock.Sleep(ctx, wait)
}

// resumeSessions continues the sessions in a folder: first those that were
// interrupted, then those that have not started, with plan, engine, places and
// inputs of the first one.
func (a *app) resumeSessions(ctx context.Context, dir string, s runfolders.Sessions, wait func(context.Context)) error {
	folders := s.Folders(dir)
	plan, _, err := runfolders.Read(folders[0])
	if err != nil {
		return withHint(fmt.Errorf("reading the first of %d sessions in %q: %w", s.Count, dir, err),
			"if it never started, delete the folder and start the sessions again with dmgbench run")
	}
	first, err := runfolders.State(folders[0])
	if err != nil {
		return err
	}
	var todo []int
	for n, folder := range folders {
		state, err := runfolders.State(folder)
		if err != nil && exists(folder) {
			return err
		}
		if err != nil || state.Ended == nil || a.isSet("retry-failed") && state.FailedRounds() > 0 {
			todo = append(todo, n)
		}
	}
	if len(todo) == 0 {
		return a.print("all %d sessions have ended; no work is left\nreport: dmgbench report %s", s.Count, quoted(dir))
	}
	first.Ended, first.Paused, first.Run.ID = nil, nil, s.ID // as one to continue, with the registered places
	return a.runSessions(ctx, s, []string{dir}, todo, func(own []string) (int, error) {
		if exists(own[0]) {
			return a.resumeFolder(ctx, own[0], wait)
		}
		c, err := a.resumeConfig(ctx, own[0], first, plan)
		if err != nil {
			return 0, err
		}
		inputs := map[string]string{}
		maps.Copy(inputs, runner.InputsOf(c.StateDir, s.ID))
		maps.Copy(inputs, c.Inputs)
		c.Inputs, c.Wait, c.Keep = inputs, wait, c.Keep || first.Run.Keep
		if err := matchInputs(c.Plan, c.Inputs); err != nil {
			return 0, err
		}
		return a.session(ctx, c, runner.Run)
	})
}

// factsTime is the longest time for the commands that report facts of the
// machine.
const factsTime = 15 * time.Second

// runConfig is what all runs of this execution have in common. runDirs are the
// former and the present folder of a run that is resumed, where its passphrase
// may be saved. Engines and signal handlers that it makes end with the program.
func (a *app) runConfig(ctx context.Context, given locations, engine string, runDirs ...string) (runner.Config, error) {
	stop := imagetool.OutlivePipes() // a closed pipe must not end the program while images are attached
	a.atExit = append(a.atExit, func() error { stop(); return nil })
	c := runner.Config{Tool: tool(), Clock: a.clock, Keep: a.isSet("keep"), Places: given.places, Inputs: given.inputs}
	for name, path := range c.Inputs {
		if err := runner.CheckInput(path); err != nil {
			return c, usageError("give an existing file", "reading --input %q: %w", name+"="+path, err)
		}
	}
	var err error
	if c.StateDir, err = a.stateDir(); err != nil {
		return c, err
	}
	if err := os.MkdirAll(c.StateDir, 0o700); err != nil {
		return c, withHint(fmt.Errorf("making state folder: %w", err),
			"set DMGBENCH_STATE to a folder that can be written")
	}
	c.Host.Name = host.CleanName(a.env["DMGBENCH_HOST_NAME"])
	// Time in which nothing ran makes the time of a step wrong.
	c.Suspended, c.Stops, c.Throttled = host.Suspended, host.Stops, host.Throttled
	c.Boot, c.Memory = host.BootID(), host.Memory()
	// The passphrase comes before the engine, which keeps it; no tool gets it
	// in its arguments or environment.
	passphrase, err := a.passphrase(c.StateDir, runDirs...)
	if err == nil {
		c.Engine, c.Why, err = a.chooseEngine(ctx, engine, engineConfig{state: c.StateDir, passphrase: passphrase})
	}
	return c, err
}

// prepareHost locks the host for measuring, adds its facts to c, checks the
// requirements of the plan and keeps the machine awake. release undoes the lock
// and the inhibition of sleep. Where sleep cannot be inhibited, the result gets
// a warning.
func prepareHost(ctx context.Context, c *runner.Config) (release func(), err error) {
	unlock, err := lockHost(ctx, *c, c.Progress.Message)
	if err != nil {
		return nil, err
	}
	gatherFacts(ctx, c)
	if c.Plan != nil {
		if problems := host.Fit(c.Host, c.Plan.Run.Require); len(problems) > 0 {
			unlock()
			e := &runner.NotFitError{Hint: problems[0].Hint}
			for _, p := range problems {
				e.Reasons = append(e.Reasons, p.Text)
			}
			return nil, e
		}
	}
	c.Warnings = append(host.Warnings(c.Host), host.Tune().Warnings()...)
	allowSleep, _, err := host.InhibitSleep()
	if err != nil {
		cause := strings.TrimSuffix(err.Error(), ": "+host.ErrUnsupported.Error())
		text := "the machine may sleep during the run (" + strings.TrimPrefix(cause, "inhibiting sleep: ") + ")"
		c.Warnings = append(c.Warnings, result.Warning{Kind: "sleep", Text: text})
		return unlock, nil
	}
	return func() { allowSleep(); unlock() }, nil
}

// lockHost takes the lock of measuring, and waits a moment for a run that was
// just killed. report, which may be nil, gets a message about the wait.
func lockHost(ctx context.Context, c runner.Config, report func(text string)) (release func(), err error) {
	err = runner.RetryWhileLocked(ctx, c.Clock, host.ErrBusy, report, func() (err error) {
		release, err = host.Lock(c.StateDir)
		return err
	})
	if active := runner.ActiveRuns(c.StateDir); errors.Is(err, host.ErrBusy) && len(active) > 0 {
		err = fmt.Errorf("%w is active in %s", err, quotedList(active))
	}
	return release, err
}

// gatherFacts adds the facts of the machine and of the disks of the run, and a
// function that compares them with the facts after the session.
func gatherFacts(ctx context.Context, c *runner.Config) {
	ctx, cancel := context.WithTimeout(ctx, factsTime)
	defer cancel()
	places := []host.Place{{Path: existing(c.Out)}}
	for _, p := range c.Places {
		if p.Name == "" { // the images are there instead of in the run folder
			places = places[1:]
		}
		place := host.Place{Name: p.Name, Path: p.Path, Backing: p.Backing != ""}
		if c.Plan != nil { // nil for a run that has ended
			if note := c.Plan.PlaceNote(p.Name); note != nil {
				place.Tool = note.Tool
			}
		}
		places = append(places, place)
	}
	before := host.Gather(ctx, places, c.Identify)
	before.Name = cmp.Or(c.Host.Name, before.Name)
	c.Host, c.Virtual = before, host.Virtual(before)
	c.Changes = func() []result.Warning {
		// Not the context of the run: changes during an interrupted session
		// count, too.
		ctx, cancel := context.WithTimeout(context.Background(), factsTime)
		defer cancel()
		return host.Changes(before, host.Gather(ctx, places, false))
	}
}

// watchRun is the command "watch". Without a terminal it prints one screen. It
// uses one processor at a time, as the others are the run's.
func (a *app) watchRun(ctx context.Context, args []string) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if len(args) == 0 {
		args = []string{runsDir}
	}
	dir := runfolders.Newest(report.Map(args, runFolder))
	if a.isSet("serve") {
		return watch.Serve(ctx, dir, a.clock.Wall, func(url string) error { return a.print("%s", url) })
	}
	run, err := watch.Open(dir, a.clock.Wall)
	if err != nil {
		return err
	}
	defer run.Close()
	theme := watch.Plain
	if a.usesColor() {
		theme = watch.Dark // until the terminal reports its background
	}
	// Terminals that do not report it may set this: foreground;background, where 7
	// and 15 are light.
	if c := a.env["COLORFGBG"]; theme == watch.Dark && (strings.HasSuffix(c, ";7") || strings.HasSuffix(c, ";15")) {
		theme = watch.Light
	}
	_, in := terminal(a.stdin)
	if _, out := terminal(a.stdout); in && out && a.env["TERM"] != "dumb" {
		env := []string{"TERM=" + a.env["TERM"], "COLORTERM=" + a.env["COLORTERM"], "TMUX=" + a.env["TMUX"]}
		return run.Follow(ctx, a.stdin, a.stdout, env, theme)
	}
	screen := run.Screen(a.clock.Wall()).Draw(watch.Layout{Width: 80, Theme: theme})
	_, err = io.WriteString(a.stdout, safetext.BreakCommands(screen))
	return err
}
