package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"dmgbench/internal/analysis"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// compareInput is what the arguments of compare name: runs in the order of the sides.
type compareInput struct {
	paths []string // as given, with the run of --against
	runs  []*result.Result
	first []int // index of the first run of each path
	opts  analysis.CompareOptions
}

// readCompared reads the runs of all paths. A folder that holds run folders is one side.
func (a *app) readCompared(o compareOptions) (compareInput, error) {
	in := compareInput{paths: slices.Clone(o.Runs)}
	in.opts = analysis.CompareOptions{By: o.By, Threshold: o.share, Estimator: o.Estimator, Plans: map[string]*plan.Plan{}}
	for _, op := range o.Ops {
		in.opts.Ops = append(in.opts.Ops, plan.Quantity(op))
	}
	if o.Against != "" {
		path, err := againstPath(o)
		if err != nil {
			return in, err
		}
		if !slices.ContainsFunc(in.paths, func(p string) bool { return samePath(p, path) }) {
			in.paths = append(in.paths, path)
		}
		o.Baseline = path
	}
	var folders [][]string
	for _, path := range in.paths {
		own := runFolders(path)
		folders, in.first = append(folders, own), append(in.first, len(in.runs))
		for _, f := range own {
			r, err := a.readRun(f)
			if err != nil {
				return in, err
			}
			if p := readOwnPlan(f, r); p != nil {
				in.opts.Plans[r.Plan.Digest] = p
			}
			in.runs = append(in.runs, r)
		}
	}
	in.name(folders)
	in.opts.Baseline = in.baseline(o.Baseline)
	return in, nil
}

// name calls sides and runs as the command line does.
func (in *compareInput) name(folders [][]string) {
	heads := make([]*result.Result, len(in.first))
	for i, k := range in.first {
		heads[i] = in.runs[k]
	}
	sides := runNames(in.paths, heads)
	for i, own := range folders {
		for _, f := range own {
			name := sides[i]
			if len(own) > 1 {
				name += "/" + filepath.Base(f)
			}
			in.opts.Names, in.opts.Sides = append(in.opts.Names, name), append(in.opts.Sides, sides[i])
		}
	}
	if len(in.opts.Names) == len(in.paths) {
		in.opts.Sides = nil // each path is one run, and a side of its own
	}
}

// baseline lets --baseline be a path as well, such as those of the arguments.
func (in *compareInput) baseline(want string) string {
	for i, p := range in.paths {
		if want != "" && samePath(p, want) {
			return in.runs[in.first[i]].Run
		}
	}
	return want
}

func samePath(a, b string) bool { return filepath.Clean(a) == filepath.Clean(b) }

// runFolders are the run folders in a folder that is none itself, such as those of run --sessions;
// of any other path, the path.
func runFolders(path string) []string {
	if holds, err := holdsRun(path); holds || err != nil {
		return []string{path}
	}
	list, err := os.ReadDir(path)
	if err != nil {
		return []string{path}
	}
	var out []string
	for _, e := range list {
		below := filepath.Join(path, e.Name())
		if holds, err := holdsRun(below); e.IsDir() && holds && err == nil {
			out = append(out, below)
		}
	}
	if len(out) == 0 {
		return []string{path}
	}
	return out
}

// markedBaseline is the value of --against for the run that `history baseline` marked.
const markedBaseline = "baseline"

// againstPath is the run that --against names.
func againstPath(o compareOptions) (string, error) {
	if o.Against != markedBaseline || len(o.Runs) == 0 {
		return o.Against, nil
	}
	run := filepath.Clean(o.Runs[0])
	if filepath.Base(run) == result.ResultFile {
		run = filepath.Dir(run)
	}
	r, err := result.ReadSummary(runFolders(run)[0])
	if err != nil {
		return "", err
	}
	dir := filepath.Join(run, "..")
	if filepath.IsLocal(run) {
		dir = filepath.Dir(run)
	}
	names, err := baselines(dir)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if b, err := result.ReadSummary(runFolders(path)[0]); filepath.IsLocal(name) && err == nil && b.Plan.Name == r.Plan.Name {
			return path, nil
		}
	}
	return "", &usageError{err: fmt.Errorf("finding the baseline of plan %q: no run in %q is marked", r.Plan.Name, dir),
		hint: "mark one: dmgbench history baseline RUN"}
}
