package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"dmgbench/internal/fleet"
	"dmgbench/internal/fleet/control"
	"dmgbench/internal/report"
	"dmgbench/internal/system/units"
	"dmgbench/plans"
)

const (
	interval    = time.Second // between two looks of --watch and --wait
	maxCell     = 60          // characters of a table's cell
	clearScreen = "\x1b[H\x1b[2J"
)

// submitPlans is the command "submit". All plans are read before the first is
// submitted. A plan that no machine fits does not keep the others from being
// submitted, as the same command would submit those twice when it is repeated.
func (a *app) submitPlans(ctx context.Context, args []string) error {
	all, err := a.submissions(args)
	if err != nil {
		return err
	}
	var unfit error
	for _, s := range all {
		jobs, skipped, err := a.fleet.Submit(ctx, s)
		for _, j := range jobs {
			a.print("%s: job %s", j.Machine, j.Job)
		}
		for _, m := range skipped {
			a.print("%s: no job of %s: %s", m.Machine, s.Plan, m.Reason)
		}
		if err != nil {
			return err
		}
		if len(jobs) == 0 {
			unfit = &statusError{fmt.Errorf("submitting plan %q: no machine fits", s.Plan), exitSome}
		}
	}
	return unfit
}

// submissions reads the plans, with the options that all of them get. As in
// "dmgbench run", a name of a built-in plan is preferred to a file of that name.
func (a *app) submissions(args []string) (all []control.Submission, err error) {
	s := control.Submission{Repeat: int(a.number("repeat")), Options: fleet.Options{Rounds: a.text("rounds"),
		Sets: int(a.number("sets")), Scale: a.text("scale"), Seed: a.number("seed"), Workers: int(a.number("workers")),
		Engine: a.text("engine"), Precision: a.text("precision"), Only: a.list("only")}}
	if s.Selector, err = control.ParseSelector(a.text("hosts")); err != nil {
		return nil, usageError("%w", err)
	}
	every, err := units.ParseDuration(cmp.Or(a.text("every"), "0 s"))
	if err != nil {
		return nil, usageError("reading --every: %w", err)
	}
	s.Every = every.Std()
	for _, s.Plan = range args {
		isPath := strings.ContainsAny(s.Plan, `/\`) || strings.HasSuffix(s.Plan, ".toml")
		text, ok := plans.Get(s.Plan)
		if isPath || !ok {
			if text, err = os.ReadFile(s.Plan); err != nil {
				return nil, usageError("reading plan: %w (dmgbench plans lists the built-in ones)", err)
			}
		}
		s.Text = text
		all = append(all, s)
	}
	return all, nil
}

// cancelJob is the command "cancel". A job that is not there is an error, since it
// is misspelt or has ended.
func (a *app) cancelJob(ctx context.Context, args []string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	n, err := a.fleet.Cancel(ctx, args[0], a.text("machine"))
	if err == nil && n == 0 {
		err = fmt.Errorf("cancelling job %q: no such job waits or runs (dmgbench-fleet status lists the jobs)", args[0])
	}
	if err == nil {
		a.print("cancelled %s", report.Count(n, "job"))
	}
	return err
}

// printLogs is the command "logs". The lines come from a machine, so each is
// printed as one line.
func (a *app) printLogs(ctx context.Context, args []string) error {
	args = append(args, "")
	err := a.fleet.Logs(ctx, args[0], args[1], a.text("follow") == "true", func(line string) { a.print("%s", line) })
	return cmp.Or(err, ctx.Err())
}

// wait waits until the next look, or until ctx ends, which is an error.
func wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(interval):
		return nil
	}
}

// printStatus is the command "status". Both tables are printed at once, so that
// the screen does not flicker. The tables of --watch follow each other where
// stdout is not a terminal.
func (a *app) printStatus(ctx context.Context, _ []string) error {
	for {
		machines, err := a.fleet.Machines(ctx)
		if err != nil {
			return err
		}
		jobs, err := a.fleet.Jobs(ctx)
		if err != nil {
			return err
		}
		file, ok := a.stdout.(*os.File)
		isWatch := a.text("watch") == "true"
		page := report.TextIf(isWatch && ok && term.IsTerminal(int(file.Fd())), clearScreen)
		page += table(machineRows(machines, time.Now())) + "\n" + table(jobRows(jobs, time.Now()))
		if _, err := io.WriteString(a.stdout, page); err != nil || !isWatch {
			return err
		}
		if err := wait(ctx); err != nil {
			return err
		}
	}
}

// machineRows is the table of machines, with its head. Its numbers come from the
// machines and may be any; the column HEARD has the server's time.
func machineRows(machines []control.Machine, now time.Time) [][]string {
	rows := [][]string{strings.Fields("MACHINE STATE HEARD WAITING JOB CASE ROUND DONE LEFT SYSTEM ERROR")}
	for _, m := range machines {
		row := []string{m.Name, "not joined", "", fmt.Sprint(m.Waiting), "", "", "", "", "", "", ""}
		if s := m.Status; s != nil {
			row[1], row[2], row[4], row[9], row[10] = s.State, age(now, m.Heard), s.Job, s.Host.OSVersion+" "+s.Host.Arch, s.Error
			if p := s.Progress; p != nil {
				row[5], row[6] = p.Case, fmt.Sprintf("%d/%d", p.Round, p.Rounds)
				row[7] = fmt.Sprintf("%.0f %%", 100*float64(p.Bytes)/max(float64(p.Of), 1))
				row[8] = time.Duration(p.Left).Truncate(time.Second).String()
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// jobRows is the table of jobs, with its head. Occurrences of a repeated job are
// numbered from the second one on.
func jobRows(jobs []control.JobView, now time.Time) [][]string {
	rows := [][]string{strings.Fields("JOB PLAN MACHINE STATE TIME RUN ERROR")}
	for _, j := range jobs {
		row := []string{j.Job, j.Plan, j.Machine, j.State, "", "", j.Error}
		if j.Occurrence > 0 {
			row[0] += fmt.Sprintf(" #%d", j.Occurrence+1)
		}
		if j.Result != nil {
			row[4], row[5] = age(now, j.Ended), j.Result.Run
		} else if j.Due.After(now) {
			row[4] = "in " + j.Due.Sub(now).Truncate(time.Second).String()
		}
		rows = append(rows, row)
	}
	return rows
}

// age is how long ago something was, to the second. Clocks may differ.
func age(now, then time.Time) string {
	return max(now.Sub(then), 0).Truncate(time.Second).String() + " ago"
}

// table aligns the columns of rows. Cells come from other machines: they are
// shortened, and get neither line ends nor other control characters. An empty one
// is a hyphen, so that scripts can split lines at blanks.
func table(rows [][]string) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := report.Map(row, func(cell string) string { return cmp.Or(report.Plain(cell, maxCell), "-") })
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	_ = w.Flush() // to memory
	return out.String()
}

// fetchResults is the command "results". With --wait it looks until none of the
// jobs is left.
func (a *app) fetchResults(ctx context.Context, jobs []string) error {
	list, err := os.ReadDir(a.text("to"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	seen := map[string]bool{} // names of run folders, and results
	for _, entry := range list {
		seen[entry.Name()] = true
	}
	for failed := 0; ; {
		views, err := a.fleet.Jobs(ctx)
		if err != nil {
			return err
		}
		if len(jobs) > 0 {
			views = report.Where(views, func(v control.JobView) bool { return slices.Contains(jobs, v.Job) })
		}
		isPending := false
		for _, v := range views {
			if v.Result == nil && v.State != control.Forged {
				isPending = true
			} else if a.fetch(ctx, v, seen) {
				failed++
			}
		}
		switch {
		case isPending && a.text("wait") == "true":
			if err := wait(ctx); err != nil {
				return err
			}
		case failed > 0:
			return &statusError{fmt.Errorf("fetching results: %s not done", report.Count(failed, "job")), exitSome}
		default:
			return ctx.Err()
		}
	}
}

// fetch fetches the run folder of a job that has ended, and prints it if it is
// new. What is wrong with one does not keep the others from being fetched.
func (a *app) fetch(ctx context.Context, v control.JobView, seen map[string]bool) (isFailed bool) {
	key, path := fmt.Sprint(v.Machine, " ", v.Job, " ", v.Occurrence), ""
	if v.Result != nil && v.Result.Run != "" && !seen[key] {
		var err error
		if path, err = a.fleet.Fetch(ctx, *v.Result, a.text("to")); err != nil {
			v.State, v.Error = fleet.Failed, err.Error()
		}
	}
	isSeen := seen[key] || seen[filepath.Base(path)]
	if seen[key] = true; isSeen || ctx.Err() != nil {
		return false
	}
	a.print("%s: %s %s %s %s", v.Machine, v.Job, v.State, path, v.Error)
	return v.State != fleet.Done && v.State != fleet.Cancelled
}
