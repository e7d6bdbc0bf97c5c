package report

import (
	"cmp"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/result"
)

// table is one printed table. All renderers print the same cells.
type table struct {
	ID      string
	Caption string
	Columns []column
	Rows    [][]cell
	Notes   []note
	File    string      // name for files, of the tables of the plan
	Forms   template.JS // JSON: what the copy buttons hand out; "" leaves that to the page
}

// column has a group heading ("write") over its own ("measured, GB/s").
type column struct {
	Group, Title string
	Text         bool // left-aligned words; otherwise a number
}

// cell is one entry; Class is "", muted, warn or head.
type cell struct {
	Text, Class, Title string
	Sub                string  // a second line in small print: an interval, a ratio
	Under              []under // further lines, each with a name
	Bar                float64 // length of the bar behind it in percent; 0 is none
	Marks              []int   // footnotes
	Link               string  // of the first cell of a row on a page of documents: where it leads, relative to the page
}

// note is a footnote; Mark 0 belongs to the whole table.
type note struct {
	Mark int
	Text string
}

// notes collects footnotes, each text once.
type notes struct {
	list []note
	next int
}

func (n *notes) mark(text string) int {
	for _, have := range n.list {
		if have.Text == text && have.Mark > 0 {
			return have.Mark
		}
	}
	n.next++
	n.list = append(n.list, note{n.next, text})
	return n.next
}

func (n *notes) general(text string) {
	n.list = slices.Insert(n.list, n.generals(), note{0, text})
}

func (n *notes) generals() int {
	count := 0
	for _, have := range n.list {
		if have.Mark == 0 {
			count++
		}
	}
	return count
}

// figureKey is one row of figures: what a case showed in a phase.
type figureKey struct {
	caseID, phase string
	cycle         int
}

// figures is a set of quantities by row, in the order of cases, protocol and cycles.
type figures struct {
	keys []figureKey
	by   map[figureKey]map[string]*result.Summary
	ops  []string
}

// figuresOf gathers the summaries whose quantity is accepted.
func (v *view) figuresOf(accept func(op string) bool) figures {
	f := figures{by: map[figureKey]map[string]*result.Summary{}}
	for i := range v.result.Summaries {
		s := &v.result.Summaries[i]
		if !accept(s.Op) || headline(s) == nil {
			continue
		}
		k := figureKey{s.Case, s.Phase, s.Cycle}
		if f.by[k] == nil {
			f.by[k] = map[string]*result.Summary{}
			f.keys = append(f.keys, k)
		}
		f.by[k][s.Op] = s
		if !slices.Contains(f.ops, s.Op) {
			f.ops = append(f.ops, s.Op)
		}
	}
	phases := v.phaseOrder()
	slices.SortStableFunc(f.keys, func(a, b figureKey) int {
		return cmp.Or(v.order[a.caseID]-v.order[b.caseID], phases[a.phase]-phases[b.phase], a.cycle-b.cycle)
	})
	slices.SortStableFunc(f.ops, func(a, b string) int { return opRank(a) - opRank(b) })
	return f
}

// opRank orders quantities as people ask for them.
func opRank(op string) int {
	order := []string{"write", "read", "stream", "convert", "create_time", "attach_time", "write_time", "read_time", "detach_time", "convert_time", "check_time", "allocated", "live",
		"overhead", "convert_ratio", "bands", "bands_full", "free", "reclaimed", "trimmed"}
	if i := slices.Index(order, op); i >= 0 {
		return i
	}
	return len(order)
}

// phaseOrder numbers the phases as the protocol meets them.
func (v *view) phaseOrder() map[string]int {
	first := map[string]int{}
	for _, c := range v.result.Cases {
		for _, s := range c.Steps {
			if at, ok := first[s.Phase]; !ok || s.Index < at {
				first[s.Phase] = s.Index
			}
		}
	}
	return first
}

// headline is the estimate to quote, nil if there is none.
func headline(s *result.Summary) *result.Estimate {
	for i := range s.Estimates {
		if s.Estimates[i].Name == s.Headline && finite(s.Estimates[i].Value) {
			return &s.Estimates[i]
		}
	}
	for i := range s.Estimates {
		if s.Headline == "" && finite(s.Estimates[i].Value) {
			return &s.Estimates[i]
		}
	}
	return nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// ciText says what an interval is: "95 % t over rounds".
func ciText(ci *result.CI) string {
	return strings.Join(nonEmpty([]string{percent(ci.Level), plain(ci.Method, 80), "over " + replicated(ci.Unit)}), " ")
}

func replicated(unit string) string {
	switch unit {
	case "file within one mount", "file":
		return "files within one mount (not independent)"
	case "":
		return "an unnamed unit"
	}
	noun, rest, _ := strings.Cut(plain(unit, 40), " ") // "round within one session a side"
	return strings.TrimSpace(noun + "s " + rest)
}

// publishedOn lists the machines that figures of one quantity were published for.
func (f figures) publishedOn(op string) []string {
	var out []string
	for _, k := range f.keys {
		if s := f.by[k][op]; s != nil {
			for _, p := range s.Published {
				if !slices.Contains(out, p.On) {
					out = append(out, p.On)
				}
			}
		}
	}
	return out
}

// scaleFor is the scale of a quantity over all rows.
func (f figures) scaleFor(op string) scale {
	var values []float64
	unit := ""
	for _, k := range f.keys {
		s := f.by[k][op]
		if s == nil {
			continue
		}
		h := headline(s)
		unit = h.Unit
		values = append(values, h.Value)
	}
	return columnScale(unit, values...)
}

// some reports whether any row satisfies test for a quantity.
func (f figures) some(op string, test func(*result.Summary) bool) bool {
	for _, k := range f.keys {
		if s := f.by[k][op]; s != nil && test(s) {
			return true
		}
	}
	return false
}

// publishedText is the figure as printed in the source; with several columns the machine is in the heading.
func publishedText(p result.PublishedValue) string {
	if p.Text != "" {
		return plain(p.Text, 40)
	}
	text := human(midpoint(p), p.Unit)
	switch p.Kind {
	case "range":
		return human(p.Low, p.Unit) + " to " + human(p.High, p.Unit)
	case "about", "below", "above":
		return p.Kind + " " + text
	}
	return text
}

// midpoint is the number that a ratio was taken with: of a bound the end that is known.
func midpoint(p result.PublishedValue) float64 {
	switch {
	case !finite(p.Low) || p.Kind == "below":
		return p.High
	case !finite(p.High) || p.Kind == "above":
		return p.Low
	}
	return (p.Low + p.High) / 2
}

// comparedWith is the estimate that a ratio to a published figure was taken with:
// the source may name a statistic, or a single file size, that is not the headline.
// It is nil where that cannot be told.
func comparedWith(s *result.Summary, p result.PublishedValue) *result.Estimate {
	for i := range s.Estimates {
		if p.Estimate != "" && s.Estimates[i].Name == p.Estimate {
			return &s.Estimates[i]
		}
	}
	want := p.Ratio * midpoint(p) // results of older versions do not name it
	near := func(e *result.Estimate) bool { return math.Abs(e.Value-want) <= 1e-9*math.Abs(want) }
	if h := headline(s); h != nil && near(h) {
		return h
	}
	for i := range s.Estimates {
		if near(&s.Estimates[i]) {
			return &s.Estimates[i]
		}
	}
	return nil
}

// counted is "480 files in 3 rounds" of a summary.
func counted(s *result.Summary) string {
	switch {
	case s.Rounds > 0 && s.N > s.Rounds:
		noun := "value"
		if s.Op == "write" || s.Op == "read" {
			noun = "file"
		}
		return count(s.N, noun) + " in " + count(s.Rounds, "round")
	case s.Rounds > 0:
		return count(s.Rounds, "round")
	}
	return strconv.Itoa(s.N)
}
