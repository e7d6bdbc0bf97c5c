package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"dmgbench/internal/host"
	"dmgbench/internal/imagetool"
	"dmgbench/internal/result"
	"dmgbench/internal/runner"
)

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
	// The passphrase comes before the engine, which keeps it; no tool gets it
	// in its arguments or environment.
	passphrase, err := a.passphrase(c.StateDir, runDirs...)
	if err != nil {
		return c, err
	}
	c.Engine, c.Why, err = a.chooseEngine(ctx, engine, engineConfig{state: c.StateDir, passphrase: passphrase})
	if err != nil {
		return c, err
	}
	c.Boot, c.Memory = host.BootID(), host.Memory()
	// Sleep during a step makes its time wrong; not every system reports it.
	if _, err := host.Suspended(); err == nil {
		c.Suspended = func() (int64, error) { // nanoseconds
			d, err := host.Suspended()
			return int64(d), err
		}
	}
	return c, nil
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
		cause = strings.TrimPrefix(cause, "inhibiting sleep: ")
		c.Warnings = append(c.Warnings, result.Warning{Kind: "sleep",
			Text: "the machine may sleep during the run (" + cause + ")"})
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
		places = append(places, host.Place(p))
	}
	before := host.Gather(ctx, places, c.Identify)
	c.Host, c.Virtual = before, host.Virtual(before)
	c.Changes = func() []result.Warning {
		// Not the context of the run: changes during an interrupted session
		// count, too.
		ctx, cancel := context.WithTimeout(context.Background(), factsTime)
		defer cancel()
		return host.Changes(before, host.Gather(ctx, places, false))
	}
}

// stateDir is the folder of the registry of runs, passphrases and mount points,
// see [host.StateDir]. It is not made here.
func (a *app) stateDir() (string, error) {
	dir, err := host.StateDir(func(name string) string { return a.env[name] })
	if errors.Is(err, host.ErrNoHome) {
		return "", usageError("set DMGBENCH_STATE to a folder", "%w", err)
	}
	a.chownAtExit(dir)
	return dir, err
}
