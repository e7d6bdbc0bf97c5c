// Package runfolders reads run folders: it computes the result of a run from
// its plan and its journal, pools the runs of one plan, finds all runs below a
// folder and keeps the list of baselines.
//
// A result follows from plan.toml and journal.jsonl alone. Because result.json
// and summary.json are copies of it, a [Reader] uses them only while they are
// newer than the two files. The package neither measures nor prints.
package runfolders

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dmgbench/internal/analysis"
	"dmgbench/internal/plan"
	"dmgbench/internal/report/html"
	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
)

// readPlan reads the plan of a result from an open folder.
func readPlan(read func(name string, limit int64) ([]byte, error), r *result.Result) (*plan.Plan, error) {
	text, err := read(result.PlanFile, plan.MaxSize)
	if err != nil {
		return nil, err
	}
	p, problems := plan.Parse(r.Plan.Name+".toml", text)
	if len(problems.Errors()) > 0 {
		return nil, problems
	}
	if !p.Is(r.Plan.Digest, text) {
		return nil, &result.Error{Doing: "reading plan", File: result.PlanFile,
			Err:  errors.New("it is not the plan that the journal names"),
			Hint: "the journal was measured by another plan: put the run's own plan.toml back"}
	}
	return p, nil
}

// use calls do with an opened run folder, its plan and its result, which has no
// conclusions yet.
func use(dir string, do func(*result.RunDir, *plan.Plan, *result.Result) error) (*plan.Plan, *result.Result, error) {
	d, err := result.OpenRun(dir)
	if err != nil {
		return nil, nil, err
	}
	defer d.Close()
	// The digests come first: records that a running session appends later make
	// the result outdated. Errors of the files themselves are reported before
	// an error of the digests, as they have hints.
	sources, unread := d.Sources()
	r, err := d.Fold()
	if err != nil {
		return nil, nil, err
	}
	r.Sources = sources
	for _, w := range d.Warnings() {
		if w.Kind != "lock" { // a lock is a fact of this moment, a torn line one of the journal
			r.Warnings = append(r.Warnings, w)
		}
	}
	p, err := readPlan(d.ReadFile, r)
	if err = cmp.Or(err, unread); err != nil {
		return nil, nil, err
	}
	return p, r, do(d, p, r)
}

// Analyze computes the result of a run folder. Equal files give an equal result
// on every machine.
func Analyze(dir string) (*plan.Plan, *result.Result, error) {
	return use(dir, func(_ *result.RunDir, p *plan.Plan, r *result.Result) error {
		return analysis.Analyze(p, r, analysis.Options{})
	})
}

// Read reads a run folder. Its result has no conclusions.
func Read(dir string) (*plan.Plan, *result.Result, error) {
	return use(dir, func(*result.RunDir, *plan.Plan, *result.Result) error { return nil })
}

// Update computes the result of a run folder and writes result.json,
// summary.json and report.html.
func Update(dir string) (*plan.Plan, *result.Result, error) {
	return use(dir, func(d *result.RunDir, p *plan.Plan, r *result.Result) error {
		if err := analysis.Analyze(p, r, analysis.Options{}); err != nil {
			return err
		}
		// It also completes the result, so that from here on nothing changes it.
		if err := r.CheckFinite(); err != nil {
			return err
		}
		var page bytes.Buffer
		drawn := make(chan error, 1)
		go func() { drawn <- html.Run(&page, p, r) }()
		written := d.WriteResult(r)
		if err := <-drawn; err != nil || written != nil {
			return errors.Join(written, err)
		}
		return d.WriteFile(result.ReportFile, page.Bytes())
	})
}

// State replays the journal of a run folder: which cases have ended, the pause,
// the sessions and their engines.
func State(dir string) (*result.State, error) {
	d, err := result.OpenRun(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.State()
}

// Plan reads the plan that a run executed, nil where its folder does not have
// it. path is a run folder or the result.json in it.
func Plan(path string, r *result.Result) *plan.Plan {
	if fi, err := os.Stat(path); err == nil && !fi.IsDir() {
		path = filepath.Dir(path)
	}
	d, err := hostio.OpenDir(path)
	if err != nil {
		return nil
	}
	defer d.Close()
	p, _ := readPlan(d.ReadFile, r)
	return p
}

// Reader reads results, from result.json or summary.json where these belong to
// plan and journal, and by analysis otherwise. The zero value is ready to use.
type Reader struct {
	Outdated func(dir string) // called once for each folder whose result.json was not used

	outdated []string // these folders
}

// Result is the whole result of a run folder or of a result.json. The error
// names path.
func (rd *Reader) Result(path string) (*result.Result, error) {
	if fi, err := os.Stat(path); err != nil || !fi.IsDir() {
		return result.ReadResult(path)
	}
	r, err := rd.read(path, result.ReadResult)
	if err != nil && !strings.Contains(err.Error(), path) {
		err = fmt.Errorf("reading run %q: %w", path, err)
	}
	return r, err
}

// read analyzes the run without a result.json.
func (rd *Reader) read(path string, read func(dir string) (*result.Result, error)) (*result.Result, error) {
	if _, err := os.Lstat(filepath.Join(path, result.ResultFile)); errors.Is(err, os.ErrNotExist) {
		_, r, err := Analyze(path)
		return r, err
	}
	return rd.current(path, read)
}

// current analyzes the run where plan or journal changed after result.json was
// written. Without a result.json, read falls back to the journal.
func (rd *Reader) current(path string, read func(dir string) (*result.Result, error)) (*result.Result, error) {
	r, err := read(path)
	if err != nil {
		return nil, err
	}
	if old, err := result.Outdated(path, r); err != nil || !old {
		return r, err
	}
	if _, r, err = Analyze(path); err != nil {
		return nil, err
	}
	rd.tellOutdated(path)
	return r, nil
}

// tellOutdated calls Outdated once for each folder.
func (rd *Reader) tellOutdated(path string) {
	if !slices.Contains(rd.outdated, path) && rd.Outdated != nil {
		rd.Outdated(path)
	}
	rd.outdated = append(rd.outdated, path)
}

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
		if err := writePooled(p, r, out); err != nil {
			return nil, nil, fmt.Errorf("writing the pooled report: %w", err)
		}
	}
	return p, r, nil
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
	text, err := r.MarshalLine()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	err = WriteNew(filepath.Join(out, result.PlanFile), p.Canonical())
	if err == nil {
		err = WriteNew(filepath.Join(out, result.ResultFile), text)
	}
	if err == nil {
		err = WriteNew(filepath.Join(out, result.ReportFile), page.Bytes())
	}
	return err
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
