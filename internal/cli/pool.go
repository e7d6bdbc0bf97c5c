package cli

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
	"dmgbench/internal/report"
	"dmgbench/internal/result"
)

// pool judges several runs of one plan together, the earliest first whatever order
// they are given in. With out, result.json and report.html go to that folder, which
// must not exist or be empty.
func pool(dirs []string, out string) (*plan.Plan, *result.Result, error) {
	var p *plan.Plan
	var runs []*result.Result
	for _, dir := range dirs {
		d, err := result.OpenRun(dir)
		if err != nil {
			return nil, nil, err
		}
		own, r, err := folded(d)
		d.Close()
		if err != nil {
			return nil, nil, fmt.Errorf("reading run %q: %w", dir, err)
		}
		p, runs = own, append(runs, r)
	}
	slices.SortStableFunc(runs, func(a, b *result.Result) int {
		return cmp.Or(began(a).Compare(began(b)), cmp.Compare(a.Run, b.Run))
	})
	r, err := result.Pool(runs)
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

func began(r *result.Result) time.Time {
	if len(r.Sessions) == 0 {
		return time.Time{}
	}
	return r.Sessions[0].Started
}

// writePooled makes the folder of a pooled report. Nothing is ever written over.
func writePooled(p *plan.Plan, r *result.Result, out string) error {
	var page bytes.Buffer
	if err := report.HTML(&page, p, r); err != nil {
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
		if err := writeNew(path, f.data); err != nil {
			err = fmt.Errorf("writing %q: %w", path, err)
			if errors.Is(err, fs.ErrExist) {
				return &hintedError{err, "nothing is written over: give a new folder to --out"}
			}
			return err
		}
	}
	return nil
}
