// Package report renders a result for people: one offline HTML page, Markdown,
// and a table for the terminal.
//
// It reads results and plans and never measures, judges or repairs: every number
// it prints is in the result, or is a mean, a median, a line or an interval of the
// result's samples, by internal/stats and internal/analysis, that is labelled so. Nothing is hidden: a number is shown with its interval, its n and
// its warnings, or it is not shown. The output depends on the input alone (no
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

// Text writes what `dmgbench run` prints at its end: one screen, or with Verbose
// all deviations, verdicts, measured and published figures, sizes and warnings.
func Text(w io.Writer, p *plan.Plan, r *result.Result, o TextOptions) error {
	return deliver(w, renderText(NewView(p, r), o), "summary", r.Run)
}

// Markdown writes the report without pictures, for a repository or an issue.
func Markdown(w io.Writer, p *plan.Plan, r *result.Result) error {
	return deliver(w, renderMarkdown(NewView(p, r)), "report", r.Run)
}

func deliver(w io.Writer, text []byte, what, run string) error {
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("writing the %s of run %q: %w", what, run, err)
	}
	return nil
}
