package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/runner"

	"github.com/spf13/cobra"
)

type resumeOptions struct {
	sessionOptions
	Dir         string
	RetryFailed bool
}

func (a *app) newResumeCommand(runF func(context.Context, resumeOptions) error) *cobra.Command {
	var o resumeOptions
	cmd := &cobra.Command{
		Use: "resume RUN", GroupID: "measure", Args: between(1, 1, "RUN"),
		Short: "go on with an interrupted or paused run",
		Long: `Go on with an interrupted or paused run. A case that was interrupted begins
anew, one that was paused goes on behind the pause; what was measured stays. The
plan is the one in the run folder, and the machine has to be as fit for it as at
the beginning. What was begun with --keep keeps its images. Places and files of
--on and --input have to be given again only if they have moved. The engine is
the one that the run was begun with: a run has no other.

A run stops where a place is full or gone; resume continues it. Cases that
failed in other ways stay failed: --retry-failed measures those rounds again,
and so do later sessions until the run ends.

` + exitText,
		Example: "  dmgbench resume runs/quick-20260101T120000Z",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Dir, a.json, a.verbose = args[0], o.Format == "json", o.Verbose
			if err := o.validate(); err != nil {
				return err
			}
			err := unlessInterrupted(runF(cmd.Context(), o), "interrupted before the run went on: it is as it was")
			return asGiven(err, o.Dir)
		},
	}
	o.AddFlags(cmd.Flags())
	cmd.Flags().BoolVar(&o.RetryFailed, "retry-failed", false, "measure again what failed or was discarded, also of a run that has ended")
	oneOf(cmd, "format", runFormats)
	oneOf(cmd, "engine", engines)
	return cmd
}

func (a *app) runResume(ctx context.Context, o resumeOptions) error {
	state, err := begun(o.Dir)
	if err != nil {
		return err
	}
	if o.RetryFailed && state.FailedRounds() > 0 {
		state.Ended = nil
	}
	tried, err := o.sameEngine(state)
	if err != nil {
		return err
	}
	home, err := a.stateDir()
	if err != nil {
		return err
	}
	c, err := a.config(ctx, o.sessionOptions, runner.FolderOf(home, state.Run.ID), o.Dir)
	if err != nil {
		return err
	}
	c.RetryFailed = o.RetryFailed
	if tried {
		c.Why = "as in the session before"
		if err := a.works(ctx, c.Engine, c.StateDir); err != nil {
			return &hintedError{fmt.Errorf("resuming with %s, which the run was begun with: it does not work now: %w", c.Engine.Info().Title, err),
				"dmgbench doctor says what works; a run goes on with no other engine than its own"}
		}
	}
	if err := recall(&c, o.sessionOptions, o.Dir, state); err != nil {
		return err
	}
	if err := a.secretLost(c, o.Dir, state); err != nil {
		return err
	}
	code, err := a.session(ctx, c, func(c runner.Config) (runner.Outcome, error) {
		return runner.Resume(ctx, o.Dir, c)
	})
	if err != nil {
		return err
	}
	return status(code)
}

// begun is where the journal of a run folder stands.
func begun(dir string) (*result.State, error) {
	d, err := result.OpenRun(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	recs, err := d.Journal()
	if err != nil {
		return nil, err
	}
	state, err := result.Replay(recs)
	if err != nil {
		return nil, fmt.Errorf("reading the journal of %q: %w", dir, err)
	}
	return state, nil
}

// sameEngine takes the engine of the sessions before where none is asked for, and refuses another one: numbers of two engines are not
// rounds of one case. tried says that the engine was taken because it worked, and has to be tried again.
func (o *resumeOptions) sameEngine(s *result.State) (tried bool, err error) {
	if len(s.Sessions) == 0 || s.Ended != nil {
		return false, nil
	}
	was := s.Sessions[len(s.Sessions)-1].Engine
	switch {
	case !slices.Contains(engines, was.Name): // the runner says that it is another one
		return false, nil
	case o.Engine == "auto":
		o.Engine = was.Name
		return strings.HasPrefix(was.Why, "auto"), nil
	case o.Engine != was.Name:
		return false, &usageError{err: fmt.Errorf("reading --engine: the run was begun with %q, and numbers of two engines are not rounds of one case", was.Name),
			hint: "go on with --engine " + was.Name + ", or leave it out"}
	}
	return false, nil
}

// recall adds what the run folder and the registry say of a run that is to go
// on: the plan, for what it requires of the machine, and the places. Of a run
// that has ended there is nothing to ask for.
func recall(c *runner.Config, o sessionOptions, dir string, state *result.State) (err error) {
	c.Out = dir
	c.Identify = state.Run.Identify
	if state.Ended != nil {
		return nil
	}
	if c.Plan, err = plan.Load(filepath.Join(dir, result.PlanFile)); err != nil {
		return err
	}
	given, err := readPlaces(o.On)
	if err != nil {
		return err
	}
	if err := resumePlaces(c, given.here, state.Run); err != nil {
		return err
	}
	c.Places, err = runner.PlacesOf(*c, state.Run)
	return err
}
