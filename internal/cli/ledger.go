package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dmgbench/internal/analysis"
	"dmgbench/internal/report"
	"dmgbench/internal/report/text"
	"dmgbench/internal/result"
)

// ledger is the verdicts of all runs below a folder. What cannot be read is
// listed and keeps no other run out.
func (a *app) ledger(dir string) (*analysis.Ledger, error) {
	at, err := folderOf(dir)
	if err != nil {
		return nil, err
	}
	runs, lost, err := readBelow(at, func(path string) (analysis.LedgerRun, error) {
		r, err := a.readVerdicts(path)
		if err != nil {
			return analysis.LedgerRun{}, err
		}
		r.Cases, r.Summaries = nil, nil // a ledger of a thousand runs holds their verdicts only
		run := analysis.LedgerRun{Result: r, Name: relative(at, path)}
		if _, err := os.Stat(filepath.Join(path, result.ReportFile)); err == nil {
			run.Path = relative(at, filepath.Join(path, result.ReportFile))
		}
		return run, nil
	})
	if err != nil {
		return nil, err
	}
	if len(runs) == 0 {
		err := fmt.Errorf("reading folder %q: no run is below it", dir)
		if len(lost) > 0 {
			err = fmt.Errorf("%w that can be read: %s", err, strings.Join(lost, "; "))
		}
		return nil, &hintedError{err, "give a folder that holds run folders, such as runs"}
	}
	// Of two copies of one run the first counts: rather the one that has a report.
	slices.SortStableFunc(runs, func(a, b analysis.LedgerRun) int { return cmp.Compare(min(len(b.Path), 1), min(len(a.Path), 1)) })
	l := analysis.NewLedger(runs)
	l.LeftOut = append(l.LeftOut, lost...)
	return l, nil
}

// readVerdicts is what a ledger shows of a run: of its result.json, or of what plan
// and journal of an unfinished run say so far.
func (a *app) readVerdicts(path string) (*result.Result, error) {
	if !hasResult(path) {
		return soFar(path)
	}
	return a.upToDate(path, result.ReadSummary)
}

func (a *app) runLedger(o reportOptions) error {
	l, err := a.ledger(o.Ledger)
	if err != nil {
		return err
	}
	switch o.Format {
	case "html":
		return report.LedgerHTML(a.out, l)
	case "markdown":
		return text.DocumentMarkdown(a.out, report.LedgerDocument(l))
	}
	return text.Document(a.out, report.LedgerDocument(l), a.textOptions())
}

var errLedgerRuns = errors.New("--ledger takes the runs below its folder, and no others")
