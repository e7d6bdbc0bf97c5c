package report

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/result"
)

// FigureKey is one row of figures: what a case showed in a phase.
type FigureKey struct {
	CaseID, Phase string
	Cycle         int
}

// Figures is a set of quantities by row, in the order of cases, protocol and
// cycles.
//
// By has no entry for a quantity that was not measured in a row.
type Figures struct {
	Keys []FigureKey
	By   map[FigureKey]map[string]*result.Summary
	Ops  []string
}

// FiguresOf gathers the summaries of the quantities that accept returns true
// for. Summaries without a finite headline are left out.
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
		f.Ops = AppendNew(f.Ops, s.Op)
	}
	phases := v.phaseOrder()
	slices.SortStableFunc(f.Keys, func(a, b FigureKey) int {
		return cmp.Or(v.Order[a.CaseID]-v.Order[b.CaseID], phases[a.Phase]-phases[b.Phase], a.Cycle-b.Cycle)
	})
	slices.SortStableFunc(f.Ops, func(a, b string) int { return quantityRank(a) - quantityRank(b) })
	return f
}

// quantityOrder has the quantities as people ask for them; others follow.
var quantityOrder = strings.Fields(`write read stream convert
	create_time attach_time write_time read_time detach_time convert_time check_time
	allocated live overhead convert_ratio bands bands_full free reclaimed trimmed`)

// quantityRank is the place of a quantity in quantityOrder.
func quantityRank(op string) int {
	if i := slices.Index(quantityOrder, op); i >= 0 {
		return i
	}
	return len(quantityOrder)
}

// phaseOrder numbers the phases in the order of the protocol.
func (v *View) phaseOrder() map[string]int {
	first := map[string]int{}
	for _, s := range v.Steps() {
		if at, ok := first[s.Phase]; !ok || s.Index < at {
			first[s.Phase] = s.Index
		}
	}
	return first
}

// all yields the summaries of a quantity, row by row.
func (f Figures) all(op string) iter.Seq[*result.Summary] {
	return func(yield func(*result.Summary) bool) {
		for _, k := range f.Keys {
			if s := f.By[k][op]; s != nil && !yield(s) {
				return
			}
		}
	}
}

// Any reports whether any row satisfies test for a quantity.
func (f Figures) Any(op string, test func(*result.Summary) bool) bool {
	for s := range f.all(op) {
		if test(s) {
			return true
		}
	}
	return false
}

// PublishedOn lists the machines that values of one quantity were published
// for.
func (f Figures) PublishedOn(op string) []string {
	var out []string
	for s := range f.all(op) {
		for _, p := range s.Published {
			out = AppendNew(out, p.On)
		}
	}
	return out
}

// hasPublished reports whether a published value belongs to any figure.
func (f Figures) hasPublished() bool {
	return slices.ContainsFunc(f.Ops, func(op string) bool { return len(f.PublishedOn(op)) > 0 })
}

// publishedCount is the number of published values of a quantity.
func (f Figures) publishedCount(op string) int {
	n := 0
	for s := range f.all(op) {
		n += len(s.Published)
	}
	return n
}

// scaleFor is the scale of a quantity over all rows. With published it suits
// the published values too, which keep the unit of their source: 649 MB/s next
// to 10.11 GB/s would look like the larger one.
func (f Figures) scaleFor(op string, published bool) Scale {
	var values []float64
	unit := ""
	for s := range f.all(op) {
		h := Headline(s)
		unit, values = h.Unit, append(values, h.Value)
		for _, p := range s.Published {
			if published && p.Unit == unit && p.Low > 0 && IsFinite(p.Low) {
				values = append(values, p.Low)
			}
		}
	}
	return ColumnScale(unit, values...)
}

// Headline is the estimate to quote, nil if there is none. The result names it;
// where it does not, it is the first.
//
// Results with no estimate that is a number have no figure.
func Headline(s *result.Summary) *result.Estimate {
	for i := range s.Estimates {
		if e := &s.Estimates[i]; (s.Headline == "" || s.Headline == e.Name) && IsFinite(e.Value) {
			return e
		}
	}
	return nil
}

// IsFinite reports whether v is a number, and no infinity.
func IsFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// DescribeInterval names level, method and unit of an interval: "95 % t over
// rounds".
func DescribeInterval(ci *result.CI) string {
	return strings.Join(NonEmpty([]string{Percent(ci.Level), Plain(ci.Method, 80), "over " + replicated(ci.Unit)}), " ")
}

// replicated is the plural of the unit that an interval is over.
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

// RangeText is an interval in words.
//
// Intervals that touch 0 keep "0 to": a dash would look like a minus sign.
func RangeText(s Scale, ci *result.CI, unit string) string {
	if s.Mixed != "" {
		s = ScaleOf(unit, ci.Low, ci.High)
		if (ci.Low == 0 || s.legible(ci.Low)) && ci.Low != ci.High {
			return RangeText(s, ci, unit) + " " + s.Suffix
		}
	}
	low, high := s.Number(ci.Low), s.Number(ci.High)
	if ci.Low != 0 && !s.legible(ci.Low) || ci.High != 0 && !s.legible(ci.High) {
		low, high = Human(ci.Low, unit), Human(ci.High, unit)
	}
	switch {
	case ci.Low == ci.High:
		return "no spread"
	case ci.Low < 0:
		return low + " to " + high
	}
	return low + "–" + high
}

// rangeWithUnit is [RangeText] with the unit of the scale, where its numbers
// have none.
func rangeWithUnit(s Scale, ci *result.CI, unit string) string {
	text := RangeText(s, ci, unit)
	return text + TextIf(s.Suffix != "" && s.legible(ci.Low) && s.legible(ci.High), " "+s.Suffix)
}

// PublishedText is the value as the source prints it.
func PublishedText(p result.PublishedValue) string {
	text := Human(Midpoint(p), p.Unit)
	switch {
	case p.Text != "":
		return Plain(p.Text, 40)
	case p.Kind == "range":
		return Human(p.Low, p.Unit) + " to " + Human(p.High, p.Unit)
	case p.Kind == "about" || p.Kind == "below" || p.Kind == "above":
		return p.Kind + " " + text
	}
	return text
}

// Midpoint is the number that a ratio was taken with, in the unit of the value:
// of a bound the end that is known.
func Midpoint(p result.PublishedValue) float64 {
	switch {
	case !IsFinite(p.Low) || p.Kind == "below":
		return p.High
	case !IsFinite(p.High) || p.Kind == "above":
		return p.Low
	}
	return (p.Low + p.High) / 2
}

// ComparedEstimate is the estimate that the ratio to a published value was
// taken with, nil if it is not known: the source may name another statistic
// than the headline, or files of a single size.
func ComparedEstimate(s *result.Summary, p result.PublishedValue) *result.Estimate {
	for i := range s.Estimates {
		if p.Estimate != "" && s.Estimates[i].Name == p.Estimate {
			return &s.Estimates[i]
		}
	}
	return nil
}

// comparesOther reports whether the ratio to a published value was taken with
// another estimate than the headline.
func comparesOther(s *result.Summary, p result.PublishedValue) bool {
	e := ComparedEstimate(s, p)
	return e != nil && e.Name != Headline(s).Name
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

// StatisticName is an estimator in words.
func StatisticName(name string) string {
	name, part, parted := strings.Cut(name, "@")
	if parted { // of files of one size only
		return StatisticName(name) + ", " + Plain(part, 60) + " files only"
	}
	return named("statistic", name, 60)
}

// FigureText is one figure in words, as tips and rows of tables print it. Texts
// are empty where the figure has none.
type FigureText struct {
	Value, Interval, Published string
	Ratio                      string // measured ÷ published; in brackets where not comparable
	N                          string
	Comparable                 bool // no ratio is in brackets
}

// TextOf writes a figure in a scale.
func TextOf(s *result.Summary, sc Scale) FigureText {
	h := Headline(s)
	t := FigureText{Value: sc.Text(h.Value), N: SampleSize(s), Comparable: true}
	if h.CI != nil {
		t.Interval = RangeText(sc, h.CI, h.Unit)
	}
	var texts, ratios []string
	for _, p := range s.Published {
		texts = append(texts, PublishedText(p))
		r := Ratio(p.Ratio)
		r += TextIf(comparesOther(s, p), "*")
		if p.Ratio > 0 && !p.Comparable {
			r, t.Comparable = "("+r+")", false
		}
		ratios = append(ratios, r)
	}
	t.Published, t.Ratio = strings.Join(texts, "; "), strings.Join(ratios, "; ")
	return t
}

// FigureTip is a figure in lines, for the mark that shows it; "!" marks one
// with warnings.
func FigureTip(s *result.Summary, sc Scale) string {
	name := QuantityName(s.Op) + ": " + TextIf(len(s.Warnings) > 0, "! ")
	return strings.Join(Lines("figure-tip", map[string]any{"Name": name, "Figure": TextOf(s, sc)}), "\n")
}

// ComparableValue is the published value that a figure is drawn with, 0 without
// any: preferably one that may be compared. A value that was published for a
// part of the files is not the same figure.
//
// A ratio is taken with a comparable value first: the reader sees the one that
// may be compared.
func ComparableValue(s *result.Summary) (value float64, comparable bool) {
	for _, p := range s.Published {
		v := Midpoint(p)
		if e := ComparedEstimate(s, p); e != nil && strings.Contains(e.Name, "@") {
			continue
		}
		if IsFinite(v) && v > 0 && (value == 0 || p.Comparable && !comparable) {
			value, comparable = v, p.Comparable
		}
	}
	return value, comparable
}
