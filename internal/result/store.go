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
	"time"
)

// MarshalIndent is the content of result.json. Equal results give equal bytes:
// fields have a fixed order, and a missing list is []. A number that JSON
// cannot represent is an error that names it.
func (r *Result) MarshalIndent() ([]byte, error) {
	var b []byte
	whole, err := complete(r)
	if err == nil {
		b, err = json.MarshalIndent(whole, "", "  ")
	}
	if err != nil {
		return nil, fmt.Errorf("encoding the result: %w", err)
	}
	return append(b, '\n'), nil
}

// CheckFinite fails if a number of the result is not finite, and names the
// number.
func (r *Result) CheckFinite() error {
	_, err := complete(r)
	return err
}

// WriteResult writes the result to the run folder dir.
func (r *Result) WriteResult(dir string) error {
	d, err := OpenRun(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.WriteResult(r), d.Close())
}

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
	if s, err := encodeSummary(r, b); err == nil {
		_ = d.WriteFile(SummaryFile, s)
	}
	return nil
}

// ReadResult reads a result. path is a run folder or a result.json.
func ReadResult(path string) (*Result, error) {
	fi, err := os.Stat(path)
	if err == nil && fi.IsDir() {
		path = filepath.Join(path, ResultFile)
		fi, err = os.Stat(path)
	}
	hint := "give a run folder, or its result.json"
	if err == nil && !fi.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		return nil, &Error{Doing: "reading result", File: path, Err: withoutPath(err), Hint: hint}
	}
	b, err := readBounded(path, maxFile)
	if err != nil {
		return nil, &Error{Doing: "reading result", File: path, Err: withoutPath(err), Hint: hint}
	}
	return ParseResult(path, b)
}

// readBounded reads a file of at most limit bytes.
func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("larger than %d bytes", limit)
	}
	return b, err
}

const hintRemake = "it is damaged, or not a result.json; `dmgbench report` on the run folder makes it again"

// ParseResult decodes a result.json; name is used in errors. It ignores unknown
// fields, since changes of the format are additive.
func ParseResult(name string, data []byte) (*Result, error) {
	fail := func(err error, hint string) (*Result, error) {
		return nil, &Error{Doing: "reading result", File: name, Line: lineOf(data, err), Err: err, Hint: hint}
	}
	var r Result
	if err := json.Unmarshal(data, &r); err != nil {
		return fail(err, hintRemake)
	}
	switch {
	case r.Schema == 0:
		return fail(errors.New(`it has no "schema"`), "it is not a result.json of dmgbench")
	case r.Schema != SchemaVersion:
		return fail(fmt.Errorf("schema %d, this program knows %d: %w", r.Schema, SchemaVersion, errSchema),
			"it was written by another version of dmgbench: use that one")
	}
	for i, c := range r.Cases {
		if err := oneOf("status", c.Status, Done, Skipped, Failed, Discarded); err != nil {
			return fail(fmt.Errorf("cases[%d]: %w", i, err), hintRemake)
		}
	}
	return complete(&r)
}

// lineOf is the line of a JSON error, 0 if it has none.
func lineOf(data []byte, err error) int {
	var at int64 = -1
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = e.Offset
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		at = e.Offset
	}
	if at < 0 || at > int64(len(data)) {
		return 0
	}
	return 1 + bytes.Count(data[:at], []byte("\n"))
}

// Sources are the SHA-256 of the files that a result was made from.
type Sources struct {
	Plan    string `json:"plan"`
	Journal string `json:"journal"`
}

// Sources are the digests of plan.toml and journal.jsonl as they are now.
func (d *RunDir) Sources() (*Sources, error) {
	plan, err := d.digest(PlanFile)
	if err != nil {
		return nil, err
	}
	journal, err := d.digest(JournalFile)
	return &Sources{Plan: plan, Journal: journal}, err
}

// digest is the SHA-256 of a file in hexadecimal.
func (d *RunDir) digest(name string) (string, error) {
	f, err := d.openRegular(name, os.O_RDONLY)
	if err != nil {
		return "", &Error{Doing: "reading", File: name, Err: withoutPath(err)}
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", &Error{Doing: "reading", File: name, Err: withoutPath(err)}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Outdated reports whether plan or journal in the run folder dir have changed
// since r, its result.json, was made. It is false for a folder without a
// journal, which contains only a result, such as a pooled one, and for one
// without a plan, which cannot be analysed again. Results of older versions do
// not name their sources: for them the modification times of the files decide.
func Outdated(dir string, r *Result) (bool, error) {
	d, err := openDir(dir)
	if err != nil {
		return false, &Error{Doing: "opening run folder", File: dir, Err: err}
	}
	defer d.Close()
	for _, name := range []string{PlanFile, JournalFile} {
		if _, err := d.root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
	}
	if r.Sources == nil {
		made := d.modified(ResultFile)
		return d.modified(JournalFile).After(made) || d.modified(PlanFile).After(made), nil
	}
	now, err := d.Sources()
	return err == nil && *now != *r.Sources, err
}

// modified is when a file was modified, the zero time if that is unknown.
func (d *RunDir) modified(name string) time.Time {
	fi, err := d.root.Lstat(name)
	if err != nil {
		return time.Time{}
	}
	return fi.ModTime()
}
