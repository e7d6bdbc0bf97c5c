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

// Table is one printed table. All renderers print the same cells.
type Table struct {
	ID      string
	Caption string
	Columns []Column
	Rows    [][]Cell
	Notes   []Note
	File    string      // name for files, of the tables of the plan
	Forms   template.JS // JSON: what the copy buttons hand out; "" leaves that to the page
}

// Column has a group heading ("write") over its own ("measured, GB/s").
type Column struct {
	Group, Title string
	Text         bool // left-aligned words; otherwise a number
}

// Columns are columns without groups. A title that begins with "<" is that of a column of words, which is aligned
// to the left; the others are of numbers.
func Columns(titles ...string) []Column {
	out := make([]Column, len(titles))
	for i, title := range titles {
		name, words := strings.CutPrefix(title, "<")
		out[i] = Column{Title: name, Text: words}
	}
	return out
}

// Cell is one entry; Class is "", muted, warn or head.
type Cell struct {
	Text, Class, Title string
	Sub                string  // a second line in small print: an interval, a ratio
	Under              []Under // further lines, each with a name
	Bar                float64 // length of the bar behind it in percent; 0 is none
	Marks              []int   // footnotes
	Link               string  // of the first cell of a row on a page of documents: where it leads, relative to the page
}

// Note is a footnote; Mark 0 belongs to the whole table.
type Note struct {
	Mark int
	Text string
}

// notes collects footnotes, each text once.
type notes struct {
	list []Note
	next int
}

func (n *notes) mark(text string) int {
	for _, have := range n.list {
		if have.Text == text && have.Mark > 0 {
			return have.Mark
		}
	}
	n.next++
	n.list = append(n.list, Note{n.next, text})
	return n.next
}

func (n *notes) general(text string) {
	n.list = slices.Insert(n.list, n.generals(), Note{0, text})
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

// FigureKey is one row of figures: what a case showed in a phase.
type FigureKey struct {
	CaseID, Phase string
	Cycle         int
}

// Figures is a set of quantities by row, in the order of cases, protocol and cycles.
type Figures struct {
	Keys []FigureKey
	By   map[FigureKey]map[string]*result.Summary
	Ops  []string
}

// FiguresOf gathers the summaries whose quantity is accepted.
func (v *View) FiguresOf(accept func(op string) bool) Figures {
	f := Figures{By: map[FigureKey]map[string]*result.Summary{}}
	for i := range v.Result.Summaries {
		s := &v.Result.Summaries[i]
		if !accept(s.Op) || Headline(s) == nil {
			continue
		}
		k := FigureKey{s.Case, s.Phase, s.Cycle}
		if f.By[k] == nil {
			f.By[k] = map[string]*result.Summary{}
			f.Keys = append(f.Keys, k)
		}
		f.By[k][s.Op] = s
		if !slices.Contains(f.Ops, s.Op) {
			f.Ops = append(f.Ops, s.Op)
		}
	}
	phases := v.phaseOrder()
	slices.SortStableFunc(f.Keys, func(a, b FigureKey) int {
		return cmp.Or(v.Order[a.CaseID]-v.Order[b.CaseID], phases[a.Phase]-phases[b.Phase], a.Cycle-b.Cycle)
	})
	slices.SortStableFunc(f.Ops, func(a, b string) int { return opRank(a) - opRank(b) })
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
func (v *View) phaseOrder() map[string]int {
	first := map[string]int{}
	for _, c := range v.Result.Cases {
		for _, s := range c.Steps {
			if at, ok := first[s.Phase]; !ok || s.Index < at {
				first[s.Phase] = s.Index
			}
		}
	}
	return first
}

// Headline is the estimate to quote, nil if there is none.
func Headline(s *result.Summary) *result.Estimate {
	for i := range s.Estimates {
		if s.Estimates[i].Name == s.Headline && IsFinite(s.Estimates[i].Value) {
			return &s.Estimates[i]
		}
	}
	for i := range s.Estimates {
		if s.Headline == "" && IsFinite(s.Estimates[i].Value) {
			return &s.Estimates[i]
		}
	}
	return nil
}

func IsFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// DescribeInterval says what an interval is: "95 % t over rounds".
func DescribeInterval(ci *result.CI) string {
	return strings.Join(NonEmpty([]string{Percent(ci.Level), Plain(ci.Method, 80), "over " + replicated(ci.Unit)}), " ")
}

func replicated(unit string) string {
	switch unit {
	case "file within one mount", "file":
		return "files within one mount (not independent)"
	case "":
		return "an unnamed unit"
	}
	noun, rest, _ := strings.Cut(Plain(unit, 40), " ") // "round within one session a side"
	return strings.TrimSpace(noun + "s " + rest)
}

// PublishedOn lists the machines that figures of one quantity were published for.
func (f Figures) PublishedOn(op string) []string {
	var out []string
	for _, k := range f.Keys {
		if s := f.By[k][op]; s != nil {
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
func (f Figures) scaleFor(op string) Scale {
	var values []float64
	unit := ""
	for _, k := range f.Keys {
		s := f.By[k][op]
		if s == nil {
			continue
		}
		h := Headline(s)
		unit = h.Unit
		values = append(values, h.Value)
	}
	return ColumnScale(unit, values...)
}

// Any reports whether any row satisfies test for a quantity.
func (f Figures) Any(op string, test func(*result.Summary) bool) bool {
	for _, k := range f.Keys {
		if s := f.By[k][op]; s != nil && test(s) {
			return true
		}
	}
	return false
}

// PublishedText is the figure as printed in the source; with several columns the machine is in the heading.
func PublishedText(p result.PublishedValue) string {
	if p.Text != "" {
		return Plain(p.Text, 40)
	}
	text := Human(Midpoint(p), p.Unit)
	switch p.Kind {
	case "range":
		return Human(p.Low, p.Unit) + " to " + Human(p.High, p.Unit)
	case "about", "below", "above":
		return p.Kind + " " + text
	}
	return text
}

// Midpoint is the number that a ratio was taken with: of a bound the end that is known.
func Midpoint(p result.PublishedValue) float64 {
	switch {
	case !IsFinite(p.Low) || p.Kind == "below":
		return p.High
	case !IsFinite(p.High) || p.Kind == "above":
		return p.Low
	}
	return (p.Low + p.High) / 2
}

// ComparedEstimate is the estimate that a ratio to a published figure was taken with:
// the source may name a statistic, or a single file size, that is not the headline.
// It is nil where that cannot be told.
func ComparedEstimate(s *result.Summary, p result.PublishedValue) *result.Estimate {
	for i := range s.Estimates {
		if p.Estimate != "" && s.Estimates[i].Name == p.Estimate {
			return &s.Estimates[i]
		}
	}
	want := p.Ratio * Midpoint(p) // results of older versions do not name it
	near := func(e *result.Estimate) bool { return math.Abs(e.Value-want) <= 1e-9*math.Abs(want) }
	if h := Headline(s); h != nil && near(h) {
		return h
	}
	for i := range s.Estimates {
		if near(&s.Estimates[i]) {
			return &s.Estimates[i]
		}
	}
	return nil
}

// SampleSize is "480 files in 3 rounds" of a summary.
func SampleSize(s *result.Summary) string {
	switch {
	case s.Rounds > 0 && s.N > s.Rounds:
		noun := "value"
		if s.Op == "write" || s.Op == "read" {
			noun = "file"
		}
		return Count(s.N, noun) + " in " + Count(s.Rounds, "round")
	case s.Rounds > 0:
		return Count(s.Rounds, "round")
	}
	return strconv.Itoa(s.N)
}
