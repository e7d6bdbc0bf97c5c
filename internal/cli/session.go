package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"dmgbench/internal/report"
	"dmgbench/internal/result"
	"dmgbench/internal/runner"
)

// answer is what --format json prints of one run.
type answer struct {
	Run     string     `json:"run"` // run id
	Dir     string     `json:"dir"` // the run folder
	Status  string     `json:"status"`
	Cases   caseCounts `json:"cases"`
	Message string     `json:"message,omitempty"`
	Rounds  string     `json:"rounds,omitempty"`          // how --rounds auto ended
	Kept    []string   `json:"kept,omitempty"`            // commands that open the images
	Secret  string     `json:"passphrase_file,omitempty"` // of those that are encrypted
	Exit    int        `json:"exit"`
}

// caseCounts is the cases of a run by how they ended.
type caseCounts struct {
	Done        int `json:"done"`
	Failed      int `json:"failed"`
	Skipped     int `json:"skipped"`
	Discarded   int `json:"discarded"`
	NotFinished int `json:"not_finished"` // that resume goes on with
}

// countCases counts the cases of a result.
func countCases(r *result.Result) (n caseCounts) {
	of := map[string]*int{result.Done: &n.Done, result.Failed: &n.Failed, result.Skipped: &n.Skipped, result.Discarded: &n.Discarded,
		result.NotFinished: &n.NotFinished}
	for i := range r.Cases {
		if c := of[r.DisplayStatus(&r.Cases[i])]; c != nil {
			*c++
		}
	}
	return n
}

// session runs or resumes, writes result and report, prints the answer and gives
// the exit status of this run.
func (a *app) session(ctx context.Context, c runner.Config, do func(runner.Config) (runner.Outcome, error)) (int, error) {
	a.leaves(c.Out)
	pr := a.newProgress()
	if c.Plan != nil { // resuming a finished run reads none
		pr.names = report.CaseNames(c.Plan)
	}
	c.Progress = pr
	still := context.AfterFunc(ctx, func() {
		pr.Message("interrupted: cleaning up; a second interrupt ends it at once, and dmgbench clean tidies up then")
	})
	defer still()
	a.warnOfLeftovers(ctx, c.StateDir, c.Out)
	release, err := prepare(ctx, &c)
	if err != nil {
		return 0, err
	}
	if err := a.keepSecret(c); err != nil {
		release()
		return 0, err
	}
	deaf := pr.listen()
	out, err := do(c)
	deaf()
	still()
	pr.done()
	release()
	if err != nil {
		if runner.Stopped(err) { // as after an interrupt, what was measured has a report; a full disk may have no room for it
			if _, r, no := finish(c.Out); no == nil {
				pr.Message(pr.summary(r))
			}
		}
		return 0, asGiven(err, c.Out)
	}
	for _, folder := range out.Folders {
		a.leaves(folder)
	}
	secret := a.settleSecret(c, out)
	out.Message = resumeAsGiven(out.Message, c.Out)
	p, r, err := finish(c.Out)
	if err != nil {
		return 0, err
	}
	code := outcomeStatus(out, r)
	if a.json {
		b, err := json.Marshal(answer{r.Run, c.Out, out.Status, countCases(r), out.Message, foundRounds(r), out.Kept, secret, code})
		if err != nil {
			return 0, err
		}
		_, err = fmt.Fprintf(a.out, "%s\n", b)
		return code, err
	}
	if out.Complete {
		_, err = fmt.Fprintf(a.out, "%s\nreport: %s\n", printable(out.Message), printable(filepath.Join(c.Out, result.ReportFile)))
		return code, err
	}
	unsaid := a.render(p, r, "text") // what to do next is said all the same
	if text := foundRounds(r); text != "" {
		fmt.Fprintln(a.err, printable(text))
	}
	fmt.Fprintln(a.err, pr.summary(r))
	a.nameReport(c.Out)
	if out.Message != "" {
		fmt.Fprintln(a.err, printable(out.Message))
	}
	if len(out.Kept) > 0 {
		fmt.Fprintln(a.err, "The images are kept until dmgbench clean. To open them:")
	}
	for _, k := range out.Kept {
		fmt.Fprintf(a.err, "  %s\n", printable(k))
	}
	if secret != "" {
		fmt.Fprintf(a.err, "The passphrase of those that are encrypted is in %s\n", printable(secret))
	}
	return code, unsaid
}

// nameReport says where the report of a run is and what prints the rest of it.
func (a *app) nameReport(dir string) {
	fmt.Fprintf(a.err, "report: %s\n", printable(filepath.Join(dir, result.ReportFile)))
	if !a.verbose {
		fmt.Fprintf(a.err, "all figures: dmgbench report %s --verbose\n", printable(quoted(dir)))
	}
}

// asGiven names the run folder in an error and its hint as the user did.
func asGiven(err error, dir string) error {
	if e, ok := errors.AsType[*result.Error](err); ok {
		e.Hint = resumeAsGiven(e.Hint, dir)
		if abs, no := filepath.Abs(dir); no == nil && e.File == abs {
			e.File = dir
		}
	}
	return err
}

// resumeAsGiven names the run folder as the user did in a command that goes on
// with it; texts of the journal have no path at all.
func resumeAsGiven(text, dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return text
	}
	for _, flag := range []string{"", "--keep ", "--retry-failed "} {
		for _, path := range []string{abs, "<run>"} {
			text = strings.ReplaceAll(text, "dmgbench resume "+flag+path, "dmgbench resume "+flag+quoted(dir))
		}
	}
	return text
}

// outcomeStatus is the exit status of a run that ended without an error of its own.
func outcomeStatus(o runner.Outcome, r *result.Result) int {
	switch o.Status {
	case runner.StatusInterrupted, runner.StatusPaused:
		return exitInterrupted
	case runner.StatusFailed, runner.StatusSkipped:
		return exitCases
	}
	return verdict(r)
}

// quoted is a path as a shell and a command take it; plain ones stay as they are.
func quoted(path string) string {
	if strings.HasPrefix(path, "-") { // or it would be a flag
		path = "./" + path
	}
	odd := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-+=.,:/@%", r))
	}
	if path != "" && !strings.ContainsFunc(path, odd) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
