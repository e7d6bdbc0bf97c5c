package cli

import (
	"fmt"

	"dmgbench/internal/plan"

	"github.com/spf13/cobra"
)

func (a *app) newCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use: "check PLAN...", GroupID: "measure", Args: between(1, -1, "PLAN"), ValidArgsFunction: completePlans,
		Short: "validate plans",
		Long: `Validate plans, paths or names of built-in plans. Every problem of every plan is
printed to stderr with its place, the line and a hint; each plan that can be run
is named on stdout.

EXIT STATUS
  0  all plans can be run
  2  some cannot`,
		Example: "  dmgbench check mine.toml\n  dmgbench check plans/*.toml",
		RunE: func(_ *cobra.Command, args []string) error {
			bad := false
			for _, name := range args {
				ps, err := a.loadAll([]string{name})
				if err == nil {
					if err = canRun(ps[0]); err != nil {
						a.tell(err)
					}
				}
				if err != nil {
					bad = true
					continue
				}
				for _, f := range onAnyEngine(name, ps[0]) { // run says what its engine skips
					a.warn(f.String())
				}
				if _, err := fmt.Fprintf(a.out, "%s: ok, %s\n", printable(name), cases(ps[0])); err != nil {
					return err
				}
			}
			if bad {
				return status(exitUsage)
			}
			return nil
		},
	}
}

// cases counts those of a plan; the native baseline stands beside them.
func cases(p *plan.Plan) string {
	n, beside := 0, ""
	for _, c := range p.Cases() {
		if c.Baseline {
			beside = " and the native baseline"
			continue
		}
		n++
	}
	return count(n, "case") + beside
}

// count is "1 case" or "2 cases".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
