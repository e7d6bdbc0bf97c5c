package export

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"dmgbench/internal/result"
)

// Tables are the tables that csv can write. The first is the default.
var Tables = []string{"samples", "summaries", "steps", "tables", "uses"}

//go:embed columns.txt
var columnsText string

// Column is one column of a csv table with a row for each T.
type Column[T any] struct {
	Name string
	Doc  string // meaning, with the unit where the name does not contain it
	// value is the content of the cell: text, number, boolean, time, list, or nil
	// for an empty cell.
	value func(row *T) any
}

// columnGroups are the columns of columns.txt by section.
var columnGroups = ParseColumns[tableRow](columnsText)

// ParseColumns reads columns by section, in the form that columns.txt explains. A
// line +NAME includes an earlier section.
func ParseColumns[T any](text string) map[string][]Column[T] {
	groups, section := map[string][]Column[T]{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = strings.Trim(line, "[]")
		case line[0] == '+':
			groups[section] = append(groups[section], groups[line[1:]]...)
		default:
			f := strings.SplitN(line, " | ", 3)
			groups[section] = append(groups[section], Column[T]{f[0], f[2], cellValue[T](f[1])})
		}
	}
	return groups
}

// cellValue is the function that follows a path of columns.txt. It panics at an
// unknown path, which every test of a table would notice.
func cellValue[T any](path string) func(row *T) any {
	if name, ok := strings.CutSuffix(path, "()"); ok {
		m, _ := reflect.TypeFor[*T]().MethodByName(name)
		return m.Func.Interface().(func(*T) any)
	}
	names := strings.Split(path, ".")
	return func(row *T) any {
		v := reflect.ValueOf(row).Elem()
		for _, name := range names {
			if v.Kind() == reflect.Map { // of numbers: what has none is 0
				key, of := reflect.ValueOf(name), v
				if v = of.MapIndex(key); !v.IsValid() {
					v = reflect.Zero(of.Type().Elem())
				}
			} else if v = reflect.Indirect(v.FieldByName(name)); !v.IsValid() {
				return nil
			}
		}
		return v.Interface()
	}
}

// Columns are the columns of a csv table for this result.
func Columns(r *result.Result, table string) []Column[tableRow] {
	if table == "tables" || table == "uses" { // their rows are about several cases
		return columnGroups[table]
	}
	cols := slices.Clone(columnGroups["run"])
	for _, c := range r.Cases {
		for _, kv := range c.Keys {
			name := "key_" + kv[0]
			if !slices.ContainsFunc(cols, func(c Column[tableRow]) bool { return c.Name == name }) {
				doc := "value of the case's key " + kv[0] + ", as the plan writes it"
				value := func(row *tableRow) any { return keyValue(row.Case, kv[0]) }
				cols = append(cols, Column[tableRow]{name, doc, value})
			}
		}
	}
	return slices.Concat(cols, columnGroups["case"], columnGroups[table])
}

// tableRow is what a row of csv or a line of jsonl is about. The table decides
// which fields are set. Methods without parameters compute cells.
type tableRow struct {
	Run      *result.Result
	Session  *result.Session // of the step
	Case     *result.Case
	Step     *result.Step
	Sample   *result.Sample
	Summary  *result.Summary
	Estimate *result.Estimate

	Table       *result.Table
	Row, Column *result.TableLine // headings of the cell
	Cell        *result.TableCell

	Use       *result.Use
	Candidate *result.UseCandidate
	Criterion *result.UseCriterion
	Figure    *result.UseFigure
}

// Methods of tableRow are used by columns.txt.

func (x *tableRow) Counts() any     { return x.Case.Counts(x.Step.Round) }
func (x *tableRow) IsHeadline() any { return x.Estimate.Name == x.Summary.Headline }
func (x *tableRow) TableOp() any    { return x.Row.Op + x.Column.Op }
func (x *tableRow) SampleRate() any {
	return cellIf(!x.Sample.Stopped, rateCell(x.Sample.Bytes, x.Sample.DurationNS))
}

func (x *tableRow) ToolName() any { return x.Run.Tool.Name + " " + x.Run.Tool.Version }
func (x *tableRow) OSName() any   { return osName(x.Session.Host) }

// Keys are the case's keys as one object.
func (x *tableRow) Keys() any {
	keys := map[string]string{}
	for _, kv := range x.Case.Keys {
		keys[kv[0]] = kv[1]
	}
	return keys
}

// CacheFound is empty for a step without a cache mode, as SyncFound is without a
// flush.
func (x *tableRow) CacheFound() any { return cmp.Or(x.Step.Cache, &result.Achieved{}).Achieved }
func (x *tableRow) SyncFound() any  { return cmp.Or(x.Step.Sync, &result.Achieved{}).Achieved }

// Warnings are never nil.
func (x *tableRow) Warnings() any { return append([]result.Warning{}, x.Step.Warnings...) }

// span is the span of a step, an empty one of a step without workers.
func (x *tableRow) span() *result.Span { return cmp.Or(x.Step.Span, &result.Span{}) }

// SpanNS is nil for a step without workers, as are FirstDoneNS, which is from the
// gate to the first worker without work, and SpanRate.
func (x *tableRow) SpanNS() any      { return x.sinceGate(x.span().LastDoneNS) }
func (x *tableRow) FirstDoneNS() any { return x.sinceGate(x.span().FirstDoneNS) }
func (x *tableRow) SpanRate() any {
	return rateCell(x.span().Bytes, x.span().LastDoneNS-x.span().GateNS)
}

func (x *tableRow) sinceGate(ns int64) any { return cellIf(x.Step.Span != nil, ns-x.span().GateNS) }

// VolumeFree is nil while it is unknown, as is HostFree on the simulated device.
func (x *tableRow) VolumeFree() any { return known(cmp.Or(x.Step.Disk, &unknownDisk).VolumeFree) }
func (x *tableRow) HostFree() any   { return known(cmp.Or(x.Step.Disk, &unknownDisk).HostFree) }

var unknownDisk = result.DiskUse{VolumeFree: -1, HostFree: -1}

// known is a size in bytes, nil for -1.
func known(bytes int64) any { return cellIf(bytes >= 0, bytes) }

func (x *tableRow) published() *result.PublishedValue {
	return cmp.Or(x.Cell.Published, &result.PublishedValue{})
}

// PublishedRatio is nil without a published figure or a measured value, as is
// Comparable.
func (x *tableRow) PublishedRatio() any { return cellIf(x.published().Ratio > 0, x.published().Ratio) }
func (x *tableRow) Comparable() any {
	return cellIf(x.Cell.Published != nil && x.Cell.Estimate != nil, x.published().Comparable)
}

// cellIf is the value if the condition holds, else nil.
func cellIf(condition bool, value any) any {
	if condition {
		return value
	}
	return nil
}

// rateCell is bytes per second, nil where no time was measured.
func rateCell(bytes, ns int64) any { return cellIf(ns > 0, float64(bytes)/float64(max(ns, 1))*1e9) }

// formatCell formats a value. Text is made harmless for spreadsheets, numbers
// are exact, lists are joined by "; ".
func formatCell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return PlainCell(v)
	case float64:
		return number(v)
	case time.Time:
		if v.IsZero() {
			return ""
		}
		return v.Format(time.RFC3339)
	case []string:
		return PlainCell(strings.Join(v, "; "))
	case []result.Warning:
		var texts []string
		for _, w := range v {
			texts = append(texts, w.Kind+": "+w.Text)
		}
		return formatCell(texts)
	case []result.PublishedValue:
		var texts []string
		for _, p := range v {
			texts = append(texts, strings.TrimSuffix(p.Text+" ("+p.Statistic+")", " ()"))
		}
		return formatCell(texts)
	}
	return fmt.Sprint(v) // integers and booleans
}

// PlainCell makes text a cell that a spreadsheet does not take for a formula:
// text that starts with = + - @ (ASCII or full width), tab or line break gets a
// leading '.
func PlainCell(s string) string {
	if first, _ := utf8.DecodeRuneInString(s); s != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", first) {
		return "'" + s
	}
	return s
}

// writeCSV writes one table of runs with the same columns: "samples" (a row for
// each timed file), "steps" (for each executed step), "summaries" (for each
// estimate), "tables" (for each cell of the tables of the plan) or "uses" (for
// each figure of a candidate of a use). The first row names the columns, see
// [Columns]; the keys of the plan's cases are in
// columns key_…. A quantity's unit is in its name: _ns, bytes,
// _bytes_per_second.
func writeCSV(w io.Writer, rs []*result.Result, table string) error {
	table = cmp.Or(table, Tables[0])
	cols := Columns(rs[0], table)
	// Columns depend on the keys of the cases, so that runs of two plans may
	// differ.
	sameName := func(a, b Column[tableRow]) bool { return a.Name == b.Name }
	for _, r := range rs[1:] {
		if !slices.EqualFunc(cols, Columns(r, table), sameName) {
			return fmt.Errorf("run %s has other columns than run %s: %w", r.Run, rs[0].Run, ErrUsage)
		}
	}
	return WriteRows(w, cols, func(do func(x *tableRow)) {
		for _, r := range rs {
			forEachRow(r, table, do)
		}
	})
}

// WriteRows writes the rows that each passes to do as CSV, after a row with the
// names of the columns. The format is RFC 4180 in UTF-8 without a byte order
// mark.
func WriteRows[T any](w io.Writer, cols []Column[T], each func(do func(row *T))) error {
	cw := csv.NewWriter(w)
	cw.UseCRLF = true // RFC 4180
	cells := make([]string, len(cols))
	for i, c := range cols {
		cells[i] = PlainCell(c.Name)
	}
	err := cw.Write(cells)
	each(func(row *T) {
		for i, c := range cols {
			cells[i] = formatCell(c.value(row))
		}
		err = cmp.Or(err, cw.Write(cells))
	})
	cw.Flush()
	return cmp.Or(err, cw.Error())
}

// forEachRow calls do with each row of a table.
func forEachRow(r *result.Result, table string, do func(x *tableRow)) {
	switch table {
	case "tables":
		forEachTableCell(r, do)
		return
	case "uses":
		forEachUseFigure(r, do)
		return
	case "summaries":
		for si := range r.Summaries {
			s := &r.Summaries[si]
			// A summary of a case that the result does not have still gets a
			// row.
			c := &result.Case{ID: s.Case}
			if i := slices.IndexFunc(r.Cases, func(c result.Case) bool { return c.ID == s.Case }); i >= 0 {
				c = &r.Cases[i]
			}
			for ei := range s.Estimates {
				do(&tableRow{Run: r, Case: c, Summary: s, Estimate: &s.Estimates[ei]})
			}
		}
		return
	}
	for ci := range r.Cases {
		c := &r.Cases[ci]
		for si := range c.Steps {
			row := tableRow{Run: r, Session: sessionOf(r, c.Steps[si].Session), Case: c, Step: &c.Steps[si]}
			if table == "steps" {
				do(&row)
				continue
			}
			for fi := range row.Step.Samples {
				row.Sample = &row.Step.Samples[fi]
				do(&row)
			}
		}
	}
}

// forEachTableCell calls do with the cells of the plan's tables. A cell without
// an estimate gets an empty one, with the reason. Cells without headings, in
// results of other programs, are omitted.
func forEachTableCell(r *result.Result, do func(x *tableRow)) {
	for ti := range r.Tables {
		t := &r.Tables[ti]
		for i, cells := range t.Cells[:min(len(t.Cells), len(t.Rows))] {
			for k := range cells[:min(len(cells), len(t.Columns))] {
				c := &cells[k]
				e := c.Estimate
				if e == nil {
					e = &result.Estimate{Why: c.Why}
					if c.Published != nil {
						e.Unit = c.Published.Unit
					}
				}
				do(&tableRow{Run: r, Table: t, Row: &t.Rows[i], Column: &t.Columns[k], Cell: c, Estimate: e})
			}
		}
	}
}

// forEachUseFigure calls do with the figures of all candidates of the uses. One
// without an estimate gets an empty one, with the reason.
func forEachUseFigure(r *result.Result, do func(x *tableRow)) {
	for ui := range r.Uses {
		u := &r.Uses[ui]
		for i := range u.Candidates {
			k := &u.Candidates[i]
			for n := range min(len(k.Figures), len(u.Criteria)) {
				f := &k.Figures[n]
				e := cmp.Or(f.Estimate, &result.Estimate{Why: f.Why, Unit: u.Criteria[n].Unit})
				do(&tableRow{Run: r, Use: u, Candidate: k, Criterion: &u.Criteria[n], Figure: f, Estimate: e})
			}
		}
	}
}

// writeJSONL writes one line for each timed file. A line can be understood
// without the others. Lines of rounds that do not count have "counts": false.
func writeJSONL(w io.Writer, rs []*result.Result, _ string) (err error) {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false) // names stay readable: the lines are not for HTML
	for _, r := range rs {
		forEachRow(r, Tables[0], func(x *tableRow) {
			line.Reset()
			separator := "{"
			for _, c := range columnGroups["jsonl"] {
				fmt.Fprintf(&line, "%s%q:", separator, c.Name)
				separator = ","
				err = cmp.Or(err, enc.Encode(c.value(x)))
				line.Truncate(line.Len() - 1) // without the line end of Encode
			}
			line.WriteString("}\n")
			if err == nil {
				_, err = w.Write(line.Bytes())
			}
		})
	}
	return err
}
