package cli

import (
	"context"
	"errors"

	"dmgbench/internal/selftest"
)

// runSelftest is the command "selftest". A promise that is not kept is an
// error.
func (a *app) runSelftest(ctx context.Context, _ []string) error {
	seed, err := a.command.Flags().GetUint64("seed")
	if err != nil {
		return err
	}
	r, err := selftest.Run(ctx, selftest.Options{Seed: seed, Only: a.list("study")})
	if err != nil {
		return err
	}
	if a.text("format") == "json" {
		err = a.writeJSON(r)
	} else {
		_, err = a.stdout.Write([]byte(r.Text()))
	}
	if err == nil && !r.Kept {
		err = errors.New("testing the numbers: not every promise is kept")
	}
	return err
}
