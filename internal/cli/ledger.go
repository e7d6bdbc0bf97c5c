package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"dmgbench/internal/analysis"
	"dmgbench/internal/report"
	"dmgbench/internal/result"
)

// ledger is the verdicts of all runs below a folder. What cannot be read is
// listed and keeps no other run out.
func ledger(dir string) (*analysis.Ledger, error) {
	var runs []analysis.LedgerRun
	var lost []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			if path == dir {
				return err
			}
			lost = append(lost, fmt.Sprintf("%s: %v", relative(dir, path), err))
			return nil
		}
		if !e.IsDir() || !holdsRun(path) {
			return nil
		}
		r, err := readRun(path)
		if err != nil {
			lost = append(lost, fmt.Sprintf("%s: %v", relative(dir, path), err))
			return fs.SkipDir
		}
		r.Cases, r.Summaries = nil, nil // a ledger of a thousand runs holds their verdicts only
		run := analysis.LedgerRun{Result: r}
		if _, err := os.Stat(filepath.Join(path, result.ReportFile)); err == nil {
			run.Path = relative(dir, filepath.Join(path, result.ReportFile))
		}
		runs = append(runs, run)
		return fs.SkipDir
	})
	if err != nil {
		return nil, fmt.Errorf("reading folder %q: %w", dir, err)
	}
	if len(runs) == 0 {
		err := fmt.Errorf("reading folder %q: no run is below it", dir)
		if len(lost) > 0 {
			err = fmt.Errorf("%w that can be read: %s", err, strings.Join(lost, "; "))
		}
		return nil, &hintedError{err, "give a folder that holds run folders, such as runs"}
	}
	l := analysis.NewLedger(runs)
	l.LeftOut = append(l.LeftOut, lost...)
	return l, nil
}

func holdsRun(dir string) bool {
	for _, name := range []string{result.ResultFile, result.JournalFile} {
		if fi, err := os.Lstat(filepath.Join(dir, name)); err == nil && fi.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// relative is a path from the folder of the ledger, with slashes.
func relative(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(path)
}

func (a *app) runLedger(o reportOptions) error {
	l, err := ledger(o.Ledger)
	if err != nil {
		return err
	}
	switch o.Format {
	case "html":
		return report.LedgerHTML(a.out, l)
	case "markdown":
		return report.LedgerMarkdown(a.out, l)
	}
	return report.LedgerText(a.out, l, a.textOptions())
}

var errLedgerRuns = errors.New("--ledger takes the runs below its folder, and no others")
