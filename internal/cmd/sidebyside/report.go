package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"dmgbench/internal/stats"
	"dmgbench/internal/units"
)

// report is what a comparison found.
type report struct {
	Comparison string   `json:"comparison"`
	Machine    string   `json:"machine"`
	Filesystem string   `json:"filesystem"` // of the place
	Files      string   `json:"files"`      // of one turn, in words
	Method     string   `json:"method"`
	Asked      string   `json:"asked"` // cache, flush, calls
	Rows       []row    `json:"rows"`
	Tables     []*table `json:"tables,omitempty"` // what is told besides, not judged
	Warnings   []string `json:"warnings"`
}

// row is one ratio.
type row struct {
	Place    string   `json:"place,omitempty"` // where several are measured
	Workers  int      `json:"workers"`
	Op       string   `json:"op"`
	Size     int64    `json:"size,omitempty"`  // bytes of a file, where files of one size are compared
	Block    int64    `json:"block,omitempty"` // bytes a call, where several are compared; 0 is whole files
	Subject  string   `json:"subject"`
	Baseline string   `json:"baseline"`
	Quantity string   `json:"quantity"` // rate | cpu per byte
	Ratio    estimate `json:"ratio"`    // subject / baseline
	// The two sides' own medians: bytes per second, or seconds of processor time per byte.
	SubjectValue  float64  `json:"subject_value"`
	BaselineValue float64  `json:"baseline_value"`
	SizeRatio     float64  `json:"size_ratio,omitempty"` // bytes made, subject / baseline, where both compress
	Spread        float64  `json:"baseline_spread"`      // (largest - smallest) / median of the baseline's pairs
	Aim           float64  `json:"aim"`                  // 0: none
	Verdict       string   `json:"verdict"`              // "" without an aim
	Warnings      []string `json:"warnings"`
	Missing       string   `json:"missing,omitempty"` // why nothing was measured
}

// table is figures beside the ratios.
type table struct {
	Title string     `json:"title"`
	Head  []string   `json:"head"`
	Rows  [][]string `json:"rows"`
}

func (t *table) add(cells ...string) { t.Rows = append(t.Rows, cells) }

// table is that of the title, made when it is not there.
func (r *report) table(title string, head ...string) *table {
	for _, t := range r.Tables {
		if t.Title == title {
			return t
		}
	}
	r.Tables = append(r.Tables, &table{Title: title, Head: head})
	return r.Tables[len(r.Tables)-1]
}

// Quantities of a row.
const (
	quantityRate  = "rate"
	quantityCPU   = "cpu per byte"
	quantityGross = "gross cpu per byte"
)

// A rate of compressing counts where the output is at most so many times the other's.
const (
	sizeLimit     = 1.03
	verdictLarger = "larger output"
)

// compare makes the row's numbers of the values of both sides, one of each a pair.
func (r *row) compare(subject, baseline []float64) error {
	pairs, err := ratios(subject, baseline)
	if err != nil {
		return err
	}
	if r.Ratio, err = median(pairs); err != nil {
		return err
	}
	if r.SubjectValue, err = stats.Median(subject); err != nil {
		return err
	}
	if r.BaselineValue, err = stats.Median(baseline); err != nil {
		return err
	}
	r.Spread = spread(baseline)
	if r.Aim > 0 {
		r.Verdict = r.Ratio.verdict(r.Aim, r.Quantity != quantityRate)
	}
	if r.Spread > noisy {
		r.warn("noise: the baseline's rounds lie more than %.0f %% apart; inconclusive, unless the interval of the ratio is narrow", 100*noisy)
	}
	return nil
}

// compareSizes notes how large the two outputs are. A rate that is paid for in size meets no aim.
func (r *row) compareSizes(subject, baseline int64) {
	r.SizeRatio = float64(subject) / float64(baseline)
	if r.SizeRatio > sizeLimit && r.Verdict != "" {
		r.Verdict = verdictLarger
		r.warn("size: the output is more than %.2f times as large as the other's, so that the rate meets no aim", sizeLimit)
	}
}

func (r *row) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// write writes the report as text or json.
func (r report) write(w io.Writer, format string) error {
	if format == "json" {
		return r.json(w)
	}
	return r.text(w)
}

// json writes the report for programs.
func (r report) json(w io.Writer) error {
	for i := range r.Rows {
		r.Rows[i].Warnings = append([]string{}, r.Rows[i].Warnings...)
	}
	r.Warnings = append([]string{}, r.Warnings...)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// text writes the report for people.
func (r report) text(w io.Writer) error {
	fmt.Fprintf(w, "machine   %s\nplace     %s\nfiles     %s\nasked     %s\nmethod    %s\n\n", r.Machine, r.Filesystem, r.Files, r.Asked, r.Method)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	place, calls, size := "", "", ""
	if slices.ContainsFunc(r.Rows, func(r row) bool { return r.Place != "" }) {
		place, calls = "place\t", "call\t"
	}
	sized := slices.ContainsFunc(r.Rows, func(r row) bool { return r.SizeRatio > 0 })
	if sized {
		size = "size ratio\t"
	}
	fmt.Fprintln(t, place+"workers\t"+calls+"op\tsubject\tbaseline\tquantity\tratio\t"+size+"interval\tlevel\tpairs\tsubject\tbaseline\tspread\taim\tverdict\tnotes")
	notes := map[string]int{}
	var texts []string
	for _, row := range r.Rows {
		var marks []string
		for _, text := range row.Warnings {
			if notes[text] == 0 {
				texts = append(texts, text)
				notes[text] = len(texts)
			}
			marks = append(marks, fmt.Sprintf("[%d]", notes[text]))
		}
		op := row.Op
		if row.Size > 0 {
			op += " " + units.Bytes(row.Size).Human()
		}
		if row.Missing != "" {
			fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\n", row.Workers, op, row.Subject, row.Baseline, row.Quantity, row.Missing)
			continue
		}
		interval, real := "none", ""
		if iv := row.Ratio.Interval; iv != nil {
			interval, real = fmt.Sprintf("%.2f–%.2f", iv.Low, iv.High), fmt.Sprintf("%.1f %%", 100*iv.Level)
		}
		if place != "" {
			place, calls = row.Place+"\t", calling(row.Block)+"\t"
		}
		if sized {
			size = row.sizeRatio() + "\t"
		}
		fmt.Fprintf(t, "%s%d\t%s%s\t%s\t%s\t%s\t%.3f\t%s%s\t%s\t%d\t%s\t%s\t%.0f %%\t%s\t%s\t%s\n", place, row.Workers, calls, op, row.Subject, row.Baseline,
			row.Quantity, row.Ratio.Median, size, interval, real, row.Ratio.Pairs, row.value(row.SubjectValue), row.value(row.BaselineValue),
			100*row.Spread, row.aim(), row.Verdict, strings.Join(marks, ""))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	r.tables(w)
	for i, text := range texts {
		fmt.Fprintf(w, "\n[%d] %s", i+1, text)
	}
	if len(texts) > 0 {
		fmt.Fprintln(w)
	}
	for _, text := range r.Warnings {
		fmt.Fprintf(w, "\nwarning: %s", text)
	}
	_, err := fmt.Fprintln(w)
	return err
}

// tables writes the figures beside the ratios.
func (r report) tables(w io.Writer) {
	for _, t := range r.Tables {
		fmt.Fprintf(w, "\n%s\n", t.Title)
		lines := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(lines, strings.Join(t.Head, "\t"))
		for _, row := range t.Rows {
			fmt.Fprintln(lines, strings.Join(row, "\t"))
		}
		_ = lines.Flush() // w tells of its errors at the end
	}
}

// sizeRatio is the ratio of the outputs' sizes, or that there is none.
func (r row) sizeRatio() string {
	if r.SizeRatio == 0 {
		return "none"
	}
	return fmt.Sprintf("%.3f", r.SizeRatio)
}

// aim is what the ratio should be.
func (r row) aim() string {
	switch {
	case r.Aim == 0:
		return "none"
	case r.Quantity == quantityRate:
		return fmt.Sprintf("≥ %.2f", r.Aim)
	}
	return fmt.Sprintf("≤ %.2f", r.Aim)
}

// value is a side's own figure in a unit that people read.
func (r row) value(v float64) string {
	if r.Quantity != quantityRate {
		return fmt.Sprintf("%s ns/kB", units.Significant(v*1e12, 3))
	}
	return units.Rate(v).Human()
}
