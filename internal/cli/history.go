package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/result"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var (
	historyFormats  = []string{"text", "json", "csv", "trends", "markdown", "html"}
	historyStatuses = []string{result.Done, result.Failed, result.Skipped, result.Unfinished}
)

// runsDir is where run puts its folders unless told otherwise.
const runsDir = "runs"

type historyOptions struct {
	Dir      string
	Plans    []string
	Engines  []string
	Statuses []string
	Since    string
	Format   string
	since    time.Time
}

func (o *historyOptions) AddFlags(f *pflag.FlagSet) {
	f.StringSliceVar(&o.Plans, "plan", nil, "only runs of the plan with this `name`; repeatable")
	f.StringSliceVar(&o.Engines, "engine", nil, "only runs on the engine with this `name`, such as inprocess, or whose title contains it")
	f.StringSliceVar(&o.Statuses, "status", nil, "only runs of this `status`: done, failed, skipped or unfinished")
	f.StringVar(&o.Since, "since", "", "only runs begun at this `time` or later: 2026-01-31, 2026-01-31T12:00:00Z, or 36h, 30d, 8w ago")
	f.StringVar(&o.Format, "format", "text", "`form` of what is printed: text, json or csv, or, run after run in the order of time: trends, markdown or html")
}

func (o *historyOptions) validate(now time.Time) error {
	if !slices.Contains(historyFormats, o.Format) {
		return want("format", o.Format, historyFormats)
	}
	for _, s := range o.Statuses {
		if !slices.Contains(historyStatuses, s) {
			return want("status", s, historyStatuses)
		}
	}
	if o.Since == "" {
		return nil
	}
	since, err := sinceWhen(o.Since, now)
	if err != nil {
		return &usageError{err: fmt.Errorf("reading --since: %w", err), hint: "a day such as 2026-01-31 (UTC), a time such as 2026-01-31T12:00:00Z, or an age such as 36h, 30d, 8w"}
	}
	o.since = since
	return nil
}

// sinceWhen is a day, a moment, or how long ago.
func sinceWhen(text string, now time.Time) (time.Time, error) {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	for suffix, hours := range map[string]int{"d": 24, "w": 7 * 24} {
		digits, ok := strings.CutSuffix(text, suffix)
		if n, err := strconv.Atoi(digits); ok && err == nil && n > 0 && n < 100_000 {
			return now.Add(-time.Duration(n*hours) * time.Hour), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("%q is neither a time nor an age", text)
}

// takes reports whether a run passes the filters.
func (o *historyOptions) takes(p pastRun) bool {
	engine := func(name string) bool {
		return name == p.EngineName || strings.Contains(strings.ToLower(p.Engine), strings.ToLower(name))
	}
	return (len(o.Plans) == 0 || slices.Contains(o.Plans, p.Plan)) &&
		(len(o.Engines) == 0 || slices.ContainsFunc(o.Engines, engine)) &&
		(len(o.Statuses) == 0 || slices.Contains(o.Statuses, p.Status)) &&
		(o.since.IsZero() || !p.Started.Before(o.since))
}

func (a *app) newHistoryCommand() *cobra.Command {
	var o historyOptions
	cmd := &cobra.Command{
		Use: "history [DIR]", GroupID: "report", Args: between(0, 1, ""),
		Short: "list the runs of a folder, newest first",
		Long: `List all runs below DIR (default runs), newest first, in a line each: when (UTC)
and where, plan, status, the headline (the first rate of the first image),
cases, verdicts, system and machine, engine. --format json and csv have every
field; docs/metrics.md describes them. What cannot be read is named on stderr
and keeps no other run out.

--format html answers "what changed from 26.4 to 26.5?": a page of the main
numbers of run after run, in the order of time, for each plan as executed,
machine and engine, with the versions of system, program and engine where they
change, the baseline, what is not finished and what carries a warning. Whether a
version changed anything is said as compare says it: one run on each side
decides nothing. Its links lead to the reports if the page lies in DIR. markdown
and trends have the same for a repository and for a terminal.

EXIT STATUS
  0  listed; also when there is none
  1  error, such as a folder that is not there
  2  bad usage`,
		Example: "  dmgbench history\n  dmgbench history /data/runs --plan quick --since 30d --status done\n" +
			"  dmgbench history --format csv > runs.csv\n" +
			"  dmgbench history --plan quick --format html > runs/history.html",
		RunE: func(_ *cobra.Command, args []string) error {
			o.Dir = runsDir
			if len(args) > 0 {
				o.Dir = args[0]
			}
			return a.runHistory(o)
		},
	}
	o.AddFlags(cmd.Flags())
	oneOf(cmd, "format", historyFormats)
	oneOf(cmd, "status", historyStatuses)
	oneOf(cmd, "engine", engineNames)
	cmd.AddCommand(a.newHistoryBaselineCommand(), a.newHistoryPruneCommand())
	return cmd
}

var engineNames = []string{"hdiutil", "inprocess", "directory", "simulated"}

func (a *app) runHistory(o historyOptions) error {
	if err := o.validate(a.clock.Wall()); err != nil {
		return err
	}
	if slices.Contains(historyPages, o.Format) {
		return a.historyPage(o)
	}
	runs, err := a.past(o, a.glanced)
	if err != nil {
		return err
	}
	switch o.Format {
	case "json":
		return historyJSON(a.out, runs)
	case "csv":
		return historyCSV(a.out, runs)
	}
	return historyText(a.out, runs, a.textOptions().Width)
}

// past are the runs below a folder that pass the filters, newest first; what cannot be read is told.
func (a *app) past(o historyOptions, read func(path string) (pastRun, error)) ([]pastRun, error) {
	runs, lost, err := pastRuns(o.Dir, read)
	if err != nil {
		return nil, err
	}
	for _, l := range lost {
		a.warn("not listed: " + l)
	}
	all := len(runs)
	runs = slices.DeleteFunc(runs, func(p pastRun) bool { return !o.takes(p) })
	switch {
	case len(runs) > 0:
	case all > 0:
		a.warn(fmt.Sprintf("none of %s below %q passes the filters", count(all, "run"), o.Dir))
	default:
		a.warn(fmt.Sprintf("no run is below %q", o.Dir))
	}
	return runs, nil
}
