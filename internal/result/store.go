package result

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"dmgbench/internal/system/hostio"
)

// MarshalLine completes the result and returns the content of result.json: one
// line, since a result may have 100,000s of samples. Equal results give equal
// bytes: fields have a fixed order, and a missing list is []. A number that JSON
// cannot represent is an error that names it.
func (r *Result) MarshalLine() ([]byte, error) {
	if err := complete(r); err != nil {
		return nil, fmt.Errorf("encoding the result: %w", err)
	}
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(r); err != nil {
		return nil, fmt.Errorf("encoding the result: %w", err)
	}
	return b.Bytes(), nil
}

// MarshalIndent is the same for people to read.
func (r *Result) MarshalIndent() ([]byte, error) {
	line, err := r.MarshalLine()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = json.Indent(&b, line, "", "  ")
	return b.Bytes(), err
}

// CheckFinite fails if a number of the result is not finite, and names the
// number.
func (r *Result) CheckFinite() error { return complete(r) }

// WriteResult writes result.json, and summary.json with the part that lists of
// runs show. It ignores an error of the latter: without it, lists read
// result.json.
func (d *RunDir) WriteResult(r *Result) error {
	b, err := r.MarshalLine()
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
	f, err := openResult(path)
	if err != nil {
		return nil, &Error{Doing: "reading result", File: path, Err: withoutPath(err),
			Hint: "give a run folder, or its result.json"}
	}
	defer f.Close()
	return ParseResult(path, io.NewSectionReader(f, 0, maxFile))
}

// openResult opens a result.json, or what a link of that name leads to.
func openResult(path string) (*hostio.File, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	dir, err := hostio.OpenDir(filepath.Dir(real))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	f, _, err := dir.OpenSmall(filepath.Base(real), maxFile)
	return f, err
}

const hintRemake = "it is damaged, or not a result.json; `dmgbench report` on the run folder makes it again"

// decodeJSON decodes a file with one value. It reads only up to the first byte
// that is no JSON, whatever the length of the file is.
func decodeJSON(r io.Reader, v any) error {
	d := json.NewDecoder(r)
	err := d.Decode(v)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("unexpected end of its JSON")
	}
	if err != nil {
		return err
	}
	_, err = d.Token()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil {
		return errors.New("there is more after its end")
	}
	return err
}

// ParseResult decodes a result.json; name is used in errors. It ignores unknown
// fields, since changes of the format are additive.
func ParseResult(name string, data io.Reader) (*Result, error) {
	fail := func(err error, hint string) (*Result, error) {
		return nil, &Error{Doing: "reading result", File: name, Err: err, Hint: hint}
	}
	var r Result
	if err := decodeJSON(data, &r); err != nil {
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
	plan, err := d.digest(PlanFile, maxFile)
	if err != nil {
		return nil, err
	}
	journal, err := d.digest(JournalFile, maxFile)
	return &Sources{Plan: plan, Journal: journal}, err
}

// digest is the SHA-256 of a file that has at most limit bytes, in hexadecimal.
func (d *RunDir) digest(name string, limit int64) (string, error) {
	f, err := d.open(name, limit)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, limit)); err != nil {
		return "", &Error{Doing: "reading", File: name, Err: withoutPath(err)}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// digestOf is the same of bytes.
func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Outdated reports whether r, the result.json in the run folder dir, is not what
// was made of the plan and journal there: these have changed since, or r does
// not name them, or result.json itself has changed since summary.json was
// written. It is false for a folder without a journal, which contains only a
// result, such as a pooled one, and for one without a plan, which cannot be
// analysed again.
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
	if err != nil || r.Sources == nil || *now != *r.Sources {
		return err == nil, err
	}
	s := d.readSummary()
	return s != nil && !d.isSummarized(s), nil
}

// summaryFile is the content of summary.json: the part of a result.json that
// lists of many runs show; the whole may be a hundred times as long. Digest is
// that of result.json.
type summaryFile struct {
	Schema  int     `json:"schema"`
	Digest  string  `json:"result_sha256"`
	Summary *Result `json:"summary"`
}

// readSummary reads summary.json; nil if there is none that this version can
// read.
func (d *RunDir) readSummary() *summaryFile {
	f, err := d.open(SummaryFile, maxSummary)
	if err != nil {
		return nil
	}
	defer f.Close()
	var s summaryFile
	err = decodeJSON(io.NewSectionReader(f, 0, maxSummary), &s)
	if err != nil || s.Schema != SchemaVersion || s.Summary == nil || complete(s.Summary) != nil {
		return nil
	}
	return &s
}

// isSummarized reports whether result.json is the one that s was made of.
func (d *RunDir) isSummarized(s *summaryFile) bool {
	sum, err := d.digest(ResultFile, maxFile)
	return err == nil && s.Digest == sum
}

// CurrentSummary is what [ReadSummary] returns, if summary.json is of the plan,
// journal and result.json that are in the folder now; else nil. Where it is
// newer than these it reads none of them, as there may be thousands of runs in a
// list: a change that keeps the time of a file is not noticed.
func CurrentSummary(dir string) *Result {
	d, err := openDir(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	s := d.readSummary()
	if s == nil {
		return nil
	}
	if d.isNewest(SummaryFile) {
		return s.Summary
	}
	now, err := d.Sources()
	if err != nil || s.Summary.Sources == nil || *now != *s.Summary.Sources || !d.isSummarized(s) {
		return nil
	}
	return s.Summary
}

// isNewest reports whether a file is newer than all that the run consists of.
func (d *RunDir) isNewest(name string) bool {
	own, err := d.dir.Lstat(name)
	if err != nil {
		return false
	}
	for _, of := range []string{PlanFile, JournalFile, ResultFile} {
		fi, err := d.dir.Lstat(of)
		if err != nil || !fi.Mode().IsRegular() || !fi.ModTime().Before(own.ModTime()) {
			return false
		}
	}
	return true
}

// ReadSummary reads from a run folder what lists of many runs show. Of the
// cases that is ID, status, reason, target and whether they are the baseline,
// and in an unfinished run how their rounds ended. Of the summaries it is the headline estimate, with the published figures and
// warnings: of rates, of sizes on disk and of quantities with published
// figures, or of all if the run has no rate. Claims, sessions, departures and
// warnings are complete; fits, relations, tables and verbs are omitted.
//
// Without a result.json it reads the journal; then there are neither summaries
// nor claims.
func ReadSummary(dir string) (*Result, error) {
	d, err := openDir(dir)
	if err != nil {
		return nil, &Error{Doing: "opening run folder", File: dir, Err: err}
	}
	defer d.Close()
	if s := d.readSummary(); s != nil && d.isSummarized(s) {
		return s.Summary, nil
	}
	r, err := d.readResult()
	if err != nil {
		return nil, err
	}
	return summarize(r), nil
}

// readResult reads result.json, and without one the journal.
func (d *RunDir) readResult() (*Result, error) {
	f, err := d.open(ResultFile, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return d.Fold()
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ParseResult(ResultFile, io.NewSectionReader(f, 0, maxFile))
}

// summarize replaces the lists of r by those that [ReadSummary] returns.
func summarize(r *Result) *Result {
	cases := make([]Case, len(r.Cases))
	for i, c := range r.Cases {
		cases[i] = Case{ID: c.ID, Status: c.Status, Baseline: c.Baseline, Reason: c.Reason, Target: c.Target}
		if r.Status == Unfinished { // a list shows how much is done
			cases[i].Rounds = c.Rounds
		}
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
	r.Cases, r.Summaries, r.Fits, r.Relations, r.Tables, r.Verbs = cases, all, []Fit{}, []Relation{}, nil, nil
	return r
}
