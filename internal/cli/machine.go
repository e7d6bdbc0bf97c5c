package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"dmgbench/internal/host"
	"dmgbench/internal/result"
	"dmgbench/internal/runner"
)

// factsTime bounds how long the commands that know the machine may take.
const factsTime = 15 * time.Second

// config is what all runs of this invocation have in common. dirs are where the folder of a run that goes on was and is.
func (a *app) config(ctx context.Context, o sessionOptions, dirs ...string) (runner.Config, error) {
	a.outlivePipes()
	c := runner.Config{Tool: tool(), Clock: a.clock, Keep: o.Keep}
	given, err := readPlaces(o.On)
	if err != nil {
		return c, err
	}
	c.Places = given.dirs
	if c.Inputs, err = pairs("input", o.Input); err != nil {
		return c, err
	}
	for name, path := range c.Inputs {
		if err := runner.CheckInput(path); err != nil {
			return c, &usageError{err: fmt.Errorf("reading --input %q: %w", name+"="+path, err), hint: "give a file that is there"}
		}
	}
	if c.StateDir, err = a.stateDir(); err != nil {
		return c, err
	}
	if err := os.MkdirAll(c.StateDir, 0o700); err != nil {
		return c, &hintedError{fmt.Errorf("making state folder: %w", err), "set DMGBENCH_STATE to a folder that can be written"}
	}
	secret, err := a.secret(c.StateDir, dirs...)
	if err != nil {
		return c, err
	}
	if c.Engine, c.Why, err = a.pick(ctx, o.Engine, kit{state: c.StateDir, secret: secret}); err != nil {
		return c, err
	}
	c.Boot, c.Memory = host.BootID(), host.Memory()
	if _, err := host.Suspended(); err == nil {
		c.Suspended = suspended
	}
	return c, nil
}

// prepare makes the machine ready: it takes the lock of measuring, keeps the
// machine awake, adds its facts and checks what the plan requires of it.
func prepare(ctx context.Context, c *runner.Config) (release func(), err error) {
	unlock, err := lockHost(ctx, *c, c.Progress.Message)
	if err != nil {
		return nil, err
	}
	observe(ctx, c)
	if c.Plan != nil {
		if err := demand(c); err != nil {
			unlock()
			return nil, err
		}
	}
	c.Warnings = append(host.Warnings(c.Host), host.Tune().Warnings()...)
	sleepy, _, err := host.InhibitSleep()
	if err != nil {
		c.Warnings = append(c.Warnings, result.Warning{Kind: "sleep", Text: "the machine may go to sleep during the run (" + withoutKind(err) + ")"})
		return unlock, nil
	}
	return func() { sleepy(); unlock() }, nil
}

// lockHost takes the lock of measuring. A run that was killed a moment ago may still hold it.
func lockHost(ctx context.Context, c runner.Config, say func(text string)) (release func(), err error) {
	err = runner.RetryWhileLocked(ctx, c.Clock, host.ErrBusy, say, func() (err error) {
		release, err = host.Lock(c.StateDir)
		return err
	})
	if going := runner.ActiveRuns(c.StateDir); errors.Is(err, host.ErrBusy) && len(going) > 0 {
		err = fmt.Errorf("%w is going on in %s", err, quotedList(going))
	}
	return release, err
}

// quotedList quotes paths: "a" and "b".
func quotedList(paths []string) string {
	quoted := make([]string, len(paths))
	for i, p := range paths {
		quoted[i] = fmt.Sprintf("%q", p)
	}
	return strings.Join(quoted, " and ")
}

// withoutKind is what an error of host says, without the sentence that it was
// "inhibiting sleep" and the kind of error that every such error ends in.
func withoutKind(err error) string {
	text := strings.TrimSuffix(err.Error(), ": "+host.ErrUnsupported.Error())
	return strings.TrimPrefix(text, "inhibiting sleep: ")
}

// demand says what the plan asks of the machine and does not get.
func demand(c *runner.Config) error {
	problems := host.Fit(c.Host, c.Plan.Run.Require)
	if len(problems) == 0 {
		return nil
	}
	e := &runner.NotFitError{Hint: problems[0].Hint}
	for _, p := range problems {
		e.Reasons = append(e.Reasons, p.Text)
	}
	return e
}

// suspended is how long the machine has slept, in nanoseconds.
func suspended() (int64, error) {
	d, err := host.Suspended()
	return int64(d), err
}

// observe adds the facts of the machine, of the disks that the run is on too.
func observe(ctx context.Context, c *runner.Config) {
	ctx, cancel := context.WithTimeout(ctx, factsTime)
	defer cancel()
	asked := []host.Place{{Path: existing(c.Out)}}
	for _, p := range c.Places {
		if p.Name == "" {
			asked = asked[1:]
		}
		asked = append(asked, host.Place(p))
	}
	c.Host = host.Gather(ctx, asked, c.Identify)
	c.Virtual = host.Virtual(c.Host)
	before := c.Host
	c.Changes = func() []result.Warning {
		// Not ctx: an interrupted session has been measured in, too.
		ctx, cancel := context.WithTimeout(context.Background(), factsTime)
		defer cancel()
		return host.Changes(before, host.Gather(ctx, asked, false))
	}
}

// existing is path, or the nearest folder above it that is there.
func existing(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	for {
		if _, err := os.Stat(abs); err == nil || filepath.Dir(abs) == abs {
			return abs
		}
		abs = filepath.Dir(abs)
	}
}

// stateDir is where runs are registered; see [host.StateDir].
func (a *app) stateDir() (string, error) {
	dir, err := host.StateDir(func(name string) string { return a.env[name] })
	if errors.Is(err, host.ErrNoHome) {
		return "", &usageError{err: err, hint: "set DMGBENCH_STATE to a folder"}
	}
	a.leaves(dir)
	return dir, err
}
