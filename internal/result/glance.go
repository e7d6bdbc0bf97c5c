package result

import (
	"bytes"
	"errors"
	"io/fs"
)

// Glance reads of a run folder what a list of runs shows: a [Result] whose cases
// have their id, status and whether they are the baseline, and nothing else. Of
// a result.json as this program writes it the steps are passed over without being
// decoded, which makes a thousand runs quick; one of another form is read in full.
// Without a result.json the journal is read, and there are neither summaries nor verdicts.
func Glance(dir string) (*Result, error) {
	d, err := openDir(dir)
	if err != nil {
		return nil, &Error{Doing: "opening run folder", File: dir, Err: err}
	}
	defer d.Close()
	b, err := d.ReadFile(ResultFile, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return d.glanceJournal()
	}
	if err != nil {
		return nil, &Error{Doing: "reading result", File: ResultFile, Err: errors.Unwrap(err)}
	}
	r, err := ParseResult(ResultFile, withoutSteps(b))
	if err != nil {
		r, err = ParseResult(ResultFile, b) // of another form; and if damaged, the line is that of the file
	}
	if err != nil {
		return nil, err
	}
	return bareCases(r), nil
}

func (d *RunDir) glanceJournal() (*Result, error) {
	recs, err := d.Journal()
	if err != nil {
		return nil, err
	}
	r, err := Fold(recs)
	if err != nil {
		return nil, err
	}
	return bareCases(r), nil
}

func bareCases(r *Result) *Result {
	for i, c := range r.Cases {
		r.Cases[i] = Case{ID: c.ID, Status: c.Status, Baseline: c.Baseline}
	}
	return r
}

// withoutSteps takes everything out of the cases but what [Glance] gives. It goes
// by the indentation that [Result.MarshalIndent] writes: JSON has no line break
// inside a string, so that a line's indentation says how deep it is.
func withoutSteps(b []byte) []byte {
	const opening, closing = "\n  \"cases\": [\n", "\n  ]"
	from := bytes.Index(b, []byte(opening))
	if from < 0 {
		return b
	}
	from += len(opening) - 1
	n := bytes.Index(b[from:], []byte(closing))
	if n < 0 {
		return b
	}
	out := append(make([]byte, 0, len(b)-n+4096), b[:from]...)
	out = append(out, briefCases(b[from:from+n])...)
	return append(out, b[from+n:]...)
}

// briefCases keeps the lines of id, baseline and status, which stand at a case's own depth.
func briefCases(b []byte) []byte {
	const key, first = "\n      \"", `"id":`
	var out []byte
	for {
		at := bytes.Index(b, []byte(key))
		if at < 0 {
			break
		}
		b = b[at+len(key)-1:]
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			break
		}
		line := bytes.TrimSuffix(b[:end], []byte(","))
		switch {
		case bytes.HasPrefix(line, []byte(first)) && out != nil:
			out = append(append(out, "},{"...), line...)
		case bytes.HasPrefix(line, []byte(first)):
			out = append(append(out, '{'), line...)
		case out != nil && (bytes.HasPrefix(line, []byte(`"baseline":`)) || bytes.HasPrefix(line, []byte(`"status":`))):
			out = append(append(out, ','), line...)
		}
		b = b[end:]
	}
	if out == nil {
		return nil
	}
	return append(out, '}')
}
