package result

import (
	"encoding/csv"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Tables that csv can be asked for.
var Tables = []string{"samples", "summaries", "steps", "tables"}

// Column documents one column of a csv table.
type Column struct {
	Name string
	Doc  string // meaning, with the unit where the name does not say it
}

// row gathers the cells of one row. Text is made harmless for spreadsheets,
// numbers stand as they are.
type row []string

func (r *row) text(s string) { *r = append(*r, PlainCell(s)) }

// PlainCell makes text a cell that a spreadsheet does not take for a formula: what
// begins with = + - @ (ASCII or full width), tab or line break gets a leading '.
func PlainCell(s string) string {
	if first, _ := utf8.DecodeRuneInString(s); s != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", first) {
		return "'" + s
	}
	return s
}

func (r *row) int(v int64)     { *r = append(*r, strconv.FormatInt(v, 10)) }
func (r *row) float(v float64) { *r = append(*r, number(v)) }
func (r *row) bool(v bool)     { *r = append(*r, strconv.FormatBool(v)) }

// maybe adds a number, or an empty cell.
func (r *row) maybe(v float64, ok bool) {
	if !ok {
		*r = append(*r, "")
		return
	}
	r.float(v)
}

func (r *row) blank(n int) { *r = append(*r, make([]string, n)...) }

// CSV writes one table: "samples" (one row per timed file), "steps" (one per
// executed step), "summaries" (one per estimate) or "tables" (one per cell of the
// tables of the plan). The first row names the
// columns, [Columns] explains them; the keys of the plan's cases stand in columns
// key_…, whichever the plan has. A quantity's unit is in its name: _ns, bytes,
// _bytes_per_second. It is RFC 4180 in UTF-8, without a byte order mark.
func CSV(w io.Writer, r *Result, table string) error {
	if table == "" {
		table = "samples"
	}
	cols := Columns(r, table)
	if cols == nil {
		return fmt.Errorf("table %q is none of %s", table, strings.Join(Tables, ", "))
	}
	cw := csv.NewWriter(w)
	cw.UseCRLF = true // RFC 4180
	var head row
	for _, c := range cols {
		head.text(c.Name)
	}
	if err := cw.Write(head); err != nil {
		return err
	}
	for cells := range rowsOf[table](r) {
		if err := cw.Write(cells); err != nil {
			return err
		}
	}
	cw.Flush()
	return cw.Error()
}

// rowsOf makes the rows of each table.
var rowsOf = map[string]func(*Result) iter.Seq[row]{
	"samples": sampleRows, "steps": stepRows, "summaries": summaryRows,
	"tables": tableRows,
}

// Columns are the columns of a csv table for this result, nil for an unknown table.
func Columns(r *Result, table string) []Column {
	own, ok := ownColumns[table]
	if !ok || table == "tables" { // its rows are cells of several cases
		return own
	}
	cols := []Column{{"run", "run id"}, {"plan", "name of the plan"}, {"case", "id of the case"}}
	for _, k := range r.keyNames() {
		cols = append(cols, Column{"key_" + k, "value of the case's key " + k + ", as the plan writes it"})
	}
	return append(append(cols, caseColumns...), own...)
}

var caseColumns = []Column{
	{"baseline", "true for the native baseline"},
	{"kind", "image or directory"}, {"place", "named folder; empty: the run folder"},
	{"format", "four-letter name of the format"}, {"encryption", "none, AES-128 or AES-256"},
	{"filesystem", "file system that was made"}, {"size_bytes", "nominal size of the image, B"},
	{"band_size_bytes", "band size found, B; 0: no bands"}, {"backend", "tool that made it"},
}

var stepColumns = []Column{
	{"round", "from 1"}, {"counts", "false: the round was not measured to its end, leave the row out"},
	{"session", "index of the session"}, {"step", "position in the case's protocol"}, {"do", "action"},
	{"phase", "label of the step"}, {"op", "write, read or stream"}, {"cycle", "from 1 inside a repeat, else 0"},
}

var ownColumns = map[string][]Column{
	"tables": tableColumns,
	"samples": append(append([]Column(nil), stepColumns...),
		Column{"file", "name on the volume"}, Column{"set", "set of the file"}, Column{"order", "position in the step"},
		Column{"worker", "who did it"}, Column{"bytes", "size, B"}, Column{"start_ns", "since the session began, ns"},
		Column{"duration_ns", "ns"}, Column{"rate_bytes_per_second", "bytes / duration, B/s"}),
	"steps": append(append([]Column(nil), stepColumns...),
		Column{"expect", "ok or fail"}, Column{"error", "empty: it went well"}, Column{"start_ns", "ns"},
		Column{"duration_ns", "of the whole step, ns"}, Column{"workers", "goroutines doing file I/O"},
		Column{"bytes", "moved between gate and last done, B"}, Column{"span_ns", "gate to last done, ns"},
		Column{"first_done_ns", "gate to first done, ns"}, Column{"idle_ns", "worker time outside files, ns"},
		Column{"rate_bytes_per_second", "bytes / span, B/s"}, Column{"allocated_bytes", "on the host, B"}, Column{"apparent_bytes", "on the host, B"},
		Column{"bands", "files of a sparse bundle"}, Column{"bands_full", "of them full"},
		Column{"volume_free_bytes", "B; empty while detached"}, Column{"host_free_bytes", "B; empty where it is not known"},
		Column{"bytes_freed", "by compact or trim, B"}, Column{"live_bytes", "bytes of files on the volume, B"},
		Column{"device_read_bytes", "by the disk below, B"}, Column{"device_written_bytes", "by the disk below, B"},
		Column{"cache_asked", "cache mode the plan asks for"}, Column{"cache_achieved", "cache mode found"}, Column{"sync_asked", "flush the plan asks for"}, Column{"sync_achieved", "flush found"},
		Column{"stream_out_bytes", "bytes behind the codec, B"}, Column{"ratio", "original / compressed"},
		Column{"findings", "of check and verify, separated by ; "}, Column{"warnings", "separated by ; "},
		Column{"retry_ns", "failed tries and pauses between tries, not in duration_ns, ns"}),
	"summaries": {
		{"phase", "label of the step"}, {"op", "quantity"}, {"cycle", "from 1 inside a repeat, else 0"},
		{"n", "values behind the summary"}, {"rounds", "rounds behind it"}, {"bytes", "B"},
		{"estimate", "name of the estimate"}, {"headline", "true for the one to quote"}, {"value", "in unit"},
		{"unit", "B/s, B, s or 1"}, {"ci_low", "in unit"}, {"ci_high", "in unit"}, {"ci_level", "0.95: 95 %"},
		{"ci_method", "how the interval was made"}, {"unit_of_replication", "what was replicated"}, {"why", "why there is no interval"},
		{"published", "figures as printed, with the statistic, separated by ; "},
		{"departures", "separated by ; "}, {"warnings", "separated by ; "},
	},
}

// caseCells begin every row.
func caseCells(r *Result, keys []string, c *Case) row {
	var out row
	out.text(r.Run)
	out.text(r.Plan.Name)
	out.text(c.ID)
	for _, k := range keys {
		out.text(c.key(k))
	}
	t := c.Target
	out.bool(c.Baseline)
	for _, s := range []string{t.Kind, t.Place, t.Format, t.Encryption, t.Filesystem} {
		out.text(s)
	}
	out.int(t.Size)
	out.int(t.BandSizeUsed)
	out.text(t.Backend)
	return out
}

func stepCells(out *row, c *Case, s *Step) {
	out.int(int64(s.Round))
	out.bool(c.Counts(s.Round))
	out.int(int64(s.Session))
	out.int(int64(s.Index))
	out.text(s.Do)
	out.text(s.Phase)
	out.text(s.Op)
	out.int(int64(s.Cycle))
}

// eachStep calls yield for every step of every case, with the cells that begin its rows.
func eachStep(r *Result, yield func(head row, s *Step) bool) {
	keys := r.keyNames()
	for ci := range r.Cases {
		c := &r.Cases[ci]
		of := caseCells(r, keys, c)
		for si := range c.Steps {
			head := slices.Clone(of)
			stepCells(&head, c, &c.Steps[si])
			if !yield(head, &c.Steps[si]) {
				return
			}
		}
	}
}

func sampleRows(r *Result) iter.Seq[row] {
	return func(yield func(row) bool) {
		eachStep(r, func(head row, s *Step) bool {
			for _, f := range s.Samples {
				out := slices.Clone(head)
				out.text(f.File)
				for _, v := range []int64{int64(f.Set), int64(f.Order), int64(f.Worker), f.Bytes, f.StartNS, f.DurationNS} {
					out.int(v)
				}
				out.maybe(rate(f.Bytes, f.DurationNS))
				if !yield(out) {
					return false
				}
			}
			return true
		})
	}
}

func stepRows(r *Result) iter.Seq[row] {
	return func(yield func(row) bool) {
		eachStep(r, func(head row, s *Step) bool {
			stepFacts(&head, s)
			return yield(head)
		})
	}
}

// stepFacts are the cells that only steps have; what a step has none of is empty.
func stepFacts(out *row, s *Step) {
	out.text(s.Expect)
	out.text(s.Error)
	out.int(s.StartNS)
	out.int(s.DurationNS)
	out.int(int64(s.Workers))
	if p := s.Span; p != nil {
		for _, v := range []int64{p.Bytes, p.LastDoneNS - p.GateNS, p.FirstDoneNS - p.GateNS, p.IdleNS} {
			out.int(v)
		}
		out.maybe(p.rate())
	} else {
		out.blank(5)
	}
	diskCells(out, s.Disk)
	out.int(s.BytesFreed)
	out.int(s.Live)
	if d := s.Device; d != nil {
		out.int(d.Read)
		out.int(d.Written)
	} else {
		out.blank(2)
	}
	for _, a := range []*Achieved{s.Cache, s.Sync} {
		if a == nil {
			a = &Achieved{}
		}
		out.text(a.Asked)
		out.text(a.Achieved)
	}
	if st := s.Stream; st != nil {
		out.int(st.Out)
		out.float(st.Ratio)
	} else {
		out.blank(2)
	}
	out.text(strings.Join(s.Findings, "; "))
	out.text(joinWarnings(s.Warnings))
	out.int(s.RetryNS)
}

func diskCells(out *row, d *DiskUse) {
	if d == nil {
		out.blank(6)
		return
	}
	for _, v := range []int64{d.Allocated, d.Apparent, int64(d.Bands), int64(d.BandsFull)} {
		out.int(v)
	}
	for _, free := range []int64{d.VolumeFree, d.HostFree} {
		if free < 0 {
			out.blank(1)
		} else {
			out.int(free)
		}
	}
}

func joinWarnings(list []Warning) string {
	texts := make([]string, len(list))
	for i, w := range list {
		texts[i] = w.Kind + ": " + w.Text
	}
	return strings.Join(texts, "; ")
}

func summaryRows(r *Result) iter.Seq[row] {
	return func(yield func(row) bool) {
		keys := r.keyNames()
		for si := range r.Summaries {
			s := &r.Summaries[si]
			c := &Case{ID: s.Case}
			if i := slices.IndexFunc(r.Cases, func(c Case) bool { return c.ID == s.Case }); i >= 0 {
				c = &r.Cases[i]
			}
			head := caseCells(r, keys, c)
			for _, e := range s.Estimates {
				out := slices.Clone(head)
				estimateCells(&out, s, e)
				if !yield(out) {
					return
				}
			}
		}
	}
}

// interval fills the five columns of an interval, which are empty where there is none.
func (r *row) interval(ci *CI) {
	if ci == nil {
		r.blank(5)
		return
	}
	r.float(ci.Low)
	r.float(ci.High)
	r.float(ci.Level)
	r.text(ci.Method)
	r.text(ci.Unit)
}

func estimateCells(out *row, s *Summary, e Estimate) {
	out.text(s.Phase)
	out.text(s.Op)
	for _, v := range []int64{int64(s.Cycle), int64(s.N), int64(s.Rounds), s.Bytes} {
		out.int(v)
	}
	out.text(e.Name)
	out.bool(e.Name == s.Headline)
	out.float(e.Value)
	out.text(e.Unit)
	out.interval(e.CI)
	out.text(e.Why)
	var published []string
	for _, p := range s.Published {
		text := p.Text
		if p.Statistic != "" {
			text += " (" + p.Statistic + ")"
		}
		published = append(published, text)
	}
	out.text(strings.Join(published, "; "))
	out.text(strings.Join(s.Departures, "; "))
	out.text(joinWarnings(s.Warnings))
}
