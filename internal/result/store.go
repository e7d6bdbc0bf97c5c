package result

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"dmgbench/internal/system/hostio"
)

// MarshalIndent completes the result and returns the content of result.json.
// Equal results give equal bytes: fields have a fixed order, and a missing list
// is []. A number that JSON cannot represent is an error that names it.
func (r *Result) MarshalIndent() ([]byte, error) {
	err := complete(r)
	var b []byte
	if err == nil {
		b, err = json.MarshalIndent(r, "", "  ")
	}
	if err != nil {
		return nil, fmt.Errorf("encoding the result: %w", err)
	}
	return append(b, '\n'), nil
}

// CheckFinite fails if a number of the result is not finite, and names the
// number.
func (r *Result) CheckFinite() error { return complete(r) }

// WriteResult writes result.json, and summary.json with the part that lists of
// runs show. It ignores an error of the latter: without it, lists read
// result.json.
func (d *RunDir) WriteResult(r *Result) error {
	b, err := r.MarshalIndent()
	if err != nil {
		return err
	}
	if err := d.WriteFile(ResultFile, b); err != nil {
		return err
	}
	c := *r // summarize changes the lists of its argument
	s := summaryFile{SchemaVersion, digestOf(b), summarize(&c)}
	if complete(s.Summary) == nil {
		if b, err := json.Marshal(s); err == nil {
			_ = d.WriteFile(SummaryFile, b)
		}
	}
	return nil
}

// ReadResult reads a result. path is a run folder or a result.json, or a link to
// one.
func ReadResult(path string) (*Result, error) {
	if fi, err := os.Stat(path); err == nil && fi.IsDir() {
		path = filepath.Join(path, ResultFile)
	}
	var b []byte
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		var dir *hostio.Dir
		if dir, err = hostio.OpenDir(filepath.Dir(real)); err == nil {
			defer dir.Close()
			b, err = dir.ReadFile(filepath.Base(real), maxFile)
		}
	}
	if err != nil {
		return nil, &Error{Doing: "reading result", File: path, Err: withoutPath(err),
			Hint: "give a run folder, or its result.json"}
	}
	return ParseResult(path, b)
}

const hintRemake = "it is damaged, or not a result.json; `dmgbench report` on the run folder makes it again"

// ParseResult decodes a result.json; name is used in errors. It ignores unknown
// fields, since changes of the format are additive.
func ParseResult(name string, data []byte) (*Result, error) {
	fail := func(err error, hint string) (*Result, error) {
		return nil, &Error{Doing: "reading result", File: name, Err: err, Hint: hint}
	}
	var r Result
	if err := json.Unmarshal(data, &r); err != nil {
		return fail(err, hintRemake)
	}
	if r.Schema != SchemaVersion {
		return fail(fmt.Errorf("schema %d, this program knows %d: %w", r.Schema, SchemaVersion, errSchema),
			"it was written by another version of dmgbench: use that one; or it is not a result.json")
	}
	for i, c := range r.Cases {
		if err := oneOf("status", c.Status, Done, Skipped, Failed, Discarded); err != nil {
			return fail(fmt.Errorf("cases[%d]: %w", i, err), hintRemake)
		}
	}
	return &r, complete(&r)
}

// Sources are the SHA-256 of the files that a result was made from.
type Sources struct {
	Plan    string `json:"plan"`
	Journal string `json:"journal"`
}

// Sources are the digests of plan.toml and journal.jsonl as they are now.
func (d *RunDir) Sources() (*Sources, error) {
	plan, err := d.ReadFile(PlanFile, maxFile)
	if err != nil {
		return nil, err
	}
	journal, err := d.ReadFile(JournalFile, maxFile)
	return &Sources{Plan: digestOf(plan), Journal: digestOf(journal)}, err
}

// digestOf is the SHA-256 in hexadecimal.
func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Outdated reports whether plan or journal in the run folder dir have changed
// since r, its result.json, was made, also if r does not name its sources. It is
// false for a folder without a journal, which contains only a result, such as a
// pooled one, and for one without a plan, which cannot be analysed again.
func Outdated(dir string, r *Result) (bool, error) {
	d, err := openDir(dir)
	if err != nil {
		return false, &Error{Doing: "opening run folder", File: dir, Err: err}
	}
	defer d.Close()
	now, err := d.Sources()
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && (r.Sources == nil || *now != *r.Sources), err
}

// summaryFile is the content of summary.json: the part of a result.json that
// lists of many runs show; the whole may be a hundred times as long. It is used
// only while its digest is that of result.json.
type summaryFile struct {
	Schema  int     `json:"schema"`
	Digest  string  `json:"result_sha256"`
	Summary *Result `json:"summary"`
}

// ReadSummary reads from a run folder what lists of many runs show. Of the
// cases that is ID, status, reason, target and whether they are the baseline.
// Of the summaries it is the headline estimate, with the published figures and
// warnings: of rates, of sizes on disk and of quantities with published
// figures, or of all if the run has no rate. Claims, sessions, departures and
// warnings are complete; fits, relations and tables are omitted.
//
// Without a result.json it reads the journal; then there are neither summaries
// nor claims.
func ReadSummary(dir string) (*Result, error) {
	d, err := openDir(dir)
	if err != nil {
		return nil, &Error{Doing: "opening run folder", File: dir, Err: err}
	}
	defer d.Close()
	var r *Result
	b, err := d.ReadFile(ResultFile, maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r, err = d.Fold()
	case err == nil:
		var f summaryFile
		short, unread := d.ReadFile(SummaryFile, maxFile)
		if unread == nil && json.Unmarshal(short, &f) == nil && f.Schema == SchemaVersion && f.Summary != nil &&
			f.Digest == digestOf(b) && complete(f.Summary) == nil {
			return f.Summary, nil
		}
		r, err = ParseResult(ResultFile, b)
	}
	if err != nil {
		return nil, err
	}
	return summarize(r), nil
}

// summarize replaces the lists of r by those that [ReadSummary] returns.
func summarize(r *Result) *Result {
	cases := make([]Case, len(r.Cases))
	for i, c := range r.Cases {
		cases[i] = Case{ID: c.ID, Status: c.Status, Baseline: c.Baseline, Reason: c.Reason, Target: c.Target}
	}
	all, main := []Summary{}, []Summary{}
	rates := false
	for _, s := range r.Summaries {
		i := slices.IndexFunc(s.Estimates, func(e Estimate) bool { return e.Name == s.Headline })
		if i < 0 {
			continue
		}
		s.Bytes, s.Departures, s.BySession, s.Estimates = 0, nil, nil, s.Estimates[i:i+1]
		all = append(all, s)
		if rate := s.Estimates[0].Unit == "B/s"; rate || s.Op == "allocated" || len(s.Published) > 0 {
			main, rates = append(main, s), rates || rate
		}
	}
	if rates {
		all = main
	}
	r.Cases, r.Summaries, r.Fits, r.Relations, r.Tables = cases, all, []Fit{}, []Relation{}, nil
	return r
}
