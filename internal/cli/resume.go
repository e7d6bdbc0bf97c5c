package cli

import (
	"context"

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
		Use: "resume RUN", GroupID: "measure", Args: cobra.ExactArgs(1),
		Short: "go on with an interrupted or paused run",
		Long: `Go on with an interrupted or paused run. A case that was interrupted begins anew,
one that was paused goes on behind the pause; what was measured stays. The plan is
the one in the run folder. Places that were given with --on have to be given again
only if the folders have moved.

` + exitText,
		Example: "  dmgbench resume runs/quick-20260101T120000Z",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Dir = args[0]
			if err := o.validate(); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	o.AddFlags(cmd.Flags())
	oneOf(cmd, "format", runFormats)
	oneOf(cmd, "engine", engines)
	return cmd
}

func (a *app) runResume(ctx context.Context, o resumeOptions) error {
	c, err := a.config(ctx, o.sessionOptions)
	if err != nil {
		return err
	}
	c.Out = o.Dir
	code, err := a.session(ctx, o.Format, c, func(c runner.Config) (runner.Outcome, error) {
		return runner.Resume(ctx, o.Dir, c)
	})
	if err != nil {
		return err
	}
	return status(code)
}
