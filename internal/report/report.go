// Package report arranges a result for people, and makes all sentences of the output; the packages below its folder print
// them as a page, on a terminal and as Markdown.
//
// It reads results and plans and never measures, judges or repairs: every number
// it prints is in the result, or is a mean, a median, a line or an interval of the
// result's samples, by internal/stats and internal/analysis, that is labelled so.
// A number is shown with its interval, its n and its warnings, or it is not shown. The output depends on the input alone (no
// clock, no randomness, no host), so the same run renders to the same bytes.
// Names in a result are hostile text and are treated as such everywhere.
package report

import (
	"bytes"
	"fmt"
	"io"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// HTML writes the report as one self-contained page: it loads nothing from
// anywhere, and its content security policy forbids that it ever does.
// Nothing is written unless the whole page could be made.
func HTML(w io.Writer, p *plan.Plan, r *result.Result) error {
	var page bytes.Buffer
	if err := renderPage(&page, NewView(p, r)); err != nil {
		return fmt.Errorf("rendering the report of run %q: %w", r.Run, err)
	}
	return deliver(w, page.Bytes(), "report", r.Run)
}

func deliver(w io.Writer, text []byte, what, run string) error {
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("writing the %s of run %q: %w", what, run, err)
	}
	return nil
}
