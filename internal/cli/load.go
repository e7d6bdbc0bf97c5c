package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"dmgbench/internal/analysis"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/plans"
)

// load reads PLAN, a path or the name of a built-in plan. What looks like a path
// is one; a plain name is the built-in plan's before it is a file's.
func load(name string) (*plan.Plan, []plan.Problem, error) {
	if text, ok := plans.Get(name); ok && !pathLike(name) {
		p, problems := plan.Parse(name+".toml", text)
		if len(problems.Errors()) > 0 {
			return nil, nil, problems
		}
		return p, problems.Warnings(), nil
	}
	if _, err := os.Stat(name); err != nil && !pathLike(name) {
		return nil, nil, noPlan(name)
	}
	p, warnings, err := plan.LoadAll(name)
	if err == nil {
		nameAgain(p, name)
	}
	if _, told := errors.AsType[*plan.Problems](err); err != nil && !told {
		err = &usageError{err: err}
	}
	return p, warnings, err
}

// nameAgain gives the plan of a run folder the name that it was run under: every
// such file is called plan.toml.
func nameAgain(p *plan.Plan, path string) {
	if filepath.Base(path) != result.PlanFile {
		return
	}
	d, err := result.OpenRun(filepath.Dir(path))
	if err != nil {
		return // a plan of that name beside no journal
	}
	defer d.Close()
	recs, err := d.Journal()
	if err != nil || len(recs) == 0 || recs[0].Run == nil {
		return
	}
	text, err := d.ReadFile(result.PlanFile, plan.MaxSize)
	if err != nil {
		return
	}
	if ran := recs[0].Run.Plan; p.Is(ran.Digest, text) && result.SafeName(ran.Name) == nil {
		p.Name = ran.Name
	}
}

func noPlan(name string) error {
	e := &usageError{err: fmt.Errorf("finding plan %q: neither a built-in plan nor a file", name),
		hint: "dmgbench plans lists the built-in plans"}
	if near := nearPlan(name); near != "" {
		e.hint = fmt.Sprintf("there is a built-in plan %q", near)
	}
	return e
}

// pathLike says that PLAN is a path, whatever built-in plans there are.
func pathLike(name string) bool {
	return strings.ContainsAny(name, `/\`) || strings.HasSuffix(name, ".toml")
}

// nearPlan is the built-in plan that name begins or nearly is, or "".
func nearPlan(name string) string {
	for _, n := range plans.Names() {
		if len(name) > 2 && (strings.HasPrefix(n, strings.ToLower(name)) || strings.HasPrefix(name, n)) {
			return n
		}
	}
	return plan.Nearest(name, plans.Names())
}

// warnOfAuthor warns of claims of the author that the author's own figures contradict: figure or
// claim is misread. The figures of a plan that was changed are about other cases.
func (a *app) warnOfAuthor(name string, p *plan.Plan) {
	if len(p.Changes) > 0 {
		return
	}
	for _, c := range analysis.JudgePublished(p) {
		if c.Verdict == result.DoesNotHold {
			a.warn(fmt.Sprintf("%s: warning: the author's claim %q does not hold on the author's own figures: %s\n  hint: read the source again: the claim or a figure is another there", name, c.Says, c.Reason))
		}
	}
}

// loadAll reads every plan and tells everything that is wrong with any of them.
func (a *app) loadAll(names []string) ([]*plan.Plan, error) {
	var out []*plan.Plan
	bad := false
	for _, name := range names {
		p, warnings, err := load(name)
		if err != nil {
			a.tell(err)
			bad = true
			continue
		}
		for _, w := range warnings {
			a.warn(w.String())
			bad = bad || w.Refused
		}
		a.warnOfAuthor(name, p)
		for _, f := range onAnyEngine(name, p) {
			if !f.Warning {
				a.tell(&plan.Problems{Items: []plan.Problem{f}})
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
