package cli

import (
	"context"
	"errors"
	"fmt"

	"dmgbench/internal/result"
	"dmgbench/internal/runfolders"
)

// pruneHistory is the command "history prune".
func (a *app) pruneHistory(ctx context.Context, args []string) error {
	if !a.isGiven("keep") || a.number("keep") < 0 {
		return usageError("for example: dmgbench history prune --keep 10",
			"reading --keep: the number of runs of each plan to keep, 0 or more, is missing")
	}
	runs, err := a.filteredRuns(append(args, runsDir)[0], false)
	if err != nil {
		return err
	}
	old := prunable(runs, a.number("keep"))
	if len(old) == 0 {
		fmt.Fprintln(a.stderr, "no run to delete")
		return nil
	}
	if err := a.confirmPrune(ctx, old); err != nil {
		return err
	}
	code := 0
	for _, r := range old {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := result.Discard(r.Path, r.Run); err != nil {
			a.printError(err)
			code = exitError
			continue
		}
		if _, err := fmt.Fprintln(a.stdout, printable(r.Path)); err != nil {
			return err
		}
	}
	return status(code)
}

// prunable are the runs that have ended, except the newest keep of each plan. Baselines are neither deleted nor
// counted. runs are newest first.
func prunable(runs []runfolders.Run, keep int) (old []runfolders.Run) {
	seen := map[string]int{}
	for _, r := range runs {
		if r.Baseline || r.Pooled > 0 || r.Status == result.Unfinished {
			continue
		}
		if seen[r.Plan]++; seen[r.Plan] > keep {
			old = append(old, r)
		}
	}
	return old
}

// confirmPrune lists the runs and asks; without a terminal, --yes is required.
func (a *app) confirmPrune(ctx context.Context, old []runfolders.Run) error {
	if a.isSet("yes") {
		return nil
	}
	for _, r := range old {
		fmt.Fprintln(a.stderr, printable(r.Path))
	}
	folders := count(len(old), "run folder")
	if !a.canAsk() {
		return usageError("--yes deletes the folders listed above", "deleting %s: no terminal to ask on; add --yes", folders)
	}
	yes, err := a.confirm(ctx, "Delete "+folders+"?")
	if yes || err != nil {
		return err
	}
	return &hintedError{errors.New("aborted"), "no folder was deleted", exitUsage}
}
