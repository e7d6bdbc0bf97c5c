package cli

import (
	"cmp"
	"context"
	_ "embed" // for historycolumns.txt
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dmgbench/internal/analysis"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/report/chart"
	"dmgbench/internal/report/html"
	"dmgbench/internal/report/text"
	"dmgbench/internal/result"
	"dmgbench/internal/result/export"
	"dmgbench/internal/result/runfolders"
	"dmgbench/internal/system/units"
)

// reportRuns is the command "report". One run folder is brought up to date
// first; several are pooled.
func (a *app) reportRuns(_ context.Context, dirs []string) error {
	dirs = report.FlatMap(dirs, runfolders.Folders) // the sessions of a folder
	if err := a.checkReportFlags(len(dirs)); err != nil {
		return err
	}
	if dir := a.text("ledger"); dir != "" {
		l, err := a.runs.Ledger(dir)
		if err != nil {
			return err
		}
		return a.printDocument(report.LedgerDocument(l))
	}
	out, format, methods := a.text("out"), a.text("format"), a.isSet("methods")
	for _, path := range append(slices.Clone(dirs), out, a.text("svg"), a.text("tables")) {
		a.chownAtExit(path)
	}
	update := runfolders.Pool
	if len(dirs) == 1 {
		out = dirs[0]
		update = func([]string, string) (*plan.Plan, *result.Result, error) { return runfolders.Update(out) }
	}
	p, r, err := update(dirs, out)
	if r != nil && isUnwritable(err) { // the report can be printed
		a.warn("warning: " + err.Error())
		out, err = "", nil
	}
	if err != nil {
		return err
	}
	saved := (a.text("svg") != "" || a.text("tables") != "") && format == "text"
	counts := a.stdout
	if !saved || methods { // another document is printed there
		counts = a.stderr
	}
	err = errors.Join(saveFiles(counts, a.text("svg"), p, r, chart.SVG),
		saveFiles(counts, a.text("tables"), p, r, text.Tables))
	switch {
	case err != nil:
		return err
	case methods:
		return text.Methods(a.stdout, p, r)
	case saved:
		return nil
	}
	err = a.render(p, r, format)
	if err == nil && format == "text" && out != "" {
		fmt.Fprintln(a.stderr, printable(a.reportPath(out)))
	}
	return err
}

// checkReportFlags refuses combinations of flags and numbers of runs that would
// ignore one of them.
func (a *app) checkReportFlags(runs int) error {
	ledger := a.text("ledger") != ""
	switch {
	case ledger && (runs > 0 || a.text("svg") != "" || a.text("tables") != "" || a.isSet("methods")):
		return usageError("dmgbench report RUN --svg DIR",
			"--ledger takes the runs below its folder, and no RUN, --svg, --tables and --methods")
	case !ledger && runs == 0:
		return usageError("dmgbench report RUN, or --ledger DIR for all runs below a folder",
			"reading the arguments of report: RUN is missing")
	case a.isSet("methods") && a.text("format") != "text":
		return usageError("leave one of them out", "--methods prints text, and no --format %s", a.text("format"))
	case a.text("out") != "" && runs < 2:
		return usageError("the report of one run is in its own folder", "--out needs several runs")
	}
	return nil
}

// saveFiles writes a form of the report that articles need into a folder,
// replaces files of the same names, and prints their number to w. Names cannot
// lead out of the folder. The folder above it has to exist. "" saves no files.
func saveFiles(w io.Writer, dir string, p *plan.Plan, r *result.Result,
	files func(_ *plan.Plan, _ *result.Result, save func(name string, data []byte) error) error,
) error {
	if dir == "" {
		return nil
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	n := 0
	err = files(p, r, func(name string, data []byte) error {
		n++
		return root.WriteFile(name, data, 0o644)
	})
	if err == nil {
		_, err = fmt.Fprintf(w, "%s in %s\n", units.Count(n, "file"), printable(dir))
	}
	return err
}

// render prints the report of a run to stdout.
func (a *app) render(p *plan.Plan, r *result.Result, format string) error {
	switch format {
	case "html":
		return html.Run(a.stdout, p, r)
	case "markdown":
		return text.RunMarkdown(a.stdout, p, r)
	case "summary":
		return text.RunSummary(a.stdout, p, r)
	}
	return text.Run(a.stdout, p, r, a.textOptions())
}

// printDocument prints a document as HTML, Markdown or text, as --format
// requests it.
func (a *app) printDocument(d report.Document) error {
	switch a.text("format") {
	case "html":
		return html.Document(a.stdout, d)
	case "markdown", "summary":
		return text.DocumentMarkdown(a.stdout, d)
	}
	return text.Document(a.stdout, d, a.textOptions())
}

// exportRuns is the command "export".
func (a *app) exportRuns(_ context.Context, dirs []string) error {
	var all []*result.Result
	for _, dir := range report.FlatMap(dirs, runfolders.Folders) {
		_, r, err := runfolders.Analyze(dir)
		if err != nil {
			return err
		}
		all = append(all, r)
	}
	err := export.Write(a.stdout, all, a.text("format"), a.text("table"))
	if errors.Is(err, export.ErrUsage) {
		return usageError("", "%w", err)
	}
	return err
}

// writeJSON prints a value as indented JSON.
func (a *app) writeJSON(v any) error {
	encoder := json.NewEncoder(a.stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// compareRuns is the command "compare". A regression is exit status 5 even
// where other rows are undecided.
func (a *app) compareRuns(_ context.Context, paths []string) error {
	o, err1 := a.compareOptions()
	paths, baseline, err2 := a.addBaseline(paths)
	if err := cmp.Or(err1, err2); err != nil {
		return err
	}
	list, err := a.readSides(a.withRuns(paths), baseline, &o)
	if err != nil {
		return err
	}
	c, err := analysis.Compare(list, o)
	if errors.Is(err, analysis.ErrCompare) {
		return usageError("dmgbench help compare explains which measurements are compared", "%w", err)
	}
	if err != nil {
		return err
	}
	if err := a.printComparison(c); err != nil {
		return err
	}
	switch {
	case c.Regression:
		return exitWith(exitRegression)
	case len(c.Rows) == 0:
		hint := "the comparison lists the reason for each"
		if names := c.AcrossNames(); len(names) > 0 {
			hint = "the settings of the plans differ; to compare across them: --across " + strings.Join(names, ",")
		}
		return usageError(hint, "comparing runs: no measurements could be paired")
	case a.isSet("strict") && c.Undecided:
		return exitWith(exitUndecided)
	}
	return nil
}

// compareOptions are the options that the flags determine without the runs.
func (a *app) compareOptions() (o analysis.CompareOptions, err error) {
	o = analysis.CompareOptions{By: a.list("by"), Across: a.list("across"), Estimator: a.text("estimator"),
		Plans: map[string]*plan.Plan{}}
	ops := a.list("op")
	if slices.Contains(ops, "all") {
		ops = analysis.CompareOps()
	}
	for _, op := range ops {
		o.Ops = append(o.Ops, plan.Quantity(op))
	}
	threshold, err := positiveQuantity(a, "threshold", units.ParseShare)
	if err == nil && (threshold == 0 || threshold >= 1) {
		err = usageError("", "reading --threshold: %q is not more than 0%% and less than 100%%", a.text("threshold"))
	}
	o.Threshold = float64(threshold)
	return o, err
}

// addBaseline adds the side of --against, which is the baseline. "baseline" is
// the run of the same plan that is marked in the folder above the first run.
func (a *app) addBaseline(paths []string) (all []string, baseline string, err error) {
	baseline, against := a.text("baseline"), a.text("against")
	if against == "" {
		return paths, baseline, nil
	}
	if baseline != "" {
		return nil, "", usageError("--against RUN makes RUN the baseline",
			"reading --against: --baseline is given as well")
	}
	if against == "baseline" {
		run := runFolder(paths[0])
		var planName string
		if against, planName, err = runfolders.FindBaseline(run); err != nil {
			return nil, "", err
		}
		if against == "" {
			return nil, "", usageError("mark one: dmgbench history baseline RUN",
				"finding the baseline of plan %q: no run in %q is marked", planName, filepath.Dir(run))
		}
	}
	return append(slices.Clone(paths), against), against, nil
}

// withRuns are the paths without folders that contain no run, such as the
// __MACOSX of an unpacked archive: a pattern of the shell names those as well.
// Unless two other paths are left, all stay, so that reading them fails.
func (a *app) withRuns(paths []string) []string {
	isOther := func(path string) bool {
		fi, err := os.Stat(path)
		return err == nil && fi.IsDir() && !runfolders.HasRuns(path)
	}
	kept := slices.DeleteFunc(slices.Clone(paths), isOther)
	if len(kept) < 2 {
		return paths
	}
	for _, path := range paths {
		if isOther(path) {
			a.warn(fmt.Sprintf("not compared: no run is in %q", path))
		}
	}
	return kept
}

// readSides reads the runs of all paths. Each path is a side: a run, or a
// folder of runs. It adds the names of sides and runs, the plans and the
// baseline, which is a path or a name, to the options. Without a side that has
// several runs, o.Sides is nil: each run is then a side, unless --by makes
// others.
func (a *app) readSides(paths []string, baseline string, o *analysis.CompareOptions) (all []*result.Result, err error) {
	// Sides have the names of the folders, and whole paths where two of them have
	// the same name, as in a/run and b/run.
	names, same := make([]string, len(paths)), map[string]int{}
	for i, path := range paths {
		names[i] = strings.TrimSuffix(filepath.Base(runFolder(path)), ".json")
		same[names[i]]++
	}
	o.Baseline = baseline
	for i, side := range names {
		if same[side] > 1 {
			side = filepath.Clean(paths[i])
		}
		folders := runfolders.Folders(paths[i])
		for k, f := range folders {
			r, err := a.runs.Result(f)
			if err != nil {
				return nil, err
			}
			// The plan is needed to judge claims on pooled runs; a result.json
			// alone is compared without.
			if p := runfolders.Plan(f, r); p != nil {
				o.Plans[r.Plan.Digest] = p
			}
			if k == 0 && baseline != "" && runner.Absolute(paths[i]) == runner.Absolute(baseline) {
				o.Baseline = r.Run
			}
			name := side + report.TextIf(len(folders) > 1, "/"+filepath.Base(f))
			all, o.Names, o.Sides = append(all, r), append(o.Names, name), append(o.Sides, side)
		}
	}
	if len(all) == len(paths) {
		o.Sides = nil
	}
	return all, nil
}

// printComparison prints a comparison in the format of --format.
func (a *app) printComparison(c *analysis.Comparison) error {
	switch a.text("format") {
	case "junit":
		return report.ComparisonJUnit(a.stdout, c, a.clock.Wall(), a.isSet("strict"))
	case "summary":
		return text.DocumentMarkdown(a.stdout, report.SummaryDocument(c))
	case "json":
		return a.writeJSON(c)
	}
	return a.printDocument(report.ComparisonDocument(c))
}

// runFolder is the absolute path of the folder of a run, which is given by it or
// its result.json.
func runFolder(path string) string {
	path = runner.Absolute(path)
	if filepath.Base(path) == result.ResultFile {
		return filepath.Dir(path)
	}
	return path
}

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
	return a.printHistory(runs)
}

// printHistory prints a list of runs, and once what all have in common.
func (a *app) printHistory(runs []runfolders.Run) error {
	rows := make([][]string, len(runs))
	common := true
	for i, r := range runs {
		rows[i] = append(historyRow(r), onWhat(r))
		common = common && onWhat(r) == onWhat(runs[0])
	}
	for i, row := range rows {
		if common {
			rows[i] = row[:len(row)-1]
		}
	}
	err := printTable(a.stdout, rows, a.textOptions().Width, 4)
	if err != nil || len(runs) == 0 || !common {
		return err
	}
	return printTable(a.stdout, [][]string{{"all on " + onWhat(runs[0])}}, a.textOptions().Width, 4)
}

// onWhat is the machine of a run and its engine.
func onWhat(r runfolders.Run) string {
	machine := strings.Join(nonempty(r.Host, r.System, r.Machine), ", ")
	return cmp.Or(machine, "an unknown machine") + ", by " + cmp.Or(r.Engine, "an unknown engine")
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

//go:embed historycolumns.txt
var historyColumns string

// historyCSV writes the runs as CSV. docs/metrics.md describes its columns.
// Columns may be added at the end only: scripts of users read them by number,
// too. Unknown times and numbers are empty.
func historyCSV(w io.Writer, runs []runfolders.Run) error {
	columns := export.ParseColumns[runfolders.Run](historyColumns)["history"]
	return export.WriteRows(w, columns, func(do func(*runfolders.Run)) {
		for i := range runs {
			do(&runs[i])
		}
	})
}

// historyRow has the cells of a run, those that people search by first. An
// unfinished run shows the command that continues it in place of a figure.
func historyRow(r runfolders.Run) []string {
	when := "time unknown"
	if !r.Started.IsZero() {
		when = r.Started.Format("2006-01-02 15:04")
	}
	status, figure := cmp.Or(r.Status, "status unknown"), "no figure"
	if h := cmp.Or(r.Headline, r.Quantity); h != nil {
		name := h.Case
		if h.Native {
			name = report.NativeFolder
		}
		figure = strings.Join(strings.Fields(h.Op+" "+h.Phase), " ") + " " + report.Human(h.Value, h.Unit) + ", " + name
	}
	cases := tally(r.Cases, "case", result.Done, "done", result.Failed, "failed", result.Discarded, "discarded",
		result.Skipped, "skipped")
	if r.Status == result.Unfinished && r.Pooled == 0 {
		status, figure = "interrupted", "to continue: dmgbench resume "+quoted(r.Path)
		cases = fmt.Sprintf("%d of %d done", r.RoundsDone, r.RoundsOf)
		switch {
		case result.Running(r.Path):
			status, figure = "running", "to watch: dmgbench watch "+quoted(r.Path)
		case r.End == result.Paused:
			status = result.Paused
		}
	}
	return []string{when, r.Dir, cmp.Or(r.Plan, "plan unknown"), status + report.TextIf(r.Baseline, ", baseline"), figure,
		cases, tally(r.Verdicts, "claim", result.Holds, "holding", result.DoesNotHold, "not holding",
			result.CannotTell, "undecided", result.NotMeasured, "not measured")}
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
	text := units.Count(total, noun) + " (" + strings.Join(parts, ", ") + ")"
	return cmp.Or(report.TextIf(total > 0, text), "no "+noun+"s")
}

// markBaseline is the command "history baseline".
func (a *app) markBaseline(_ context.Context, args []string) error {
	run := runner.Absolute(args[0])
	a.chownAtExit(filepath.Join(run, runfolders.BaselineFile))
	plan, replaced, err := runfolders.MarkBaseline(run, a.isSet("clear"))
	if err != nil {
		return err
	}
	instead := report.TextIf(len(replaced) > 0, ", instead of "+strings.Join(replaced, ", "))
	not := report.TextIf(a.isSet("clear"), "not ")
	return a.print("%s is %sthe baseline of plan %s%s", filepath.Base(run), not, plan, instead)
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
	old := runfolders.Prunable(runs, a.number("keep"))
	if len(old) == 0 {
		fmt.Fprintln(a.stderr, "no run to delete")
		return nil
	}
	if !a.isSet("yes") {
		// The list goes to stderr: stdout names only folders that were deleted.
		for _, r := range old {
			fmt.Fprintln(a.stderr, printable(r.Path))
		}
		folders := units.Count(len(old), "run folder")
		if !a.canAsk() {
			return usageError("--yes deletes the folders listed above",
				"deleting %s: no terminal to ask on; add --yes", folders)
		}
		if err := a.confirm(ctx, "Delete "+folders+"?", "no folder was deleted"); err != nil {
			return err
		}
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
