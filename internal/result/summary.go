package result

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"sync"
)

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
// nor claims. It may be called from several goroutines; each call has one file
// in memory.
func ReadSummary(dir string) (*Result, error) {
	d, err := openDir(dir)
	if err != nil {
		return nil, &Error{Doing: "opening run folder", File: dir, Err: err}
	}
	defer d.Close()
	buf := fileBuffers.Get().(*bytes.Buffer)
	defer fileBuffers.Put(buf)
	err = d.readInto(buf, ResultFile, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		recs, err := d.Journal()
		if err != nil {
			return nil, err
		}
		r, err := Fold(recs)
		if err != nil {
			return nil, err
		}
		return summarize(r), nil
	}
	if err != nil {
		return nil, &Error{Doing: "reading result", File: ResultFile, Err: errors.Unwrap(err)}
	}
	if r := d.readSummaryFile(buf.Bytes()); r != nil {
		return r, nil
	}
	r, err := ParseResult(ResultFile, buf.Bytes())
	if err != nil {
		return nil, err
	}
	return summarize(r), nil
}

// fileBuffers are buffers for one file each; decoding copies from them.
var fileBuffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// readSummaryFile reads summary.json, nil unless it belongs to the result.json
// with this content.
func (d *RunDir) readSummaryFile(result []byte) *Result {
	b, err := d.ReadFile(SummaryFile, maxFile)
	if err != nil {
		return nil
	}
	var f summaryFile
	if json.Unmarshal(b, &f) != nil || f.Schema != SchemaVersion || f.Summary == nil || f.Digest != digestOf(result) {
		return nil
	}
	whole, err := complete(f.Summary)
	if err != nil {
		return nil
	}
	return whole
}

// encodeSummary is the content of summary.json for a result and its encoded
// form.
func encodeSummary(r *Result, encoded []byte) ([]byte, error) {
	c := *r // summarize changes the lists of its argument
	whole, err := complete(summarize(&c))
	if err != nil {
		return nil, err
	}
	return json.Marshal(summaryFile{SchemaVersion, digestOf(encoded), whole})
}

// digestOf is the SHA-256 in hexadecimal.
func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// rateUnit is the unit of rates, sizeOnDisk the quantity of a container's size
// on the host.
const (
	rateUnit   = "B/s"
	sizeOnDisk = "allocated"
)

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
		if rate := s.Estimates[0].Unit == rateUnit; rate || s.Op == sizeOnDisk || len(s.Published) > 0 {
			main, rates = append(main, s), rates || rate
		}
	}
	if rates {
		all = main
	}
	r.Cases, r.Summaries, r.Fits, r.Relations, r.Tables = cases, all, []Fit{}, []Relation{}, nil
	return r
}
