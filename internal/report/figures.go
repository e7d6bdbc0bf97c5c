package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/report/wording"
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

// quantityOrder has the quantities as people ask for them; others follow.
var quantityOrder = strings.Fields(`write read stream convert tree random
	create_time attach_time write_time read_time detach_time convert_time check_time
	allocated live overhead convert_ratio bands bands_full free reclaimed trimmed`)

// FiguresOf gathers the summaries of the quantities that accept returns true
// for. Summaries without a finite headline are left out.
func (v *View) FiguresOf(accept func(op string) bool) Figures {
	f := Figures{By: map[FigureKey]map[string]*result.Summary{}}
	repeated := v.repeated()
	for i := range v.Result.Summaries {
		s := &v.Result.Summaries[i]
		if !accept(s.Op) || Headline(s) == nil || repeated[s] {
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
	phases := map[string]int{} // the first step of each, in the order of the protocol
	for _, s := range v.Steps() {
		if at, ok := phases[s.Phase]; !ok || s.Index < at {
			phases[s.Phase] = s.Index
		}
		for _, o := range s.Operations {
			phases[operationPhase(s.Phase, o.Kind)] = phases[s.Phase]
		}
	}
	slices.SortStableFunc(f.Keys, func(a, b FigureKey) int {
		return cmp.Or(v.Order[a.CaseID]-v.Order[b.CaseID], phases[a.Phase]-phases[b.Phase], a.Cycle-b.Cycle)
	})
	rank := func(op string) uint { return uint(slices.Index(quantityOrder, op)) } // -1, of others, becomes the largest
	slices.SortStableFunc(f.Ops, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	return f
}

// All are the summaries of a quantity, row by row.
func (f Figures) All(op string) []*result.Summary {
	summaries := Map(f.Keys, func(k FigureKey) *result.Summary { return f.By[k][op] })
	return slices.DeleteFunc(summaries, func(s *result.Summary) bool { return s == nil })
}

// hasAny reports whether a row has one of some quantities.
func (f Figures) hasAny(k FigureKey, ops []string) bool {
	return slices.ContainsFunc(ops, func(op string) bool { return f.By[k][op] != nil })
}

// PublishedOn lists the machines that values of one quantity were published
// for.
func (f Figures) PublishedOn(op string) []string {
	return AppendNew(nil, Map(f.published(op), func(p result.PublishedValue) string { return p.On })...)
}

// published are the published values of some quantities.
func (f Figures) published(ops ...string) []result.PublishedValue {
	return FlatMap(FlatMap(ops, f.All), func(s *result.Summary) []result.PublishedValue { return s.Published })
}

// Phases are the phases in which a quantity was measured, in order.
func (f Figures) Phases(op string) []FigureKey {
	return AppendNew(nil, Map(f.All(op), func(s *result.Summary) FigureKey {
		return FigureKey{Phase: s.Phase, Cycle: s.Cycle}
	})...)
}

// mainRows is how many main numbers the first screen has.
const mainRows = 7

// Rows are those of a phase that the first screen has room for.
func (f Figures) Rows(key FigureKey) Figures {
	part := Figures{By: f.By}
	part.Keys = Where(f.Keys, func(k FigureKey) bool {
		return k.Phase == key.Phase && k.Cycle == key.Cycle && f.hasAny(k, f.Ops)
	})
	part.Ops = Where(f.Ops, func(op string) bool { return len(part.All(op)) > 0 }) // some are of other phases only
	part.Keys = part.Keys[:min(len(part.Keys), mainRows)]
	return part
}

// MainFigures picks the section, up to two quantities and the phase of the
// first screen. The section is that of speeds unless far more values of another
// one are published.
//
// Articles about space publish many sizes and few speeds; there the sizes come
// first.
func (v *View) MainFigures() (Figures, FigureKey) {
	var f Figures
	most := 0
	for i, s := range v.Sections {
		n := len(s.Figures.published(s.Figures.Ops...))
		if i == 0 || len(s.Figures.Keys) > 0 && n > 2*most {
			most, f = n, s.Figures
		}
	}
	if len(f.Keys) == 0 {
		return Figures{}, FigureKey{}
	}
	f.Ops = slices.Clone(f.Ops)
	slices.SortStableFunc(f.Ops, func(a, b string) int {
		return min(len(f.published(b)), 1) - min(len(f.published(a)), 1)
	})
	f.Ops = f.Ops[:min(len(f.Ops), 2)]
	at := slices.IndexFunc(f.Keys, func(k FigureKey) bool {
		return slices.ContainsFunc(f.Ops, func(op string) bool {
			return f.By[k][op] != nil && len(f.By[k][op].Published) > 0
		})
	})
	if at < 0 {
		at = slices.IndexFunc(f.Keys, func(k FigureKey) bool { return f.By[k][f.Ops[0]] != nil })
	}
	return f, f.Keys[max(at, 0)]
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

// DescribeInterval names level, method and unit of an interval: "95 % t over
// rounds".
func DescribeInterval(ci *result.CI) string {
	return glue(" ", Percent(ci.Level), Plain(ci.Method, 80), "over "+replicated(ci.Unit))
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
			return AddUnit(RangeText(s, ci, unit), s.Suffix)
		}
	}
	low, high := s.Number(ci.Low), s.Number(ci.High)
	if ci.Low != 0 && !s.legible(ci.Low) || ci.High != 0 && !s.legible(ci.High) {
		low, high = Human(ci.Low, unit), Human(ci.High, unit)
	}
	switch {
	case ci.Low == ci.High:
		return "no spread"
	case low == high:
		return "within the last digit"
	case ci.Low < 0:
		return low + " to " + high
	}
	return low + "–" + high
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

// otherEstimate is the estimate that the ratio to a published value was taken
// with, nil if it is not known or is the headline: the source may name another
// statistic than the headline, or files of a single size.
func otherEstimate(s *result.Summary, p result.PublishedValue) *result.Estimate {
	for i := range s.Estimates {
		if e := &s.Estimates[i]; p.Estimate == e.Name && e.Name != "" && e.Name != Headline(s).Name {
			return e
		}
	}
	return nil
}

// ComparableValue is the published value that a figure is drawn with, 0 without
// any: preferably one that may be compared. A value that was published for a
// part of the files is not the same figure.
func ComparableValue(s *result.Summary) (value float64, comparable bool) {
	for _, p := range s.Published {
		v := Midpoint(p)
		if IsFinite(v) && v > 0 && !strings.Contains(p.Estimate, "@") && (value == 0 || p.Comparable && !comparable) {
			value, comparable = v, p.Comparable
		}
	}
	return value, comparable
}

// SampleSize is "480 files in 3 rounds" of a summary.
func SampleSize(s *result.Summary) string {
	noun := "value"
	if s.Op == "write" || s.Op == "read" {
		noun = "file"
	}
	switch {
	case s.Rounds > 0 && s.N > s.Rounds:
		return Count(s.N, noun) + " in " + Count(s.Rounds, "round")
	case s.Rounds > 0:
		return Count(s.Rounds, "round")
	}
	return strconv.Itoa(s.N)
}

// StatisticName is an estimator in words; a part after "@" names the files of
// one size that it is of.
func StatisticName(name string) string {
	name, part, _ := strings.Cut(name, "@")
	return named("statistic", name, 60) + TextIf(part != "", ", "+Plain(part, 60)+" files only")
}

// Statistic is how the headline of a summary was made. Only of writes and reads
// it is a statistic of files: other steps have one value each.
func Statistic(s *result.Summary) string {
	h := Headline(s)
	if s.Op == "write" || s.Op == "read" {
		return StatisticName(h.Name)
	}
	over := map[string]string{"B/s": "bytes over time", "1/s": "operations over time"}[h.Unit]
	mean := Plain(h.Name, 60)
	if mean == "mean" || mean == "aggregate" {
		mean = TextIf(over != "" || h.Unit == "s", "geometric ") + "mean"
	}
	return wording.JoinFacts(over, mean+" over rounds")
}

// FigureText is one figure in words, as tips and rows of tables print it. Texts
// are empty where the figure has none.
type FigureText struct {
	Value, Interval, Published string
	Ratio                      string // measured ÷ published; in brackets where not comparable
	N                          string
}

// TextOf writes a figure in a scale.
func TextOf(s *result.Summary, sc Scale) FigureText {
	h := Headline(s)
	t := FigureText{Value: sc.Text(h.Value), N: SampleSize(s)}
	if h.CI != nil {
		t.Interval = RangeText(sc, h.CI, h.Unit)
	}
	var texts, ratios []string
	for _, p := range s.Published {
		r := Ratio(p.Ratio) + TextIf(otherEstimate(s, p) != nil, "*")
		if p.Ratio > 0 && !p.Comparable {
			r = "(" + r + ")"
		}
		texts, ratios = append(texts, PublishedText(p)), append(ratios, r)
	}
	t.Published, t.Ratio = strings.Join(texts, "; "), strings.Join(ratios, "; ")
	return t
}
