package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dmgbench/internal/analysis"
	"dmgbench/internal/engine"
	"dmgbench/internal/engine/hdiutil"
	"dmgbench/internal/engine/inprocess"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/runfolders"
	"dmgbench/internal/runner"
	"dmgbench/internal/units"
	"dmgbench/plans"
)

// minFileSize is the smallest file that can be timed on a device of 10 GB/s: it
// takes twenty times the third of a microsecond that the program itself needs
// for a file. docs/accuracy.md has the measurement, which dmgbench selftest
// repeats on any machine. The analysis checks the real times after a run.
const minFileSize units.Bytes = 64_000

// loadPlans loads plans and prints everything that is wrong with any of them,
// so that a user mends all in one go. Its error is only the exit status.
func (a *app) loadPlans(names []string) ([]*plan.Plan, error) {
	var out []*plan.Plan
	bad := false
	for _, name := range names {
		p, warnings, err := loadPlan(name)
		if err != nil {
			a.printError(err)
			bad = true
			continue
		}
		for _, w := range warnings {
			a.warn(w.String())
			bad = bad || w.Refused
		}
		a.warnAuthorClaims(name, p)
		for _, problem := range unsupportedByAll(name, p) {
			if !problem.Warning {
				a.printError(&plan.Problems{Items: []plan.Problem{problem}})
				bad = true
			}
		}
		out = append(out, p)
	}
	if bad {
		return nil, status(exitUsage)
	}
	return out, nil
}

// loadPlan loads a plan by its path or by the name of a built-in plan, which is
// preferred to a file of that name. It returns the warnings of the plan; its
// problems are an error of type plan.Problems.
func loadPlan(name string) (*plan.Plan, []plan.Problem, error) {
	if text, ok := builtIn(name); ok {
		p, problems := plan.Parse(name+".toml", text)
		if len(problems.Errors()) > 0 {
			return nil, nil, problems
		}
		return p, problems.Warnings(), nil
	}
	// A name without a file is a misspelt built-in plan more often than a path.
	if !isPath(name) && !exists(name) {
		return nil, nil, unknownPlan(name)
	}
	p, warnings, err := plan.LoadAll(name)
	if err == nil {
		restoreName(p, name)
	} else if !is[*plan.Problems](err) {
		err = usageError("", "%w", err)
	}
	return p, warnings, err
}

// builtIn is the text of a built-in plan, unless its argument is a path.
func builtIn(name string) ([]byte, bool) {
	if isPath(name) {
		return nil, false
	}
	return plans.Get(name)
}

// restoreName gives the plan of a run folder, where the file is always
// plan.toml, the name that it was run as: results and run folders of a
// repetition then have the same name. A file that was changed since is another
// plan.
func restoreName(p *plan.Plan, path string) {
	if filepath.Base(path) != result.PlanFile {
		return
	}
	state, err := runfolders.State(filepath.Dir(path))
	if err != nil {
		return // a plan.toml without a journal
	}
	text, err := os.ReadFile(path)
	if ran := state.Run.Plan; err == nil && p.Is(ran.Digest, text) && result.SafeName(ran.Name) == nil {
		p.Name = ran.Name
	}
}

// unknownPlan suggests the built-in plan that has the text in its name, or the
// most similar name.
func unknownPlan(name string) error {
	near := plan.Nearest(name, plans.Names())
	for _, n := range plans.Names() {
		if len(name) > 2 && (strings.HasPrefix(n, strings.ToLower(name)) || strings.HasPrefix(name, n)) {
			near = n
			break
		}
	}
	hint := "dmgbench plans lists the built-in plans"
	if near != "" {
		hint = fmt.Sprintf("there is a built-in plan %q", near)
	}
	return usageError(hint, "finding plan %q: neither a built-in plan nor a file", name)
}

// isPath reports whether a plan argument is a path rather than the name of a
// built-in plan.
func isPath(name string) bool {
	return strings.ContainsAny(name, `/\`) || strings.HasSuffix(name, ".toml")
}

// warnAuthorClaims warns of claims of the author that the author's own
// published values contradict: one of the two was transcribed wrongly. The
// published values of a changed plan are of other cases.
func (a *app) warnAuthorClaims(name string, p *plan.Plan) {
	if len(p.Changes) > 0 {
		return
	}
	for _, c := range analysis.JudgePublished(p) {
		if c.Verdict == result.DoesNotHold {
			a.warn(fmt.Sprintf("%s: warning: the author's claim %q does not hold on the author's own figures: %s\n"+
				"  hint: read the source again: the claim or a figure differs there", name, c.Says, c.Reason))
		}
	}
}

// checkRunnable refuses plans that are valid but cannot be run. A report of an
// earlier run of such a plan can still be made, so this is not part of the
// check of plans.
func checkRunnable(p *plan.Plan) error {
	if err := checkFileSizes(p); err != nil {
		return err
	}
	if _, err := runner.AutoRounds(p); err != nil {
		return usageError("allow more with --max-written, or shorten a round with --sets 1", "%w", err)
	}
	return nil
}

// checkFileSizes refuses files that are too small to be timed, from lists and
// from ranges. Scaling keeps sizes above that limit itself.
func checkFileSizes(p *plan.Plan) error {
	if slices.ContainsFunc(p.Changes, func(c plan.Change) bool { return c.Kind == "scale" }) {
		return nil
	}
	for _, f := range p.Files {
		for _, part := range f.Parts {
			sizes := part.Sizes
			if part.High > 0 {
				sizes = append(slices.Clone(sizes), part.Low)
			}
			if len(sizes) > 0 && slices.Min(sizes) < minFileSize {
				hint := fmt.Sprintf("use files of %s or more; dmgbench selftest measures the overhead", minFileSize)
				return usageError(hint, "running plan %q: files of %s in set %q are too small to be timed: "+
					"the overhead of the program would show in their rate", p.Name, slices.Min(sizes), f.Name)
			}
		}
	}
	return nil
}

// unsupportedByAll are the cases that no engine on any machine supports: a
// warning that names them, or an error where no image is left to measure. In a
// changed plan they are warnings, as --only may have selected them. Cases with
// the same step and reason are one problem.
func unsupportedByAll(name string, p *plan.Plan) (problems []plan.Problem) {
	// Ideal engines support all that any version of the tools does.
	engines := []engine.Engine{inprocess.New(nil)}
	for _, e := range hdiutil.Ideal() {
		engines = append(engines, e)
	}
	refusals := map[string]int{} // number of engines by case
	var list []*runner.Unsupported
	for _, e := range engines {
		list = runner.UnsupportedCases(p, e)
		for _, u := range list {
			refusals[u.Case.ID]++
		}
	}
	// The list of the last engine has every case that all refuse. Native
	// folders are measured by every engine.
	isImage := func(c plan.Case) bool { return c.Settings.Target == "image" }
	list = slices.DeleteFunc(list, func(u *runner.Unsupported) bool {
		return refusals[u.Case.ID] < len(engines) || !isImage(u.Case)
	})
	images := slices.DeleteFunc(p.Cases(), func(c plan.Case) bool { return !isImage(c) })
	warning := len(list) < len(images) || len(p.Changes) > 0
	file, text := name+".toml", []byte(nil) // for the excerpt of a problem
	if builtIn, ok := builtIn(name); ok {
		text = builtIn
	} else {
		file = name
		text, _ = os.ReadFile(name) // nil if the file was deleted since
	}
	for len(list) > 0 {
		first, ids := list[0], []string{}
		list = slices.DeleteFunc(list, func(u *runner.Unsupported) bool {
			same := u.Step.Line == first.Step.Line && u.Step.Column == first.Step.Column && u.Error() == first.Error()
			if same {
				ids = append(ids, u.Case.ID)
			}
			return same
		})
		asks := "the case " + ids[0] + " asks"
		if len(ids) > 1 {
			asks = "the cases " + strings.Join(ids, " and ") + " ask"
		}
		step := first.Step
		problem := plan.Problem{Line: step.Line, Column: step.Column, Key: step.Do, Hint: first.Err.Hint,
			Message: fmt.Sprintf("%s: no engine supports %s, which %s for", step.Do, first.Err.What, asks),
			Warning: warning}
		problems = append(problems, problem.In(file, text))
	}
	return problems
}
