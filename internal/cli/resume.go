package cli

import (
	"context"
	"fmt"
	"path/filepath"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/runner"

	"github.com/spf13/cobra"
)

type resumeOptions struct {
	sessionOptions
	Dir string
}

func (a *app) newResumeCommand(runF func(context.Context, resumeOptions) error) *cobra.Command {
	var o resumeOptions
	cmd := &cobra.Command{
		Use: "resume RUN", GroupID: "measure", Args: between(1, 1, "RUN"),
		Short: "go on with an interrupted or paused run",
		Long: `Go on with an interrupted or paused run. A case that was interrupted begins
anew, one that was paused goes on behind the pause; what was measured stays. The
plan is the one in the run folder, and the machine has to be as fit for it as at
the beginning. What was begun with --keep keeps its images. Places that were
given with --on have to be given again only if the folders have moved.

` + exitText,
		Example: "  dmgbench resume runs/quick-20260101T120000Z",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Dir, a.json = args[0], o.Format == "json"
			if err := o.validate(); err != nil {
				return err
			}
			err := unlessInterrupted(runF(cmd.Context(), o), "interrupted before the run went on: it is as it was")
			return asGiven(err, o.Dir)
		},
	}
	o.AddFlags(cmd.Flags())
	oneOf(cmd, "format", runFormats)
	oneOf(cmd, "engine", engines)
	return cmd
}

func (a *app) runResume(ctx context.Context, o resumeOptions) error {
	c, err := a.config(ctx, o.sessionOptions, o.Dir)
	if err != nil {
		return err
	}
	if err := recall(&c, o.Dir); err != nil {
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

// recall adds what the run folder and the registry say of a run that is to go
// on: the plan, for what it requires of the machine, and the places. Of a run
// that has ended there is nothing to ask for.
func recall(c *runner.Config, dir string) error {
	c.Out = dir
	d, err := result.OpenRun(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	recs, err := d.Journal()
	if err != nil {
		return err
	}
	state, err := result.Replay(recs)
	if err != nil {
		return fmt.Errorf("reading the journal of %q: %w", dir, err)
	}
	c.Identify = state.Run.Identify
	if state.Ended != nil {
		return nil
	}
	if c.Places, err = runner.PlacesOf(*c, state.Run); err != nil {
		return err
	}
	c.Plan, err = plan.Load(filepath.Join(dir, result.PlanFile))
	return err
}
