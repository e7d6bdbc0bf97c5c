package cli

import (
	"context"
	"errors"
	"io"

	"dmgbench/internal/runner"

	"github.com/spf13/cobra"
)

func (a *app) newCleanCommand() *cobra.Command {
	return &cobra.Command{
		Use: "clean", GroupID: "maintain", Args: between(0, 0, ""),
		Short: "delete what interrupted runs left behind",
		Long: `Detach and delete the images that interrupted runs left behind, and those that
run --keep left, what is left of a probe of an engine, mount points and
passphrases of runs. Only folders that carry the mark of such a run, and are
yours, are deleted; run folders with their plan, journal and report stay, and so
does what a run that is going on has made. No other image is detached.
A run whose images are gone is resumed all the same: its interrupted case begins
anew. A run that is paused inside a case cannot go on there.

EXIT STATUS
  0  nothing is left
  1  something could not be deleted
  2  bad usage`,
		Example: "  dmgbench clean",
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := a.stateDir()
			if err != nil {
				return err
			}
			lock := func() (func(), error) {
				return lockHost(cmd.Context(), runner.Config{StateDir: dir, Clock: a.clock}, nil)
			}
			return runner.Clean(cmd.Context(), dir, runner.CleanOptions{Release: a.release, Clock: a.clock, Lock: lock, Also: func(ctx context.Context, w io.Writer) error {
				return errors.Join(a.cleanMounts(ctx, dir, w), a.cleanSecrets(ctx, dir, w))
			}}, a.out)
		},
	}
}
