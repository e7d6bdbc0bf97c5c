package result

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Formats are what [Export] can write.
var Formats = []string{"csv", "json", "jsonl", "benchfmt", "openmetrics"}

// ExportOptions refine an export.
type ExportOptions struct {
	// Table is which table csv writes, one of [Tables]; "" is samples.
	Table string
}

// Export writes the result in one of [Formats]. Equal results give equal bytes.
// A number that is not finite is an error that names it: no format has a place for it.
func Export(w io.Writer, r *Result, format string, o ExportOptions) error {
	if where := notFinite(r); where != "" {
		return fmt.Errorf("exporting %s: %s is not a finite number", format, where)
	}
	if o.Table != "" && format != "csv" {
		return fmt.Errorf("exporting %s: only csv has tables", format)
	}
	b := bufio.NewWriter(w)
	var err error
	switch format {
	case "csv":
		err = CSV(b, r, o.Table)
	case "json":
		err = JSON(b, r)
	case "jsonl":
		err = JSONL(b, r)
	case "benchfmt":
		err = Benchfmt(b, r)
	case "openmetrics":
		err = OpenMetrics(b, r)
	default:
		return fmt.Errorf("exporting %q: not one of %s", format, strings.Join(Formats, ", "))
	}
	if err == nil {
		err = b.Flush()
	}
	if err != nil {
		return fmt.Errorf("exporting %s: %w", format, err)
	}
	return nil
}

// ExportAll writes several results in one file: benchfmt, jsonl, and of csv the tables
// with rows that name their run. It is an error if their cases have different keys.
func ExportAll(w io.Writer, rs []*Result, format string, o ExportOptions) error {
	switch {
	case len(rs) == 1:
		return Export(w, rs[0], format, o)
	case format == "json" || format == "openmetrics" || o.Table == "tables":
		return fmt.Errorf("exporting %d runs: %s is of one run: %w", len(rs), cmp.Or(o.Table, format), ErrOneRun)
	case format == "benchfmt":
		for _, r := range rs {
			if where := notFinite(r); where != "" {
				return fmt.Errorf("exporting %s: %s of run %s is not a finite number", format, where, r.Run)
			}
		}
		return Benchfmt(w, rs...)
	}
	head := ""
	for i, r := range rs {
		var b bytes.Buffer
		if err := Export(&b, r, format, o); err != nil {
			return err
		}
		text := b.Bytes()
		if format == "csv" {
			first, rest, _ := bytes.Cut(text, []byte("\n"))
			switch {
			case i == 0:
				head = string(first)
			case string(first) != head:
				return fmt.Errorf("exporting csv: run %s has other columns than run %s: %w", r.Run, rs[0].Run, ErrOneRun)
			default:
				text = rest
			}
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	return nil
}

// ErrOneRun is returned for an export that takes one run only.
var ErrOneRun = errors.New("export each run by itself")

// JSON writes the result as result.json has it.
func JSON(w io.Writer, r *Result) error {
	b, err := r.MarshalIndent()
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// key is the value of one of the case's keys, "" if it has none of that name.
func (c *Case) key(name string) string {
	for _, kv := range c.Keys {
		if kv[0] == name {
			return kv[1]
		}
	}
	return ""
}

// keyNames are the names of all keys of all cases, in order of appearance.
func (r *Result) keyNames() []string {
	var out []string
	for _, c := range r.Cases {
		for _, kv := range c.Keys {
			if !slices.Contains(out, kv[0]) {
				out = append(out, kv[0])
			}
		}
	}
	return out
}

// session finds a session by its index; an unknown one is empty.
func (r *Result) session(index int) *Session {
	for i := range r.Sessions {
		if r.Sessions[i].Index == index {
			return &r.Sessions[i]
		}
	}
	return &Session{}
}

// rate is bytes per second, and whether the time was long enough to have one.
func rate(bytes, ns int64) (float64, bool) {
	if ns <= 0 {
		return 0, false
	}
	return float64(bytes) / float64(ns) * 1e9, true
}

// rate of a step with workers: all bytes over gate to last done.
func (s *Span) rate() (float64, bool) { return rate(s.Bytes, s.LastDoneNS-s.GateNS) }

// number writes a float exactly, without exponent where people would write none.
func number(v float64) string {
	if a := math.Abs(v); a == 0 || a >= 1e-6 && a < 1e15 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
