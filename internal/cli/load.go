package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/plans"
)

// load reads PLAN, a path or the name of a built-in plan. What looks like a path
// is one; a plain name is the built-in plan's before it is a file's.
func load(name string) (*plan.Plan, []plan.Problem, error) {
	pathLike := strings.ContainsAny(name, `/\`) || strings.HasSuffix(name, ".toml")
	if text, ok := plans.Get(name); ok && !pathLike {
		p, problems := plan.Parse(name+".toml", text)
		if len(problems.Errors()) > 0 {
			return nil, nil, problems
		}
		return p, problems.Warnings(), nil
	}
	if _, err := os.Stat(name); err != nil && !pathLike {
		return nil, nil, noPlan(name)
	}
	p, warnings, err := plan.LoadAll(name)
	if _, told := errors.AsType[*plan.Problems](err); err != nil && !told {
		err = &usageError{err: err}
	}
	return p, warnings, err
}

func noPlan(name string) error {
	e := &usageError{err: fmt.Errorf("finding plan %q: neither a built-in plan nor a file", name),
		hint: "dmgbench plans lists the built-in plans"}
	near := slices.IndexFunc(plans.Names(), func(n string) bool {
		return strings.EqualFold(n, name) || len(name) > 2 && (strings.HasPrefix(n, name) || strings.HasPrefix(name, n))
	})
	if near >= 0 {
		e.hint = fmt.Sprintf("there is a built-in plan %q", plans.Names()[near])
	}
	return e
}

// loadAll reads every plan and tells everything that is wrong with any of them.
func (a *app) loadAll(names []string) ([]*plan.Plan, error) {
	var out []*plan.Plan
	bad := false
	for _, name := range names {
		p, warnings, err := load(name)
		if err != nil {
			tell(a.err, err)
			bad = true
			continue
		}
		for _, w := range warnings {
			fmt.Fprintln(a.err, w.String())
		}
		out = append(out, p)
	}
	if bad {
		return nil, status(exitUsage)
	}
	return out, nil
}
