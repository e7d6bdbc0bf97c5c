package report

import (
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/analysis"
	"dmgbench/internal/plan"
	"dmgbench/internal/report/wording"
)

const (
	forestRows = 28   // rows of one picture; more rows make more pictures
	forestSpan = 1000 // an interval is cut at this ratio and its inverse: beyond, it narrows nothing down
)

// sessionUnit is the unit of intervals that cover how far sessions differ.
const sessionUnit = "session"

// outcomes are the series of a forest plot in the order of the legend.
var outcomes = []string{"better", "worse", "changed", "the same", "~ undecided"}

// outcomeOf is the series that a row belongs to, in outcomes.
func outcomeOf(r analysis.CompareRow) int {
	switch r.Status {
	case analysis.RowChanged:
		return map[int]int{1: 0, -1: 1, 0: 2}[r.Better]
	case analysis.RowSame:
		return 3
	}
	return 4
}

// forests draw the ratios of one quantity on one side to the baseline as forest
// plots: a row for each case and phase, its ratio as a point with its interval.
func forests(c *analysis.Comparison, op, side, id string, name func(analysis.CompareRow) string) []Chart {
	rows := Where(c.Rows, func(r analysis.CompareRow) bool {
		return r.Op == op && r.Side == side && r.Ratio > 0 && IsFinite(r.Ratio)
	})
	heading := Capitalize(QuantityName(op)) + ": " + Plain(side, 60) + " against " + Plain(c.Sides[0].Name, 60)
	return InParts(rows, forestRows, func(rows []analysis.CompareRow, _ int) Chart {
		top := float64(len(rows)) - 0.5
		ch := Chart{ID: id, Heading: heading, Flipped: true, Height: 34 + 26*len(rows),
			X: Axis{Name: "ratio to the baseline", Unit: "1"},
			Y: RowAxis(Map(rows, name)), Table: forestTable(rows, name),
			Sub:   "A ratio of 1 is no change; to the right there is more than on the baseline.",
			Notes: append([]string{forestNote(rows)}, forestProvenance(c, side)...)}
		intervals := Series{Role: "level", Name: "95 % interval"}
		series := Map(outcomes, func(name string) Series { return Series{Role: "outcome", Name: name} })
		series[len(series)-1].Role = "uncomparable"
		least, most := c.Within(plan.Quantity(op))
		low, high := min(1, least), max(1, most)
		for i, r := range rows {
			y, s := float64(i), &series[outcomeOf(r)]
			s.Marks = append(s.Marks, Mark{X: r.Ratio, Y: y, Tip: name(r) + ": " +
				strings.Trim(Plain(r.Effect, 100)+"; "+rowBasis(r), "; ")})
			low, high = min(low, r.Ratio), max(high, r.Ratio)
			if r.CI != nil && r.CI.Low > 0 && IsFinite(r.CI.High) {
				intervals.Marks = append(intervals.Marks, Point(r.CI.Low, y), Point(r.CI.High, y), Gap())
				low, high = min(low, max(r.CI.Low, 1.0/forestSpan)), max(high, min(r.CI.High, forestSpan))
			}
		}
		ch.X.FitLog(low, high, 1.03)
		ch.Add(uprights("ideal", "no change", -0.5, top, 1),
			uprights("faint", "threshold, "+Percent(c.Threshold), -0.5, top, least, most), intervals)
		ch.Add(series...)
		return ch
	})
}

// uprights are upright lines from low to high.
func uprights(role, name string, low, high float64, at ...float64) Series {
	s := Series{Role: role, Name: name}
	for _, x := range at {
		s.Marks = append(s.Marks, Point(x, low), Point(x, high), Gap())
	}
	return s
}

func forestTable(rows []analysis.CompareRow, name func(analysis.CompareRow) string) Table {
	t := Table{Caption: "ratios", Columns: Columns("<", "ratio", "interval", "<sessions", "p after Holm", "<change")}
	for _, r := range rows {
		interval, p := "none", ""
		if r.CI != nil {
			interval = Human(r.CI.Low, "1") + "–" + Human(r.CI.High, "1") +
				TextIf(r.CI.Unit != sessionUnit, " (over "+replicated(r.CI.Unit)+")")
		}
		if r.Holm != nil {
			p = wording.P(*r.Holm).Short()
		}
		sessions := fmt.Sprintf("%d and %d", len(r.Base.Sessions), len(r.Value.Sessions))
		t.Rows = append(t.Rows, TextRow(name(r), Human(r.Ratio, "1"), interval, sessions, p, Plain(r.Effect, 100)))
	}
	return t
}

// forestNote explains the bars: those over the rounds of one session a side do
// not cover how far sessions differ.
func forestNote(rows []analysis.CompareRow) string {
	var over []string
	decided := false
	for _, r := range rows {
		if r.CI != nil {
			over, decided = AppendNew(over, replicated(r.CI.Unit)), decided || r.P != nil
		}
	}
	return Phrase("forest-bars", map[string]any{"Over": over, "Decided": decided})
}

// forestProvenance names inside the picture what was compared: facts that the
// sides share are named once.
func forestProvenance(c *analysis.Comparison, side string) []string {
	var sizes, facts []string
	for i, s := range c.Sides {
		if i > 0 && s.Name != side {
			continue
		}
		sizes = append(sizes, Plain(s.Name, nameLength)+": "+Count(s.Sessions, "session")+", "+Count(s.Rounds, "round"))
		for _, f := range s.Facts {
			if slices.Contains([]string{"model", "cpu", "os", "engine", "plan", "tool"}, f.Name) && len(f.Values) > 0 {
				facts = AppendNew(facts, f.Name+" "+factText(f.Values))
			}
		}
	}
	return []string{"n: " + strings.Join(sizes, "; ") + ". Statistic: " +
		Plain(strings.ReplaceAll(c.Estimator, "-", " "), 40) + ".",
		strings.Join(facts, " · ")}
}
