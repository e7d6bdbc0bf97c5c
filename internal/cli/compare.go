package cli

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"dmgbench/internal/analysis"
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
	o, err := a.compareOptions()
	if err != nil {
		return err
	}
	paths, baseline, err := a.addBaseline(paths)
	if err != nil {
		return err
	}
	list, err := a.readSides(paths, baseline, &o)
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
		return usageError("the comparison lists the reason for each", "comparing runs: no measurements could be paired")
	case a.isSet("strict") && c.Undecided:
		return exitWith(exitUndecided)
	}
	return nil
}

// compareOptions are the options that the flags determine without the runs.
func (a *app) compareOptions() (o analysis.CompareOptions, err error) {
	o = analysis.CompareOptions{By: a.list("by"), Estimator: a.text("estimator"), Plans: map[string]*plan.Plan{}}
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

// addBaseline adds the side of --against, which is the baseline, unless it is
// among the paths. "baseline" is the run of the same plan that is marked in the
// folder above the first run.
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
				"finding the baseline of plan %q: no run in %q is marked", planName, runfolders.Parent(run))
		}
	}
	isAgainst := func(path string) bool { return filepath.Clean(path) == filepath.Clean(against) }
	if !slices.ContainsFunc(paths, isAgainst) {
		paths = append(slices.Clone(paths), against)
	}
	return paths, against, nil
}

// runFolder is the folder of a run, which is given by it or its result.json.
func runFolder(path string) string {
	path = filepath.Clean(path)
	if filepath.Base(path) == result.ResultFile {
		return filepath.Dir(path)
	}
	return path
}

// readSides reads the runs of all paths. Each path is a side: a run, or a
// folder of runs. It adds the names of sides and runs, the plans and the
// baseline, which is a path or a name, to the options. Without a side that has
// several runs, o.Sides is nil: each run is then a side, unless --by makes
// others.
func (a *app) readSides(paths []string, baseline string, o *analysis.CompareOptions) ([]*result.Result, error) {
	var all, heads []*result.Result // heads are the first runs of the sides
	o.Baseline = baseline
	for _, path := range paths {
		for i, f := range runfolders.Folders(path) {
			r, err := a.runs.Result(f)
			if err != nil {
				return nil, err
			}
			// The plan is needed to judge claims on pooled runs; a result.json
			// alone is compared without.
			if p := runfolders.Plan(f, r); p != nil {
				o.Plans[r.Plan.Digest] = p
			}
			all = append(all, r)
			if i == 0 {
				heads = append(heads, r)
				if baseline != "" && filepath.Clean(path) == filepath.Clean(baseline) {
					o.Baseline = r.Run
				}
			}
		}
	}
	for i, side := range sideNames(paths, heads) {
		folders := runfolders.Folders(paths[i])
		for _, f := range folders {
			name := side
			if len(folders) > 1 {
				name += "/" + filepath.Base(f)
			}
			o.Names, o.Sides = append(o.Names, name), append(o.Sides, side)
		}
	}
	if len(o.Names) == len(paths) {
		o.Sides = nil
	}
	return all, nil
}

// sideNames are the names of the folders, and whole paths where two of them
// have the same name, as in a/run and b/run. A path without a name, such as
// ".", gets the id of its run; heads are the first runs of the paths.
func sideNames(paths []string, heads []*result.Result) []string {
	names, same := make([]string, len(paths)), map[string]int{}
	for i, path := range paths {
		names[i] = strings.TrimSuffix(filepath.Base(runFolder(path)), ".json")
		if names[i] == "." || names[i] == string(filepath.Separator) {
			names[i] = heads[i].Run
		}
		same[names[i]]++
	}
	for i, name := range names {
		if same[name] > 1 {
			names[i] = filepath.Clean(paths[i])
		}
	}
	return names
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
