package cli

import (
	"bytes"
	"io"
	"os"

	"dmgbench/internal/analysis"
	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/report/text"
	"dmgbench/internal/result"

	"golang.org/x/term"
)

// judge makes the result of a run folder out of its plan and journal alone, so
// that the same two files give the same result everywhere.
func judge(d *result.RunDir) (*plan.Plan, *result.Result, error) {
	p, r, err := folded(d)
	if err != nil {
		return nil, nil, err
	}
	return p, r, analysis.Analyze(p, r, analysis.Options{})
}

// folded is the plan and the result of a run folder before any conclusion.
func folded(d *result.RunDir) (*plan.Plan, *result.Result, error) {
	sources, lost := d.Sources() // before they are read: what a run that goes on appends makes the result outdated
	recs, err := d.Journal()
	if err != nil {
		return nil, nil, err
	}
	r, err := result.Fold(recs)
	if err != nil {
		return nil, nil, err
	}
	r.Sources = sources
	for _, w := range d.Warnings() { // a torn line is a fact of the journal; locks are not
		if w.Kind != "lock" {
			r.Warnings = append(r.Warnings, w)
		}
	}
	text, err := d.ReadFile(result.PlanFile, plan.MaxSize)
	if err != nil {
		return nil, nil, err
	}
	p, problems := plan.Parse(r.Plan.Name+".toml", text)
	if len(problems.Errors()) > 0 {
		return nil, nil, problems
	}
	if !p.Is(r.Plan.Digest, text) {
		return nil, nil, &result.Error{Doing: "reading plan", File: result.PlanFile, Err: errPlanChanged,
			Hint: "the journal was measured by another plan: put the run's own plan.toml back"}
	}
	return p, r, lost
}

// finish writes result.json and report.html of a run folder.
func finish(dir string) (*plan.Plan, *result.Result, error) {
	d, err := result.OpenRun(dir)
	if err != nil {
		return nil, nil, err
	}
	defer d.Close()
	p, r, err := judge(d)
	if err != nil {
		return nil, nil, err
	}
	if err := d.WriteResult(r); err != nil {
		return nil, nil, err
	}
	var page bytes.Buffer
	if err := report.HTML(&page, p, r); err != nil {
		return nil, nil, err
	}
	return p, r, d.WriteFile(result.ReportFile, page.Bytes())
}

// verdict is the exit status that a result asks for.
func verdict(r *result.Result) int {
	if r.Outcome() != result.Done {
		return exitCases
	}
	return 0
}

// textOptions fit the report to where it goes.
func (a *app) textOptions() text.Options {
	f, ok := terminal(a.out)
	if !ok {
		return text.Options{Verbose: a.verbose}
	}
	o := text.Options{Verbose: a.verbose, Color: a.env["NO_COLOR"] == "" && a.env["TERM"] != "dumb"}
	if w, _, err := term.GetSize(int(f.Fd())); err == nil {
		o.Width = w
	}
	return o
}

// terminal gives the file behind a stream if that is a terminal.
func terminal(stream io.Writer) (*os.File, bool) {
	f, ok := stream.(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}
