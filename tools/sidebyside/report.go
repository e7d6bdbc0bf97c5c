package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"dmgbench/internal/host"
	"dmgbench/internal/result"
	"dmgbench/internal/stats"
	"dmgbench/internal/units"
)

// report is what a comparison measured.
type report struct {
	machine, place, files, method string
	rows                          []row
	costs                         [][]string // cells of a second table, head first
}

// row is one ratio.
type row struct {
	workers           int
	op                string
	size              int64 // bytes of a file, 0 where files differ
	subject, baseline string
	quantity          quantity
	ratio             estimate
	// Medians of the two sides: bytes per second, or seconds of processor time
	// per byte.
	subjectValue, baselineValue float64
	sizeRatio                   float64 // bytes made, subject / baseline, where both compress
	spread                      float64 // of the baseline's pairs
	aim                         float64 // 0: none
	verdict                     string
	notes                       []string
	missing                     string // why nothing was measured
}

// quantity is what a ratio is of.
type quantity string

const (
	quantityRate  quantity = "rate"
	quantityCPU   quantity = "cpu per byte"
	quantityGross quantity = "gross cpu per byte"
)

// A rate of compressing counts only if the output is at most sizeLimit times
// the other's.
const (
	sizeLimit     = 1.03
	verdictLarger = "larger output"
)

// machineText describes the host for the head of a report.
func machineText(h result.Host) string {
	text := fmt.Sprintf("%s %s, %d processors (%s), %s memory", h.OS, h.Arch, h.CPUs, h.CPU, units.Bytes(h.Memory).Human())
	if host.Virtual(h) {
		text += ", virtual (" + h.Virtual + "): the host may cache what the guest takes for a disk, for both sides"
	}
	return text
}

// compare fills in the numbers of the row from the values of both sides, one of
// each per pair.
func (r *row) compare(subject, baseline []float64) error {
	pairs, err := ratios(subject, baseline)
	if err != nil {
		return err
	}
	if r.ratio, err = median(pairs); err != nil {
		return err
	}
	if r.subjectValue, err = stats.Median(subject); err != nil {
		return err
	}
	if r.baselineValue, err = stats.Median(baseline); err != nil {
		return err
	}
	r.spread = spread(baseline)
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
	numbers, texts := map[string]int{}, []string{}
	for _, row := range r.rows {
		var marks strings.Builder
		for _, text := range row.notes {
			if numbers[text] == 0 {
				texts = append(texts, text)
				numbers[text] = len(texts)
			}
			fmt.Fprintf(&marks, "[%d]", numbers[text])
		}
		fmt.Fprintln(t, strings.Join(append(row.cells(), marks.String()), "\t"))
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
	_, err := fmt.Fprintln(w)
	return err
}

// cells are the columns of the row, without its notes.
func (r row) cells() []string {
	op := r.op
	if r.size > 0 {
		op += " " + units.Bytes(r.size).Human()
	}
	cells := []string{fmt.Sprint(r.workers), op, r.subject, r.baseline, string(r.quantity)}
	if r.missing != "" {
		return append(cells, r.missing)
	}
	interval, level, size := "none", "", ""
	if iv := r.ratio.Interval; iv != nil {
		interval, level = fmt.Sprintf("%.2f–%.2f", iv.Low, iv.High), fmt.Sprintf("%.1f %%", 100*iv.Level)
	}
	if r.sizeRatio > 0 {
		size = fmt.Sprintf("%.3f", r.sizeRatio)
	}
	return append(cells, fmt.Sprintf("%.3f", r.ratio.Median), interval, level, fmt.Sprint(r.ratio.Pairs),
		r.quantity.text(r.subjectValue), r.quantity.text(r.baselineValue), fmt.Sprintf("%.0f %%", 100*r.spread),
		size, r.aimText(), r.verdict)
}

func (r row) aimText() string {
	switch {
	case r.aim == 0:
		return "none"
	case r.quantity == quantityRate:
		return fmt.Sprintf("≥ %.2f", r.aim)
	}
	return fmt.Sprintf("≤ %.2f", r.aim)
}

// text is a value of the quantity with its unit.
func (q quantity) text(v float64) string {
	if q != quantityRate {
		return units.Significant(v*1e12, 3) + " ns/kB"
	}
	return units.Rate(v).Human()
}

// level is the least confidence of the intervals.
const level = 0.95

// minPairs is the fewest pairs that a ratio is given for: of six values the
// extremes enclose the median with 96.9 %, and a seventh leaves room for a bad
// one.
const minPairs = 7

// maxSpread is the spread of a baseline, as a share of its median, above which
// a row carries a warning: the machine was busy with other work.
const maxSpread = 0.40

// schedule returns the order of the turns of one round of n sides: all of them
// there and back, A-B-B-A, so that each has the same mean place in time and a
// linear drift cancels. Each round starts with another side, so that none is
// always in the middle.
func schedule(n, round int) []int {
	order := make([]int, 0, 2*n)
	for i := range n {
		order = append(order, (i+round)%n)
	}
	for i := n - 1; i >= 0; i-- {
		order = append(order, order[i])
	}
	return order
}

// load is work done: bytes, the time that they took, and the processor time
// that they cost.
type load struct {
	bytes   int64
	seconds float64
	cpu     float64 // seconds, user and system, of the threads that do the I/O
	all     float64 // seconds, user and system, of the whole process
	peak    int64   // largest resident memory of the process, bytes
}

func (l load) plus(m load) load {
	return load{l.bytes + m.bytes, l.seconds + m.seconds, l.cpu + m.cpu, l.all + m.all, max(l.peak, m.peak)}
}

// rate is in bytes per second.
func (l load) rate() float64 { return float64(l.bytes) / l.seconds }

// cost is processor time in seconds per byte.
func (l load) cost() float64 { return l.cpu / float64(l.bytes) }

// gross is cost with everything else that the process did.
func (l load) gross() float64 { return l.all / float64(l.bytes) }

// estimate is a median of pairs with its interval.
type estimate struct {
	Median   float64
	Interval *stats.Interval // nil: too few pairs
	Pairs    int
}

// median of values with the exact interval between order statistics.
func median(values []float64) (estimate, error) {
	m, err := stats.Median(values)
	if err != nil {
		return estimate{}, err
	}
	e := estimate{Median: m, Pairs: len(values)}
	if iv, err := stats.MedianInterval(values, level); err == nil {
		e.Interval = &iv
	}
	return e, nil
}

// ratios is subject over baseline, pair by pair.
func ratios(subject, baseline []float64) ([]float64, error) {
	if len(subject) != len(baseline) {
		return nil, fmt.Errorf("pairing %d values with %d: %w", len(subject), len(baseline), stats.ErrRange)
	}
	r := make([]float64, len(subject))
	for i := range r {
		if !(subject[i] > 0) || !(baseline[i] > 0) || math.IsInf(subject[i]/baseline[i], 0) {
			return nil, fmt.Errorf("pairing %v with %v: %w", subject[i], baseline[i], stats.ErrRange)
		}
		r[i] = subject[i] / baseline[i]
	}
	return r, nil
}

// spread is the largest minus the smallest value, as a share of the median.
func spread(values []float64) float64 {
	mid, err := stats.Median(values)
	if err != nil || mid == 0 {
		return math.Inf(1)
	}
	return (slices.Max(values) - slices.Min(values)) / mid
}

// Verdicts on an aim.
const (
	met     = "met"
	missed  = "missed"
	unclear = "undecided"
)

// verdict compares the interval of a ratio with an aim: at least aim, or at
// most aim.
func (e estimate) verdict(aim float64, atMost bool) string {
	if e.Interval == nil {
		return unclear
	}
	low, high := e.Interval.Low, e.Interval.High
	if atMost {
		low, high, aim = -high, -low, -aim
	}
	switch {
	case low >= aim:
		return met
	case high < aim:
		return missed
	}
	return unclear
}
