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
	list, o, err := a.readSides(paths, o)
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
		return status(exitRegression)
	case len(c.Rows) == 0:
		return usageError("the comparison lists the reason for each", "comparing runs: no measurements could be paired")
	case a.isSet("strict") && c.Undecided:
		return status(exitUndecided)
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

// readSides reads the runs of all paths. Each path is a side: a run, or a
// folder of runs. It adds the names of sides and runs, the plans and the
// baseline to the options. --against adds a side that is the baseline, unless
// it is among the paths.
func (a *app) readSides(paths []string, o analysis.CompareOptions) ([]*result.Result, analysis.CompareOptions, error) {
	baseline := a.text("baseline")
	isBaseline := func(path string) bool { return filepath.Clean(path) == filepath.Clean(baseline) }
	if a.text("against") != "" {
		path, err := a.againstPath(paths[0])
		if err != nil {
			return nil, o, err
		}
		if baseline = path; !slices.ContainsFunc(paths, isBaseline) {
			paths = append(slices.Clone(paths), path)
		}
	}
	var all, heads []*result.Result // heads are the first runs of the sides
	var folders [][]string
	for _, path := range paths {
		own := runfolders.Folders(path)
		folders = append(folders, own)
		for i, f := range own {
			r, err := a.runs.Result(f)
			if err != nil {
				return nil, o, err
			}
			// The plan is needed to judge claims on pooled runs; a result.json
			// alone is compared without.
			if p := runfolders.Plan(f, r); p != nil {
				o.Plans[r.Plan.Digest] = p
			}
			if i == 0 {
				heads = append(heads, r)
			}
			all = append(all, r)
		}
	}
	o.Baseline = baseline
	if i := slices.IndexFunc(paths, isBaseline); i >= 0 && baseline != "" { // a path instead of a name
		o.Baseline = heads[i].Run
	}
	o.Names, o.Sides = runNames(sideNames(paths, heads), folders)
	return all, o, nil
}

// runNames are the names of all runs, and the side of each; folders are the
// runs of each side. Without a side that has several runs, the sides are nil:
// each run is then a side, unless --by makes others.
func runNames(sides []string, folders [][]string) (names, of []string) {
	for i, own := range folders {
		for _, f := range own {
			name := sides[i]
			if len(own) > 1 {
				name += "/" + filepath.Base(f)
			}
			names, of = append(names, name), append(of, sides[i])
		}
	}
	if len(names) == len(sides) {
		return names, nil
	}
	return names, of
}

// againstPath is the path of the run that --against names. first is the first
// run of the arguments: "baseline" is the run of the same plan that is marked
// in the folder above it.
func (a *app) againstPath(first string) (string, error) {
	against := a.text("against")
	if a.text("baseline") != "" {
		return "", usageError("--against RUN makes RUN the baseline", "reading --against: --baseline is given as well")
	}
	if against != "baseline" {
		return against, nil
	}
	run := filepath.Clean(first)
	if filepath.Base(run) == result.ResultFile {
		run = filepath.Dir(run)
	}
	path, planName, err := runfolders.FindBaseline(run)
	if err == nil && path == "" {
		err = usageError("mark one: dmgbench history baseline RUN",
			"finding the baseline of plan %q: no run in %q is marked", planName, runfolders.Parent(run))
	}
	return path, err
}

// sideNames are the names of the folders, and whole paths where two of them
// have the same name, as in a/run and b/run. A path without a name, such as
// ".", gets the id of its run; heads are the first runs of the paths.
func sideNames(paths []string, heads []*result.Result) []string {
	names, whole := make([]string, len(paths)), make([]string, len(paths))
	for i, path := range paths {
		whole[i] = filepath.Clean(path)
		folder := whole[i]
		if filepath.Base(folder) == result.ResultFile {
			folder = filepath.Dir(folder)
		}
		names[i] = strings.TrimSuffix(filepath.Base(folder), ".json")
		if names[i] == "." || names[i] == string(filepath.Separator) {
			names[i] = heads[i].Run
		}
	}
	out := slices.Clone(names)
	for i := range names {
		for k := range names {
			if names[k] == names[i] && whole[k] != whole[i] {
				out[i] = whole[i]
			}
		}
	}
	return out
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
