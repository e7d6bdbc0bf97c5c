package text

import (
	"fmt"
	"io"

	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/result"
)

// Methods prints the Methods paragraphs of a run for an article, in lines of 80
// columns.
func Methods(w io.Writer, p *plan.Plan, r *result.Result) error {
	t := newTerminal(Options{})
	d := report.MethodsDocument(p, r)
	t.wrap("", d.Title)
	for _, s := range d.Sections {
		fmt.Fprintln(t)
		for _, paragraph := range s.Lead {
			t.wrap("", paragraph)
		}
		for _, item := range s.Items {
			prefix := "  - "
			if item.Label != "" {
				prefix = fmt.Sprintf("%4s ", item.Label)
			}
			t.wrap(prefix, item.Text)
		}
	}
	return deliver(w, t.Bytes(), "methods of run "+r.Run)
}
