package report

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
)

// UseMatrix answers which image to take: a row for each use of the plan, a
// column for each candidate of any of them. It has what limits and weakens the
// answers, so that a picture of it can be read without the rest of the report.
type UseMatrix struct {
	Caption string
	Scope   string   // what the choices are about; "" where Apple's tools were measured
	Columns []string // titles of the candidates
	Rows    []UseRow
	Legend  string   // of marks and brackets
	Method  string   // how candidates are compared
	Weak    []string // what weakens the answers, worst first
	Basis   string   // rounds, machine, system, engine, plan, version and day
}

// UseRow is the answer for one use. Classes are those of verdicts.
type UseRow struct {
	Use, Class string
	Word       string   // "take", "undecided between" …
	Choice     string   // what was chosen, or may be best
	Why        string   // by which criteria, as far as they were needed
	Needs      string   // what would decide it, "" unless undecided
	Criteria   []string // what decides, in order, with the better direction and the difference that matters
	Headings   []string // of the figures that decided: "writing ↑"
	Reason     string   // what each criterion showed
	Cells      []UseCell
	Advice     []Item
	Warnings   []string
}

// UseCell is a candidate in a row; without a title it is none of the use.
type UseCell struct {
	Title, Class, Mark string
	Figures            []UseFigure // by the criteria that took part in the decision
	Missing            string      // why there are none
}

// UseFigure is a figure by a criterion with its bar. The bar, and the begin and
// the length of its interval, are in percent of the room for bars.
type UseFigure struct {
	Criterion       string
	Value, Interval string
	Rank, Class     string // "best", or how much worse than the best
	Bar, From, Span float64
}

// The classes of choices and of ranks, and the marks of cells by class.
var (
	useClasses = map[string]string{
		result.ChosenOne: result.Holds, result.ChosenEqual: result.Holds, result.Undecided: result.CannotTell,
		result.RankBest: result.Holds, result.RankWorse: result.DoesNotHold, // the rest is undecided, or equal
		result.OtherCriterion: result.NotMeasured,
	}
	useMarks = map[string]string{result.Holds: "✓", result.CannotTell: "?", result.NotMeasured: "–"}
)

// useTitle limits titles of candidates, which head columns.
const useTitle = 40

// useMatrix is the matrix of a plan with uses, nil for others.
func (v *View) useMatrix(weak []string) *UseMatrix {
	if len(v.Result.Uses) == 0 {
		return nil
	}
	m := &UseMatrix{Caption: wording.Text("uses.caption"), Weak: weak,
		Legend: Phrase("uses-legend", v), Method: Phrase("uses-method", v),
		Basis: glue(" · ", Count(v.Result.Rounds, "round"), v.Provenance)}
	for _, u := range v.Result.Uses {
		m.Columns = AppendNew(m.Columns, Map(u.Candidates, func(k result.UseCandidate) string {
			return Plain(k.Title, useTitle)
		})...)
		if u.Scope != "" && m.Scope == "" {
			m.Scope = wording.Text("uses.scope", Plain(u.Scope, 200))
		}
	}
	isSimulated := func(s result.Session) bool { return s.Engine.Name == "simulated" }
	if slices.ContainsFunc(v.Result.Sessions, isSimulated) {
		m.Scope = Phrase("notice", v)
	}
	m.Rows = Map(v.Result.Uses, func(u result.Use) UseRow { return v.newUseRow(u, m.Columns) })
	return m
}

// newUseRow arranges a use, its candidates in the columns of their titles.
func (v *View) newUseRow(u result.Use, columns []string) UseRow {
	r := UseRow{Use: Plain(FirstOf(u.Says, u.Name), 120), Class: FirstOf(useClasses[u.Choice], result.NotMeasured),
		Word: named("choice", u.Choice, 20), Needs: Plain(u.Needs, 300), Reason: Plain(u.Reason, 1200)}
	r.Criteria = Map(u.Criteria, func(x result.UseCriterion) string {
		better := FirstOf(TextIf(x.HigherIsBetter, wording.Text("uses.more")), wording.Text("uses.less"))
		key := FirstOf(TextIf(x.SameEverywhere, "uses.same"), "uses.criterion")
		return wording.Text(key, Plain(x.Title, 60), better, Percent(x.Matters))
	})
	r.Headings = Map(u.Criteria[:min(max(u.DecidedBy, 0)+1, len(u.Criteria))], func(x result.UseCriterion) string {
		return useHeading(x) + TextIf(x.SameEverywhere, " "+wording.Text("uses.heading-same"))
	})
	r.Choice = useChoice(u)
	r.Why = wording.Text("choice.by."+u.Choice, strings.Join(r.Criteria[:len(r.Headings)], ", then "))
	r.Cells = make([]UseCell, len(columns))
	for _, k := range u.Candidates {
		c := UseCell{Title: Plain(k.Title, useTitle)}
		switch {
		case slices.Contains(u.Chosen, k.Title):
			c.Class = r.Class
		case useFigure(k, 0).Estimate == nil:
			c.Class = result.NotMeasured
		}
		c.Mark = useMarks[c.Class]
		r.Cells[slices.Index(columns, c.Title)] = c
	}
	for at := range r.Headings {
		v.addUseFigures(u, at, columns, r.Cells)
	}
	r.Advice = Map(u.Advice, func(a result.UseAdvice) Item {
		return Item{Label: named("advice", a.Verdict, 30), Class: FirstOf(useClasses[a.Verdict], a.Verdict), Text: "“" + Plain(a.Says, 300) + "”",
			Note: Plain(a.Source, 120)}
	})
	r.Warnings = Map(u.Warnings, func(w result.Warning) string { return Plain(w.Text, 300) })
	return r
}

// useChoice lists what was chosen: "A or B: equal within 10 %", "A, B and C".
func useChoice(u result.Use) string {
	names, word, equal := plainList(u.Chosen, useTitle), " and ", ""
	if u.Choice == result.ChosenEqual {
		word, equal = " or ", wording.Text("uses.equal", Percent(u.Criteria[u.DecidedBy].Matters))
	}
	if last := len(names) - 1; last > 0 {
		names = append(names[:last-1], names[last-1]+word+names[last])
	}
	return strings.Join(names, ", ") + equal
}

// useHeading is the title of a criterion with the direction that is better.
func useHeading(x result.UseCriterion) string {
	return Plain(x.Title, 60) + FirstOf(TextIf(x.HigherIsBetter, " ↑"), " ↓")
}

// useDifference is how much worse than the best a candidate is: "1.30 times
// worse (1.2–1.4)", or "worse by 200 kB". A mean that is no worse has no number:
// "1 times worse" would be read as twice as much.
func useDifference(e *result.Estimate) string {
	text, none := wording.Text("uses.apart", Human(e.Value, e.Unit)), 0.0
	if e.Name != "difference" {
		text, none = wording.Text("uses.times", wording.Number(e.Value)), 1
	}
	if e.Value <= none || text == wording.Text("uses.times", wording.Number(1)) {
		text = wording.Text("uses.even")
	}
	if e.CI == nil {
		return wording.Text("uses.few", text, Count(e.N, "round")) // no interval
	}
	return text + TextIf(e.CI.Low != e.CI.High, " ("+RangeText(ScaleOf(e.Unit, e.Value), e.CI, e.Unit)+")")
}

// useFigure is a figure of a candidate, an empty one where a result lacks it.
func useFigure(k result.UseCandidate, at int) result.UseFigure {
	if at < len(k.Figures) {
		return k.Figures[at]
	}
	return result.UseFigure{}
}

// addUseFigures adds the figures by a criterion to the cells of the candidates
// that it compared. All have one scale.
func (v *View) addUseFigures(u result.Use, at int, columns []string, cells []UseCell) {
	x := u.Criteria[at]
	var values []float64
	top := 0.0
	for _, k := range u.Candidates {
		if e := useFigure(k, at).Estimate; e != nil && IsFinite(e.Value) {
			values, top = append(values, e.Value), max(top, e.Value)
		}
	}
	largest := top
	for _, k := range u.Candidates { // an interval may be far longer than all bars
		if e := useFigure(k, at).Estimate; e != nil && e.CI != nil {
			top = max(top, min(e.CI.High, 2*largest))
		}
	}
	sc := ColumnScale(x.Unit, values...)
	for _, k := range u.Candidates {
		f, c := useFigure(k, at), &cells[slices.Index(columns, Plain(k.Title, useTitle))]
		e := f.Estimate
		switch {
		case e == nil && (at == 0 || f.Rank != ""):
			c.Missing = FirstOf(v.notMeasured(k.Cases), Plain(f.Why, 200))
			continue
		case e == nil || at > 0 && f.Rank == "":
			continue // an earlier criterion excluded it
		}
		out := UseFigure{Criterion: useHeading(x), Value: wording.WithNoun(x.Op, sc.Text(e.Value)), Class: useClasses[f.Rank],
			Rank: useOutcome(f)}
		if f.Rank == result.RankBest && u.Choice == result.Undecided && at == u.DecidedBy {
			out.Rank, out.Class = wording.Text("uses.ahead"), result.CannotTell
		}
		share := func(value float64) float64 { return math.Round(1000*min(max(value, 0)/cmp.Or(top, 1), 1)) / 10 }
		out.Bar = max(share(e.Value), 0.5)
		if e.CI != nil {
			out.Interval = wording.WithNoun(x.Op, RangeText(sc, e.CI, e.Unit))
			if out.From = share(e.CI.Low); e.CI.Low != e.CI.High {
				out.Span = max(share(e.CI.High)-out.From, 0.5)
			}
		}
		c.Figures = append(c.Figures, out)
	}
}

// notMeasured is the reason of the first of some cases that was not measured,
// without the advice that follows it.
func (v *View) notMeasured(ids []string) string {
	for _, c := range v.Result.Cases {
		if slices.Contains(ids, c.ID) && c.Status != result.Done {
			reason, _, _ := strings.Cut(c.Reason, "; hint: ")
			return Plain(v.Result.DisplayStatus(&c), 20) + TextIf(reason != "", ": "+Plain(reason, 120))
		}
	}
	return ""
}

// useOutcome is what a candidate came to by a criterion.
func useOutcome(f result.UseFigure) string {
	switch {
	case f.Ratio == nil || f.Rank == result.RankEqual:
		return named("rank", f.Rank, 20)
	case f.Rank == result.RankUndecided:
		return "? " + useDifference(f.Ratio)
	}
	return useDifference(f.Ratio)
}
