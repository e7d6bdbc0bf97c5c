package cli

import (
	"context"
	"fmt"

	"dmgbench/internal/plan"
)

// checkPlans is the command "check".
func (a *app) checkPlans(_ context.Context, names []string) error {
	code := 0
	for _, name := range names {
		ps, err := a.loadPlans([]string{name})
		if err == nil {
			err = checkRunnable(ps[0])
		}
		if err != nil {
			a.printError(err)
			code = exitUsage
			continue
		}
		for _, warning := range unsupportedByAll(name, ps[0]) { // run names what its own engine skips
			a.warn(warning.String())
		}
		if _, err := fmt.Fprintf(a.stdout, "%s: ok, %s\n", printable(name), countCases(ps[0])); err != nil {
			return err
		}
	}
	return status(code)
}

// countCases counts the cases of a plan in words, without the native baseline.
func countCases(p *plan.Plan) string {
	n, baseline := 0, ""
	for _, c := range p.Cases() {
		if c.Baseline {
			baseline = " and the native baseline"
			continue
		}
		n++
	}
	return count(n, "case") + baseline
}
