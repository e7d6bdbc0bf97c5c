// Package export writes results in formats of other programs: spreadsheets,
// benchstat, Prometheus, and JSON by file or by sample.
//
// Equal results give equal bytes. The formats are rows of one table; a new
// format is one row and its writer. The package computes only rates of samples
// and spans; every other number is in the result.
package export

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/result"
)

// writers write one or more runs, by the place of the format in [Formats]. The
// table is that of csv, else "".
var writers = []func(w io.Writer, rs []*result.Result, table string) error{
	writeCSV, writeJSON, writeJSONL, writeBenchfmt, writeOpenMetrics,
}

// Formats are the names of the formats that [Write] accepts.
var Formats = []string{"csv", "json", "jsonl", "benchfmt", "openmetrics"}

// ErrUsage is matched by errors about runs, format and table that do not go
// together.
var ErrUsage = errors.New("export each run separately, and tables as csv")

// Write writes results of one or more runs in one of [Formats]; another one is a
// programming error, as is another table. table is one of [Tables] for csv, else
// ""; csv without a table writes samples. Several runs
// are repetitions of each other; csv needs runs with the same keys of cases. A
// number that is not finite is an error that names it: no format can represent
// it.
func Write(w io.Writer, rs []*result.Result, formatName, table string) error {
	format := slices.Index(Formats, formatName)
	isSingle := formatName == "json" || formatName == "openmetrics" || table == "tables"
	switch {
	case table != "" && formatName != "csv":
		return fmt.Errorf("exporting %s: only csv has tables: %w", formatName, ErrUsage)
	case len(rs) > 1 && isSingle:
		return fmt.Errorf("exporting %d runs: %s contains one run: %w", len(rs), cmp.Or(table, formatName), ErrUsage)
	}
	// Before the first byte, so that an error leaves no half-written file.
	for _, r := range rs {
		if err := r.CheckFinite(); err != nil {
			return fmt.Errorf("exporting %s of run %s: %w", formatName, r.Run, err)
		}
	}
	b := bufio.NewWriter(w)
	if err := cmp.Or(writers[format](b, rs, table), b.Flush()); err != nil {
		return fmt.Errorf("exporting %s: %w", formatName, err)
	}
	return nil
}

// writeJSON writes result.json for people: one value a line.
func writeJSON(w io.Writer, rs []*result.Result, _ string) error {
	b, err := rs[0].MarshalIndent()
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// keyValue is the value of one of the case's keys, "" if it has none of that
// name.
func keyValue(c *result.Case, name string) string {
	for _, kv := range c.Keys {
		if kv[0] == name {
			return kv[1]
		}
	}
	return ""
}

// sessionOf finds a session by its index; an unknown one is empty.
func sessionOf(r *result.Result, index int) *result.Session {
	if i := slices.IndexFunc(r.Sessions, func(s result.Session) bool { return s.Index == index }); i >= 0 {
		return &r.Sessions[i]
	}
	return &result.Session{}
}

// osName is the system and its version.
func osName(h result.Host) string { return strings.TrimSpace(h.OS + " " + h.OSVersion) }

// number formats a float exactly, without an exponent in the range where people
// use none.
func number(v float64) string {
	if a := math.Abs(v); a == 0 || a >= 1e-6 && a < 1e15 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
