package runfolders

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"dmgbench/internal/analysis"
	"dmgbench/internal/plan"
	"dmgbench/internal/report/html"
	"dmgbench/internal/result"
)

// Pool analyzes several runs of one plan together, in the order of their start
// whatever the order of dirs. With out, plan.toml, result.json and report.html
// are written to that folder, which is made; existing files are an error. The
// error matches [result.ErrNotPoolable] if the runs are not repetitions of one
// another.
func Pool(dirs []string, out string) (*plan.Plan, *result.Result, error) {
	var p *plan.Plan
	var list []*result.Result
	// The plans are equal, or result.Pool refuses the runs: the last one is
	// used.
	for _, dir := range dirs {
		own, r, err := use(dir, func(*result.RunDir, *plan.Plan, *result.Result) error { return nil })
		if err != nil {
			return nil, nil, fmt.Errorf("reading run %q: %w", dir, err)
		}
		p, list = own, append(list, r)
	}
	slices.SortStableFunc(list, func(a, b *result.Result) int {
		return cmp.Or(started(a).Compare(started(b)), cmp.Compare(a.Run, b.Run))
	})
	r, err := result.Pool(list)
	if err != nil {
		return nil, nil, err
	}
	if err := analysis.Analyze(p, r, analysis.Options{}); err != nil {
		return nil, nil, err
	}
	if out != "" {
		err = writePooled(p, r, out)
	}
	return p, r, err
}

// started is the start of the first session of a run, the zero time without
// one.
func started(r *result.Result) time.Time {
	if len(r.Sessions) == 0 {
		return time.Time{}
	}
	return r.Sessions[0].Started
}

// writePooled writes the three files of a pooled report. Such a folder has no
// journal, and its result names its runs.
func writePooled(p *plan.Plan, r *result.Result, out string) error {
	var page bytes.Buffer
	if err := html.Run(&page, p, r); err != nil {
		return err
	}
	text, err := r.MarshalIndent()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		data []byte
	}{{result.PlanFile, p.Canonical()}, {result.ResultFile, text}, {result.ReportFile, page.Bytes()}} {
		path := filepath.Join(out, f.name)
		if err := WriteNew(path, f.data); err != nil {
			hint := ""
			if errors.Is(err, fs.ErrExist) {
				hint = "files are never replaced: give a new folder to --out"
			}
			return &result.Error{Doing: "writing", File: path, Err: err, Hint: hint}
		}
	}
	return nil
}

// WriteNew makes a file; the error matches fs.ErrExist where there is one of
// that name.
func WriteNew(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
