package text

import (
	"fmt"

	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/result"
)

// Tables hands every table of the plan to save as HTML, Markdown and TSV, in
// the order of the plan and under a file name of its own. The same result gives
// the same bytes.
func Tables(p *plan.Plan, r *result.Result, save func(name string, text []byte) error) error {
	taken := map[string]int{}
	for _, t := range report.NewView(p, r).PlanTables {
		name := t.File
		if taken[t.File]++; taken[t.File] > 1 {
			name += fmt.Sprintf("-again-%d", taken[t.File])
		}
		for _, form := range t.Forms() {
			if err := save(name+form.Suffix, []byte(form.Text)); err != nil {
				return fmt.Errorf("saving table %q: %w", name, err)
			}
		}
	}
	return nil
}
