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

// summaryFile is the content of summary.json: what lists of many runs show of a result.json,
// which may be a hundred times as long. It is used only while its digest is that of result.json.
type summaryFile struct {
	Schema  int     `json:"schema"`
	Digest  string  `json:"result_sha256"`
	Summary *Result `json:"summary"`
}

// ReadSummary reads from a run folder what lists of many runs show. Of the cases these are
// ID, status, reason, target and whether they are the baseline. Of the summaries it is the headline
// estimate, with the published figures and warnings: those of rates, of sizes on disk and with
// published figures, or all where there is no rate. Claims, sessions, departures and warnings are
// whole; fits, relations and tables are left out.
//
// Without a result.json the journal is read, and there are neither summaries nor claims.
// It may be called from several goroutines; each call holds one file in memory.
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

// fileBuffers are buffers for one file each; what is decoded from them is copied.
var fileBuffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// readSummaryFile reads summary.json, nil unless it belongs to the result.json with this content.
func (d *RunDir) readSummaryFile(result []byte) *Result {
	b, err := d.ReadFile(SummaryFile, maxFile)
	if err != nil {
		return nil
	}
	var f summaryFile
	if json.Unmarshal(b, &f) != nil || f.Schema != SchemaVersion || f.Summary == nil || f.Digest != digestOf(result) {
		return nil
	}
	return complete(f.Summary)
}

// encodeSummary is the content of summary.json for a result and its encoded form.
func encodeSummary(r *Result, encoded []byte) ([]byte, error) {
	c := *r // summarize changes the lists of its argument
	return json.Marshal(summaryFile{SchemaVersion, digestOf(encoded), complete(summarize(&c))})
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// rateUnit is the unit of rates, sizeOnDisk the quantity of a container's size on the host.
const (
	rateUnit   = "B/s"
	sizeOnDisk = "allocated"
)

// summarize replaces the lists of r with what [ReadSummary] gives.
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
