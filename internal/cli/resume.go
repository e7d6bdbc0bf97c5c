package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/runfolders"
	"dmgbench/internal/runner"
)

// resumeRun is the command "resume".
func (a *app) resumeRun(ctx context.Context, args []string) error {
	err := explainInterrupt(a.resume(ctx, args[0]), "interrupted before the run continued: it did not change")
	return withGivenFolder(err, args[0])
}

// resume continues the run in a folder with its own plan, engine, places and
// passphrase. A run that has ended only prints its report again, unless
// --retry-failed asks for its failed rounds.
func (a *app) resume(ctx context.Context, dir string) error {
	state, err := runfolders.State(dir)
	if err != nil {
		return err
	}
	// The runner decides alike; here it makes the plan and places be read.
	if a.isSet("retry-failed") && state.FailedRounds() > 0 {
		state.Ended = nil
	}
	name, probe, err := resumedEngine(state, a.text("engine"))
	if err != nil {
		return err
	}
	home, err := a.stateDir()
	if err != nil {
		return err
	}
	given, err := a.locations()
	if err != nil {
		return err
	}
	c, err := a.runConfig(ctx, given, name, runner.FolderOf(home, state.Run.ID), dir)
	if err != nil {
		return err
	}
	// --identify is a property of the run: all its sessions record the same facts.
	c.RetryFailed, c.Out, c.Identify = a.isSet("retry-failed"), dir, state.Run.Identify
	if probe {
		c.Why = "as in the session before"
		if err := a.probe(ctx, c.Engine, c.StateDir); err != nil {
			title := c.Engine.Info().Title
			return withHint(fmt.Errorf("resuming with %s, the engine of the run: it does not work now: %w", title, err),
				doctorHint+"; a run cannot change its engine")
		}
	}
	if state.Ended == nil {
		if err := resumePlan(&c, given, state.Run); err != nil {
			return err
		}
	}
	if err := a.checkPassphrase(c, state); err != nil {
		return err
	}
	code, err := a.session(ctx, c, func(c runner.Config) (runner.Outcome, error) { return runner.Resume(ctx, dir, c) })
	if err != nil {
		return err
	}
	return status(code)
}

// resumedEngine is the engine of the earlier sessions. Another one is refused,
// because values of two engines are not rounds of one case. probe is true where
// auto had chosen the engine, which has to be probed again.
func resumedEngine(s *result.State, requested string) (name string, probe bool, err error) {
	if len(s.Sessions) == 0 || s.Ended != nil {
		return requested, false, nil
	}
	used := s.Sessions[len(s.Sessions)-1].Engine
	switch {
	case !slices.ContainsFunc(engineChoices, func(c engineChoice) bool { return c.name == used.Name }):
		return requested, false, nil // the runner refuses it
	case requested == "auto":
		return used.Name, strings.HasPrefix(used.Why, "auto"), nil
	case requested != used.Name:
		return "", false, usageError("continue with --engine "+used.Name+", or leave it out",
			"reading --engine: the run was started with %q, and values of two engines are not rounds of one case",
			used.Name)
	}
	return requested, false, nil
}

// resumePlan adds the plan and the places of a run that has not ended: those of
// --on, and those that the registry in the state folder knows.
func resumePlan(c *runner.Config, given locations, run result.RunStart) (err error) {
	if c.Plan, err = plan.Load(filepath.Join(c.Out, result.PlanFile)); err != nil {
		return err
	}
	if c.Places, err = resumePlaces(c.Plan, given, run); err != nil {
		return err
	}
	c.Places, err = runner.PlacesOf(*c, run)
	return err
}
