package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/result"
	"dmgbench/internal/system/host"
	"dmgbench/internal/system/units"
)

// report is what a comparison measured.
type report struct {
	machine, place, files, method string
	rows                          []row
	costs                         [][]string // cells of a second table, head first
}

// row is one ratio.
type row struct {
	workers                     int
	op                          string
	subject, baseline           string
	quantity                    quantity
	ratio                       estimate
	subjectValue, baselineValue float64 // medians of the two sides
	spread                      float64 // of the baseline: largest − smallest value, as a share of the median
	sizeRatio                   float64 // bytes made, subject / baseline, where both compress
	aim                         float64 // 0: none
	verdict                     string
	notes                       []string
	missing                     string // why nothing was measured
}

// A rate of compressing counts only if the output is at most sizeLimit times
// the other's.
const (
	sizeLimit     = 1.03
	verdictLarger = "larger output"
)

// maxSpread is the spread of a baseline above which a row carries a warning:
// the machine was busy with other work.
const maxSpread = 0.40

// machineText describes the host for the head of a report.
func machineText(h result.Host) string {
	text := fmt.Sprintf("%s %s, %d processors (%s), %s memory", h.OS, h.Arch, h.CPUs, h.CPU, units.Bytes(h.Memory).Human())
	if host.Virtual(h) {
		text += ", virtual (" + h.Virtual + "): the host may cache what the guest takes for a disk, for both sides"
	}
	return text
}

// compare fills in the numbers of the row from the loads of both sides, one of
// each per round.
func (r *row) compare(subject, baseline []load) (err error) {
	ours, theirs := r.quantity.values(subject), r.quantity.values(baseline)
	if r.ratio, err = compareRounds(ours, theirs); err != nil {
		return err
	}
	// There are values, so they have a median.
	r.subjectValue, _ = stats.Median(ours)
	r.baselineValue, _ = stats.Median(theirs)
	r.spread = (slices.Max(theirs) - slices.Min(theirs)) / r.baselineValue
	if r.aim > 0 {
		r.verdict = r.ratio.verdict(r.aim, r.quantity != quantityRate)
	}
	if r.spread > maxSpread {
		r.note("noise: the rounds of the baseline spread over more than %.0f %%", 100*maxSpread)
	}
	return nil
}

// compareSizes notes the sizes of the two outputs. A rate paid for in size
// meets no aim.
func (r *row) compareSizes(subject, baseline int64) {
	r.sizeRatio = float64(subject) / float64(baseline)
	if r.sizeRatio > sizeLimit && r.verdict != "" {
		r.verdict = verdictLarger
		r.note("size: the output is more than %.2f times as large as the other's; the rate meets no aim", sizeLimit)
	}
}

func (r *row) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// write prints the report.
func (r report) write(w io.Writer) error {
	fmt.Fprintf(w, "machine   %s\nplace     %s\nfiles     %s\nmethod    %s\n\n", r.machine, r.place, r.files, r.method)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "workers\top\tsubject\tbaseline\tquantity\tratio\tinterval\tlevel\tpairs\tsubject\tbaseline\tspread"+
		"\tsize ratio\taim\tverdict\tnotes")
	texts := []string{}
	for _, row := range r.rows {
		marks := ""
		for _, text := range row.notes {
			if !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
			marks += fmt.Sprintf("[%d]", slices.Index(texts, text)+1)
		}
		fmt.Fprintln(t, strings.Join(append(row.cells(), marks), "\t"))
	}
	fmt.Fprintln(t)
	for _, cells := range r.costs {
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for i, text := range texts {
		fmt.Fprintf(w, "[%d] %s\n", i+1, text)
	}
	return nil
}

// cells are the columns of the row, without its notes.
func (r row) cells() []string {
	cells := []string{fmt.Sprint(r.workers), r.op, r.subject, r.baseline, string(r.quantity)}
	if r.missing != "" {
		return append(cells, r.missing)
	}
	interval, level, size, aim, sign := "none", "", "", "none", "≥"
	if iv := r.ratio.Interval; iv != nil {
		interval, level = fmt.Sprintf("%.2f–%.2f", iv.Low, iv.High), fmt.Sprintf("%.1f %%", 100*iv.Level)
	}
	if r.sizeRatio > 0 {
		size = fmt.Sprintf("%.3f", r.sizeRatio)
	}
	value := func(v float64) string { return units.Rate(v).Human() }
	if r.quantity != quantityRate {
		value, sign = func(v float64) string { return units.Significant(v*1e12, 3) + " ns/kB" }, "≤"
	}
	if r.aim > 0 {
		aim = fmt.Sprintf("%s %.2f", sign, r.aim)
	}
	return append(cells, fmt.Sprintf("%.3f", r.ratio.Median), interval, level, fmt.Sprint(r.ratio.Pairs),
		value(r.subjectValue), value(r.baselineValue), fmt.Sprintf("%.0f %%", 100*r.spread), size, aim, r.verdict)
}
