package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dmgbench/internal/result"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func (a *app) newHistoryBaselineCommand() *cobra.Command {
	clear := false
	cmd := &cobra.Command{
		Use: "baseline RUN", Args: between(1, 1, "RUN"),
		Short: "mark a run as the baseline of its plan",
		Long: `Mark the run in folder RUN as the baseline of its plan: history says so, and
history prune never deletes it. The mark is a line in the file baselines.txt of
the folder that holds RUN; one run of each plan has it there, and marking
another takes it away. RUN may also be the folder of run --sessions: then all of
its runs are marked. It prints the run that is marked, and the one that no
longer is. compare takes it with --against baseline.

EXIT STATUS
  0  marked
  1  error, such as a folder that is no run folder
  2  bad usage`,
		Example: "  dmgbench history baseline runs/quick-20260101T120000Z\n" +
			"  dmgbench compare runs/quick-20260201T120000Z --against baseline",
		RunE: func(_ *cobra.Command, args []string) error { return a.markBaseline(args[0], clear) },
	}
	cmd.Flags().BoolVar(&clear, "clear", false, "take the mark away")
	return cmd
}

// markBaseline rewrites the list of the folder that holds the run, and says what is marked now.
func (a *app) markBaseline(run string, clear bool) error {
	abs, err := filepath.Abs(run)
	if err != nil {
		return fmt.Errorf("finding run %q: %w", run, err)
	}
	dir, name := filepath.Split(abs)
	r, err := result.ReadSummary(runFolders(abs)[0])
	if err != nil {
		return err
	}
	if strings.ContainsAny(name, "\r\n") || strings.HasPrefix(name, "#") {
		return fmt.Errorf("marking run %q: such a name cannot stand in %s", run, baselineFile)
	}
	names, err := baselines(dir)
	if err != nil {
		return err
	}
	marked, before := slices.Contains(names, name), []string{}
	names = slices.DeleteFunc(names, func(other string) bool {
		if other == name || !filepath.IsLocal(other) {
			return true
		}
		o, err := result.ReadSummary(runFolders(filepath.Join(dir, other))[0])
		if !clear && err == nil && o.Plan.Name == r.Plan.Name {
			before = append(before, other)
			return true
		}
		return errors.Is(err, os.ErrNotExist)
	})
	if !clear {
		names = append(names, name)
	}
	a.leaves(filepath.Join(dir, baselineFile))
	if err := writeBaselines(dir, names); err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.out, printable(marking(name, r.Plan.Name, marked, clear, before)))
	return err
}

// marking says what became of the mark of a run; before are the baselines that it takes the place of.
func marking(name, plan string, marked, clear bool, before []string) string {
	text := fmt.Sprintf("%s is the baseline of plan %s", name, plan)
	switch {
	case clear && marked:
		return fmt.Sprintf("%s is no longer the baseline of plan %s", name, plan)
	case clear:
		return name + " was no baseline"
	case marked:
		text = fmt.Sprintf("%s is the baseline of plan %s already", name, plan)
	}
	if len(before) > 0 {
		text += ", in the place of " + strings.Join(before, ", ")
	}
	return text
}

// writeBaselines replaces the list in one go; an empty one is no file.
func writeBaselines(dir string, names []string) error {
	path := filepath.Join(dir, baselineFile)
	if len(names) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("writing baselines: %w", err)
		}
		return nil
	}
	text := "# Runs that history prune keeps, a folder's name a line: dmgbench history baseline\n" + strings.Join(names, "\n") + "\n"
	f, err := os.CreateTemp(dir, "."+baselineFile+"-*")
	if err != nil {
		return fmt.Errorf("writing baselines: %w", err)
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing baselines %q: %w", path, errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

type pruneOptions struct {
	Dir   string
	Keep  int
	Plans []string
	Yes   bool
}

func (a *app) newHistoryPruneCommand() *cobra.Command {
	var o pruneOptions
	cmd := &cobra.Command{
		Use: "prune --keep N [DIR]", Args: between(0, 1, ""),
		Short: "delete old runs that have ended",
		Long: `Delete the folders of runs below DIR (default runs), all but the newest N of
each plan. Only runs that have ended, carry the mark that run gave them and are
yours are deleted; never a baseline, nor a folder that holds anything else than
a run's own files, such as kept images. On a terminal it lists them and asks;
elsewhere it needs --yes. It prints every folder that it deleted.

EXIT STATUS
  0  deleted, or nothing to delete
  1  something could not be deleted
  2  bad usage, or not confirmed`,
		Example: "  dmgbench history prune --keep 10\n  dmgbench history prune --keep 3 --plan quick --yes /data/runs",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Dir = runsDir
			if len(args) > 0 {
				o.Dir = args[0]
			}
			if !cmd.Flags().Changed("keep") || o.Keep < 0 {
				return &usageError{err: errors.New("reading --keep: how many runs of each plan to keep, 0 or more, is missing"), hint: "for example: dmgbench history prune --keep 10"}
			}
			return a.runPrune(cmd.Context(), o)
		},
	}
	cmd.Flags().IntVar(&o.Keep, "keep", 0, "keep the newest `n` runs of each plan that have ended")
	cmd.Flags().StringSliceVar(&o.Plans, "plan", nil, "only runs of the plan with this `name`; repeatable")
	cmd.Flags().BoolVar(&o.Yes, "yes", false, "ask nothing")
	return cmd
}

func (a *app) runPrune(ctx context.Context, o pruneOptions) error {
	runs, err := a.past(historyOptions{Dir: o.Dir, Plans: o.Plans}, a.glanced)
	if err != nil {
		return err
	}
	old := prunable(runs, o.Keep)
	if len(old) == 0 {
		fmt.Fprintln(a.err, "nothing to delete")
		return nil
	}
	if err := a.confirmPrune(ctx, old, o.Yes); err != nil {
		return err
	}
	failed := false
	for _, p := range old {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := result.Discard(p.path, p.Run); err != nil {
			a.tell(err)
			failed = true
			continue
		}
		if _, err := fmt.Fprintln(a.out, printable(p.path)); err != nil {
			return err
		}
	}
	if failed {
		return status(exitError)
	}
	return nil
}

// prunable are the runs that have ended beyond the newest keep of their plan,
// oldest last; baselines neither go nor count.
func prunable(runs []pastRun, keep int) []pastRun {
	seen := map[string]int{}
	var old []pastRun
	for _, p := range runs {
		if p.Baseline || p.Pooled > 0 || p.Status == result.Unfinished {
			continue
		}
		if seen[p.Plan]++; seen[p.Plan] > keep {
			old = append(old, p)
		}
	}
	return old
}

// confirmPrune lists what would go and asks a person; without one, only --yes will do.
func (a *app) confirmPrune(ctx context.Context, old []pastRun, yes bool) error {
	if yes {
		return nil
	}
	for _, p := range old {
		fmt.Fprintln(a.err, printable(p.path))
	}
	in, ok := a.in.(*os.File)
	if _, seen := terminal(a.err); !ok || !seen || !term.IsTerminal(int(in.Fd())) {
		return &usageError{err: fmt.Errorf("deleting %s: nobody can be asked here", count(len(old), "run folder")), hint: "--yes deletes what is listed above"}
	}
	fmt.Fprintf(a.err, "Delete %s? [y/N] ", count(len(old), "run folder"))
	said, err := a.typedYes(ctx, in)
	if said || err != nil {
		return err
	}
	return &usageError{err: errors.New("deleting run folders: it was not confirmed"), hint: "nothing was deleted"}
}
