package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dmgbench/internal/analysis"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/report/text"
	"dmgbench/internal/result"
	"dmgbench/internal/result/runfolders"
	"dmgbench/internal/system/units"
)

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
