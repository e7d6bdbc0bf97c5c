package cli

import (
	"cmp"
	"context"
	_ "embed" // for the page of status
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"text/template"
	"time"
	"unicode"
	"unicode/utf16"

	"golang.org/x/term"

	"dmgbench/internal/fleet"
	"dmgbench/internal/fleet/control"
	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/system/safetext"
	"dmgbench/internal/system/units"
	"dmgbench/plans"
)

const (
	maxSilence = 10 * time.Minute // of a machine; an idle one reports every 5
	maxAhead   = 5 * time.Minute  // of a machine's clock, or behind; a message may be late
)

// submitPlans is the command "submit". All plans are read before the first is
// submitted. A plan that no machine fits does not keep the others from being
// submitted, as the same command would submit those twice when it is repeated.
func (a *app) submitPlans(ctx context.Context, args []string) error {
	list, selector, err := a.readJobs(args)
	if err != nil {
		return usageError("%w", err)
	}
	var unfit error
	for _, job := range list {
		n, err := a.fleet.Submit(ctx, job, selector, func(machine, text string) { a.print("%s: %s", machine, text) })
		if err != nil {
			return err
		}
		if n == 0 {
			unfit = &statusError{fmt.Errorf("submitting plan %q: no machine fits", job.Plan), exitSome}
		}
	}
	return unfit
}

// readJobs reads the plans, with the options that all of them get. As in
// "dmgbench run", a name of a built-in plan is preferred to a file of that name.
func (a *app) readJobs(args []string) (list []fleet.Job, selector control.Selector, err error) {
	job := fleet.Job{Repeat: int(a.number("repeat")), Options: fleet.Options{Rounds: a.text("rounds"),
		Sets: int(a.number("sets")), Scale: a.text("scale"), Workers: int(a.number("workers")),
		Engine: a.text("engine"), Precision: a.text("precision"), Only: a.list("only")}}
	if a.command.Flags().Changed("seed") {
		seed := a.number("seed")
		job.Options.Seed = &seed
	}
	every, err := units.ParseDuration(cmp.Or(a.text("every"), "0 s"))
	if err != nil {
		return nil, nil, fmt.Errorf("reading --every: %w", err)
	}
	job.Every = every.Std()
	for _, job.Plan = range args {
		if job.Text, err = readPlan(job.Plan); err != nil {
			return nil, nil, err
		}
		list = append(list, job)
	}
	selector, err = control.ParseSelector(a.text("hosts"))
	return list, selector, err
}

// readPlan is the text of a built-in plan, or of a file.
func readPlan(name string) (string, error) {
	if text, ok := plans.Get(name); ok {
		return string(text), nil
	}
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		near := plan.Nearest(name, plans.Names())
		hint := report.TextIf(near != "", fmt.Sprintf("did you mean %q?", near))
		return "", fmt.Errorf("finding plan %q: neither a built-in plan nor a file (%s)", name,
			cmp.Or(hint, "dmgbench plans lists the built-in plans"))
	}
	if err == nil && (!info.Mode().IsRegular() || info.Size() > fleet.MaxPlan) {
		err = fmt.Errorf("want a file of at most %d KiB", fleet.MaxPlan>>10)
	}
	if err != nil {
		return "", fmt.Errorf("reading plan %q: %w", name, err)
	}
	text, err := os.ReadFile(name)
	return string(text), err
}

// cancelJob is the command "cancel". A job that is not there is an error, since it
// is misspelt or has ended.
func (a *app) cancelJob(ctx context.Context, args []string) error {
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
	return a.fleet.Logs(ctx, args[0], append(args, "")[1], a.isSet("follow"), func(line string) { a.print("%s", line) })
}

// statusPage is the table of machines and the table of jobs, with tabs between the
// columns. Texts come from other machines: cell shortens them, and removes line ends
// and other control characters. An empty one is a hyphen, so that scripts can split
// lines at blanks. Numbers may be any, and clocks may differ. Occurrences of a
// repeated job are numbered from the second one on.
//
//go:embed status.tmpl
var statusPage string

var statusFuncs = template.FuncMap{
	"cell":     func(parts ...any) string { return cell(60, parts...) },
	"reason":   func(text string) string { return cell(160, text) },
	"duration": func(ns int64) string { return time.Duration(ns).Truncate(time.Second).String() },
	"number":   func(occurrence int) int { return occurrence + 1 },
	"share":    func(part, of int64) string { return fmt.Sprintf("%.0f %%", 100*float64(part)/max(float64(of), 1)) },
	"now":      time.Now,
	"trouble":  trouble,
	"size":     func(n int64) string { return units.Bytes(n).Human() },
	"ago": func(t time.Time) string {
		ago := max(time.Since(t), 0).Truncate(time.Second).String() + " ago"
		return cmp.Or(report.TextIf(!t.IsZero(), ago), "-")
	},
}

func cell(limit int, parts ...any) string {
	return cmp.Or(report.Plain(safetext.Clean(fmt.Sprint(parts...)), limit), "-")
}

// trouble is what is wrong with a machine: its silence, its last error, or its clock,
// with which it takes part all the same.
func trouble(m control.Machine) string {
	ahead := m.Time.Sub(m.Heard).Truncate(time.Second)
	switch {
	case m.State == fleet.Revoked:
		return m.Error
	case m.Unknown > 0 && m.Error == "":
		return fmt.Sprintf("%s of unknown jobs (purge %s)", report.Count(m.Unknown, "result"), m.Machine)
	case m.Heard.IsZero():
		return m.Error
	case m.State != fleet.Stopped && time.Since(m.Heard) > maxSilence:
		return "silent: off, asleep, offline, or in a long step"
	case m.Error == "" && ahead.Abs() > maxAhead:
		return fmt.Sprintf("its clock is %s ahead of the server's", ahead)
	}
	return m.Error
}

// formatStatus is the page with aligned columns. The empty line between the tables
// ends the columns of the first one.
func formatStatus(machines []control.Machine, jobs []control.JobView) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	page := template.Must(template.New("").Funcs(statusFuncs).Parse(statusPage))
	data := map[string]any{"Machines": machines, "Jobs": jobs}
	if err := errors.Join(page.Execute(w, data), w.Flush()); err != nil {
		panic(err) // the template fits the types, and memory takes all
	}
	return out.String()
}

// encodeStatus is the same for programs. All but ASCII is escaped, as the texts come
// from other machines and may be printed on a terminal, and the sign with which
// commands begin in logs of workflows.
func encodeStatus(machines []control.Machine, jobs []control.JobView) string {
	data, err := json.MarshalIndent(map[string]any{"machines": machines, "jobs": jobs}, "", "  ")
	if err != nil {
		panic(err) // the types can be encoded
	}
	var out strings.Builder
	for _, r := range string(data) {
		if r < unicode.MaxASCII && r != '#' {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&out, `\u%04x`, unit)
		}
	}
	return out.String() + "\n"
}

var statusFormats = map[string]func([]control.Machine, []control.JobView) string{"text": formatStatus, "json": encodeStatus}

// printStatus is the command "status". Both tables are printed at once, so that
// the screen does not flicker. The tables of --watch follow each other where
// stdout is not a terminal.
func (a *app) printStatus(ctx context.Context, _ []string) error {
	format, ok := statusFormats[a.text("format")]
	if !ok {
		return usageError("reading --format: %q: want text or json", a.text("format"))
	}
	file, ok := a.stdout.(*os.File)
	clearScreen := report.TextIf(a.isSet("watch") && ok && term.IsTerminal(int(file.Fd())), "\x1b[H\x1b[2J")
	for ; ; time.Sleep(time.Second) {
		machines, jobs, err := a.fleet.Jobs(ctx)
		if err == nil {
			_, err = fmt.Fprint(a.stdout, clearScreen, format(machines, jobs))
		}
		if err != nil || !a.isSet("watch") {
			return err
		}
	}
}

// fetchResults is the command "results". With --wait it looks until none of the
// jobs is left; those without a run folder, or with one that cannot be fetched, are
// printed at the end then.
func (a *app) fetchResults(ctx context.Context, names []string) error {
	isOther := func(j control.JobView) bool { return len(names) > 0 && !slices.Contains(names, j.Job) }
	isPending := func(j control.JobView) bool { return !j.IsEnded }
	for failed := 0; ; time.Sleep(time.Second) {
		_, jobs, err := a.fleet.Jobs(ctx)
		if err != nil {
			return err
		}
		jobs = slices.DeleteFunc(jobs, isOther)
		isLast := !a.isSet("wait") || !slices.ContainsFunc(jobs, isPending)
		for _, j := range jobs {
			if j.IsEnded && (isLast || j.Run != "") && a.fetch(ctx, j, isLast) {
				failed++
			}
		}
		switch {
		case isLast && failed > 0 && ctx.Err() == nil:
			return &statusError{fmt.Errorf("fetching results: %s not done", report.Count(failed, "job")), exitSome}
		case isLast:
			return ctx.Err()
		}
	}
}

// fetch fetches the run folder of a job that has ended, and prints it if it is
// new. What is wrong with one does not keep the others from being fetched.
func (a *app) fetch(ctx context.Context, j control.JobView, isLast bool) (isFailed bool) {
	path := ""
	if j.Run != "" {
		var isNew bool
		var err error
		path, isNew, err = a.fleet.Fetch(ctx, j.Result, a.text("to"))
		if err != nil {
			j.State, j.Error = fleet.Failed, err.Error()
		}
		if !isNew || ctx.Err() != nil || err != nil && !isLast {
			return false
		}
	}
	a.print("%s: %s %s %s %s", j.Machine, j.Job, j.State, path, j.Error)
	return j.State != fleet.Done && j.State != fleet.Cancelled
}
