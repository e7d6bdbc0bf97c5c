package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// MarshalIndent is the content of result.json. Equal results give equal bytes:
// fields stand in a fixed order, and a missing list is []. A number that JSON
// cannot hold is an error that names it.
func (r *Result) MarshalIndent() ([]byte, error) {
	if where := notFinite(r); where != "" {
		return nil, fmt.Errorf("encoding the result: %s is not a finite number", where)
	}
	b, err := json.MarshalIndent(complete(r), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the result: %w", err)
	}
	return append(b, '\n'), nil
}

// WriteResult puts the result into the run folder dir.
func (r *Result) WriteResult(dir string) error {
	d, err := OpenRun(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.WriteResult(r), d.Close())
}

// WriteResult puts the result into the folder as result.json, and what lists of runs show of it as
// summary.json. An error of the latter is no error of this: without it result.json is read whole.
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

// ReadResult reads a result: path is a run folder or a result.json.
func ReadResult(path string) (*Result, error) {
	fi, err := os.Stat(path)
	if err == nil && fi.IsDir() {
		path = filepath.Join(path, ResultFile)
		fi, err = os.Stat(path)
	}
	hint := "give a run folder, or the result.json out of one"
	if err == nil && !fi.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		return nil, &Error{Doing: "reading result", File: path, Err: bare(err), Hint: hint}
	}
	b, err := readBounded(path, maxFile)
	if err != nil {
		return nil, &Error{Doing: "reading result", File: path, Err: bare(err), Hint: hint}
	}
	return ParseResult(path, b)
}

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

// ParseResult decodes a result.json; name stands in errors. Fields that it does
// not know are ignored, since changes of the format are additive.
func ParseResult(name string, data []byte) (*Result, error) {
	fail := func(err error, hint string) (*Result, error) {
		return nil, &Error{Doing: "reading result", File: name, Line: lineOf(data, err), Err: err, Hint: hint}
	}
	var r Result
	if err := json.Unmarshal(data, &r); err != nil {
		return fail(err, "it is damaged, or no result.json; `dmgbench report` on the run folder makes it again")
	}
	switch {
	case r.Schema == 0:
		return fail(errors.New(`no "schema" in it`), "it is no result.json of dmgbench")
	case r.Schema != SchemaVersion:
		return fail(fmt.Errorf("schema %d, this program knows %d: %w", r.Schema, SchemaVersion, errSchema),
			"it was written by another version of dmgbench: use that one")
	}
	for i, c := range r.Cases {
		if err := oneOf("status", c.Status, Done, Skipped, Failed, Discarded); err != nil {
			return fail(fmt.Errorf("cases[%d]: %w", i, err), "it is damaged; `dmgbench report` on the run folder makes it again")
		}
	}
	return complete(&r), nil
}

// lineOf is the line that a JSON error is about, 0 if it is about none.
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
