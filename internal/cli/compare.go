package cli

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/analysis"
	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/report/text"
	"dmgbench/internal/result"
	"dmgbench/internal/runfolders"
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
	o.Threshold, err = a.threshold()
	return o, err
}

// threshold parses --threshold as a share of 1, between 0 and 1.
func (a *app) threshold() (float64, error) {
	text := a.text("threshold")
	digits, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	share, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if err != nil || !percent || !(share > 0 && share < 100) {
		return 0, usageError("more than 0% and less than 100%",
			"reading --threshold: %q is not a percentage such as 5%%", text)
	}
	return share / 100, nil
}

// readSides reads the runs of all paths. Each path is a side: a run, or a
// folder of runs. It adds the names of sides and runs, the plans and the
// baseline to the options. --against adds a side that is the baseline, unless
// it is among the paths.
func (a *app) readSides(paths []string, o analysis.CompareOptions) ([]*result.Result, analysis.CompareOptions, error) {
	baseline := a.text("baseline")
	if a.text("against") != "" {
		path, err := a.againstPath(paths[0])
		if err != nil {
			return nil, o, err
		}
		if !slices.ContainsFunc(paths, func(p string) bool { return filepath.Clean(p) == filepath.Clean(path) }) {
			paths = append(slices.Clone(paths), path)
		}
		baseline = path
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
	for i, path := range paths {
		if baseline != "" && filepath.Clean(path) == filepath.Clean(baseline) { // a path instead of a name
			o.Baseline = heads[i].Run
		}
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
		of = nil
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
// have the same name. A path without a name, such as ".", gets the id of its
// run; heads are the first runs of the paths.
func sideNames(paths []string, heads []*result.Result) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		p = filepath.Clean(p)
		if filepath.Base(p) == result.ResultFile {
			p = filepath.Dir(p)
		}
		out[i] = strings.TrimSuffix(filepath.Base(p), ".json")
		if out[i] == "." || out[i] == string(filepath.Separator) {
			out[i] = heads[i].Run
		}
	}
	// Folders of different paths may have the same name, as in a/run and b/run.
	for i, n := range out {
		for k := range out[:i] {
			if out[k] == n && filepath.Clean(paths[k]) != filepath.Clean(paths[i]) {
				out[k], out[i] = filepath.Clean(paths[k]), filepath.Clean(paths[i])
			}
		}
	}
	return out
}

// printComparison prints a comparison in the format of --format.
func (a *app) printComparison(c *analysis.Comparison) error {
	switch a.text("format") {
	case "junit":
		return report.ComparisonJUnit(a.stdout, c, report.JUnitOptions{Time: a.clock.Wall(), Strict: a.isSet("strict")})
	case "summary":
		return text.DocumentMarkdown(a.stdout, report.SummaryDocument(c))
	case "json":
		return a.writeJSON(c)
	}
	return a.printDocument(report.ComparisonDocument(c))
}
