package cli

import (
	"cmp"
	"context"
	_ "embed" // for historycolumns.txt
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"dmgbench/internal/report"
	"dmgbench/internal/result"
	"dmgbench/internal/result/export"
	"dmgbench/internal/result/runfolders"
	"dmgbench/internal/system/units"
)

// runsDir is the folder of run folders unless the user chooses another one.
const runsDir = "runs"

// listHistory is the command "history". Lists show runs newest first; pages
// show series of runs in the order of time.
func (a *app) listHistory(_ context.Context, args []string) error {
	dir, format := append(args, runsDir)[0], a.text("format")
	page := slices.Contains([]string{"trends", "markdown", "html"}, format)
	runs, err := a.filteredRuns(dir, page)
	if err != nil {
		return err
	}
	switch {
	case page:
		return a.printDocument(report.HistoryDocument(a.runs.History(runs)))
	case format == "json":
		return a.writeJSON(append([]runfolders.Run{}, runs...)) // [] instead of null
	case format == "csv":
		return historyCSV(a.stdout, runs)
	}
	rows := make([][]string, len(runs))
	for i, r := range runs {
		rows[i] = historyRow(r)
	}
	return printTable(a.stdout, rows, a.textOptions().Width)
}

// filteredRuns lists the runs below a folder that pass the filters of the
// command, newest first. It warns of folders that cannot be read, and of an
// empty list. headlines is for pages, see [runfolders.Reader.List].
func (a *app) filteredRuns(dir string, headlines bool) ([]runfolders.Run, error) {
	passes, err := a.historyFilter()
	if err != nil {
		return nil, err
	}
	runs, unread, err := a.runs.List(dir, headlines)
	if err != nil {
		return nil, err
	}
	for _, reason := range unread {
		a.warn("not listed: " + reason)
	}
	all := len(runs)
	runs = slices.DeleteFunc(runs, func(r runfolders.Run) bool { return !passes(r) })
	switch {
	case all == 0:
		a.warn(fmt.Sprintf("no run found below %q", dir))
	case len(runs) == 0:
		a.warn(fmt.Sprintf("none of %s below %q passes the filters", units.Count(all, "run"), dir))
	}
	return runs, nil
}

// historyFilter reports whether a run passes the filters that were given;
// history prune has --plan alone. Values of one flag are alternatives,
// different flags restrict each other.
func (a *app) historyFilter() (func(runfolders.Run) bool, error) {
	var engines, statuses []string
	var since time.Time
	if a.command.Name() == "history" {
		engines, statuses = a.list("engine"), a.list("status")
		if text := a.text("since"); text != "" {
			var err error
			if since, err = parseSince(text, a.clock.Wall()); err != nil {
				return nil, usageError("a day such as 2026-01-31 (UTC), a time such as 2026-01-31T12:00:00Z, "+
					"or an age such as 36h, 30d, 8w", "reading --since: %w", err)
			}
		}
	}
	plans := a.list("plan")
	return func(r runfolders.Run) bool {
		isEngine := func(name string) bool {
			return name == r.EngineName || strings.Contains(strings.ToLower(r.Engine), strings.ToLower(name))
		}
		return (len(plans) == 0 || slices.Contains(plans, r.Plan)) &&
			(len(engines) == 0 || slices.ContainsFunc(engines, isEngine)) &&
			(len(statuses) == 0 || slices.Contains(statuses, r.Status)) && !r.Started.Before(since)
	}, nil
}

// parseSince parses a day (from midnight UTC), a time of RFC 3339, or an age
// before now such as 36h, 30d or 8w.
func parseSince(text string, now time.Time) (time.Time, error) {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	for suffix, hours := range map[string]int{"d": 24, "w": 7 * 24} {
		digits, ok := strings.CutSuffix(text, suffix)
		if n, err := strconv.Atoi(digits); ok && err == nil && n > 0 && n < 100_000 { // less than a time.Duration holds
			return now.Add(-time.Duration(n*hours) * time.Hour), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("%q is neither a time nor an age", text)
}

//go:embed historycolumns.txt
var historyColumnsText string

// historyColumn is a column of the CSV: its name, and a template for the cell
// of a [runfolders.Run].
type historyColumn struct {
	name string
	cell *template.Template
}

// historyColumns are the columns of the CSV, which docs/metrics.md describes.
// Columns may be added at the end only: scripts of users read them by number,
// too. Unknown times and numbers are empty.
var historyColumns = func() (columns []historyColumn) {
	functions := template.FuncMap{
		"number": func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) },
		"time": func(t time.Time) string {
			if t.IsZero() {
				return ""
			}
			return t.Format(time.RFC3339)
		},
	}
	for line := range strings.Lines(historyColumnsText) {
		name, cell, _ := strings.Cut(strings.TrimSpace(line), " ")
		parsed := template.Must(template.New(name).Option("missingkey=zero").Funcs(functions).Parse(cell))
		columns = append(columns, historyColumn{name, parsed})
	}
	return columns
}

// historyCSV writes the runs as CSV of RFC 4180, with a header and CRLF line
// ends. Texts that a spreadsheet would take for a formula are quoted, see
// [export.PlainCell].
func historyCSV(w io.Writer, runs []runfolders.Run) error {
	out, columns := csv.NewWriter(w), historyColumns()
	out.UseCRLF = true
	row := make([]string, len(columns))
	for i, c := range columns {
		row[i] = c.name
	}
	err := out.Write(row)
	for _, r := range runs {
		for i, c := range columns {
			var cell strings.Builder
			err = errors.Join(err, c.cell.Execute(&cell, r))
			row[i] = export.PlainCell(cell.String())
		}
		err = errors.Join(err, out.Write(row))
	}
	out.Flush()
	return errors.Join(err, out.Error())
}

// historyRow has the cells of a run, those that people search by first. An
// unfinished run shows the command that
// continues it in place of a rate.
func historyRow(r runfolders.Run) []string {
	when := "time unknown"
	if !r.Started.IsZero() {
		when = r.Started.Format("2006-01-02 15:04")
	}
	status := cmp.Or(r.Status, "status unknown") + report.TextIf(r.Baseline, ", baseline")
	rate := "no rate"
	if h := r.Headline; h != nil {
		rate = strings.Join(strings.Fields(h.Op+" "+h.Phase), " ") + " " + units.Rate(h.Value).Human() + ", " + h.Case
	}
	if r.Status == result.Unfinished && r.Pooled == 0 {
		rate = "to continue: dmgbench resume " + quoted(r.Path)
		if result.Running(r.Path) {
			rate = "still running"
		}
	}
	return []string{when, r.Dir, cmp.Or(r.Plan, "plan unknown"), status, rate,
		tally(r.Cases, "case", result.Done, "done", result.Failed, "failed", result.Discarded, "discarded",
			result.Skipped, "skipped"),
		tally(r.Verdicts, "claim", result.Holds, "holding", result.DoesNotHold, "not holding",
			result.CannotTell, "undecided", result.NotMeasured, "not measured"),
		cmp.Or(strings.Trim(r.System+", "+r.Machine, ", "), "system and machine unknown"),
		cmp.Or(r.Engine, "engine unknown")}
}

// tally is "3 claims (2 holding, 1 undecided)". kinds are pairs of a key of
// counts and its text.
func tally(counts map[string]int, noun string, kinds ...string) string {
	var parts []string
	total := 0
	for kind := range slices.Chunk(kinds, 2) {
		if n := counts[kind[0]]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, kind[1]))
			total += n
		}
	}
	if total == 0 {
		return "no " + noun + "s"
	}
	return units.Count(total, noun) + " (" + strings.Join(parts, ", ") + ")"
}

// markBaseline is the command "history baseline".
func (a *app) markBaseline(_ context.Context, args []string) error {
	run := absolute(args[0])
	a.chownAtExit(filepath.Join(filepath.Dir(run), runfolders.BaselineFile))
	plan, replaced, err := runfolders.MarkBaseline(run, a.isSet("clear"))
	if err != nil {
		return err
	}
	text := filepath.Base(run) + " is the baseline of plan " + plan
	if a.isSet("clear") {
		text = filepath.Base(run) + " is not the baseline of plan " + plan
	}
	if len(replaced) > 0 {
		text += ", instead of " + strings.Join(replaced, ", ")
	}
	return a.print("%s", text)
}

// pruneHistory is the command "history prune". It deletes what it can and exits
// with 1 if a folder could not be deleted; [result.Discard] decides what
// belongs to a run.
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
		if err := a.print("%s", r.Path); err != nil {
			return err
		}
	}
	return exitWith(code)
}

// prunable are the runs that have ended, except the newest keep of each plan.
// Baselines are neither deleted nor counted. runs are newest first.
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
// The list goes to stderr: stdout names only folders that were deleted.
func (a *app) confirmPrune(ctx context.Context, old []runfolders.Run) error {
	if a.isSet("yes") {
		return nil
	}
	for _, r := range old {
		fmt.Fprintln(a.stderr, printable(r.Path))
	}
	folders := units.Count(len(old), "run folder")
	if !a.canAsk() {
		return usageError("--yes deletes the folders listed above",
			"deleting %s: no terminal to ask on; add --yes", folders)
	}
	return a.confirm(ctx, "Delete "+folders+"?", "no folder was deleted")
}
