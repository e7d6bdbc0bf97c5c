package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"dmgbench/internal/analysis"
	"dmgbench/internal/plan"
)

// forestMost keeps a forest plot short enough for a screen; more rows make more pictures.
const forestMost = 28

// forestKinds are what a row can say, in the order of the legend, with the role of its mark.
var forestKinds = []struct{ name, role string }{
	{"better", "outcome"}, {"worse", "outcome"}, {"changed", "outcome"}, {"the same", "outcome"}, {"~ undecided", "uncomparable"},
}

// forestKind is what a row says.
func forestKind(r analysis.CompareRow) string {
	switch {
	case r.Status == analysis.RowChanged && r.Better > 0:
		return "better"
	case r.Status == analysis.RowChanged && r.Better < 0:
		return "worse"
	case r.Status == analysis.RowChanged:
		return "changed"
	case r.Status == analysis.RowSame:
		return "the same"
	}
	return "~ undecided"
}

// forests draw the ratios of one quantity on one side as a forest plot: a row for
// each case and phase, its ratio to the baseline as a point with its interval.
func forests(c *analysis.Comparison, op, side, heading, id string, name func(analysis.CompareRow) string) []Chart {
	var rows []analysis.CompareRow
	for _, r := range c.Rows {
		if r.Op == op && r.Side == side && r.Ratio > 0 && IsFinite(r.Ratio) {
			rows = append(rows, r)
		}
	}
	var out []Chart
	for part, some := range slices.Collect(slices.Chunk(rows, forestMost)) {
		one := forest(c, some, name)
		one.ID = id
		one.Heading = Capitalize(heading) + ": " + Plain(side, 60) + " against " + Plain(c.Sides[0].Name, 60)
		if len(rows) > forestMost {
			one.ID += fmt.Sprintf("-%d", part+1)
			one.Heading += fmt.Sprintf(" (%d)", part+1)
		}
		one.Notes = append(one.Notes, forestProvenance(c, side, some)...)
		out = append(out, one)
	}
	return out
}

func forest(c *analysis.Comparison, rows []analysis.CompareRow, name func(analysis.CompareRow) string) Chart {
	n := float64(len(rows))
	ch := Chart{Flipped: true, Height: 34 + 26*len(rows), X: Axis{Name: "ratio to the baseline", Unit: "1", Log: true},
		Y: Axis{Unit: "1", Low: pointer(-0.5), High: pointer(n - 0.5)}}
	intervals := Series{Role: "level", Name: "95 % interval"}
	marks := map[string]*Series{}
	for _, k := range forestKinds {
		marks[k.name] = &Series{Role: k.role, Name: k.name}
	}
	least, most := c.Within(plan.Quantity(rows[0].Op))
	bounds := []float64{1, least, most}
	for i, r := range rows {
		ch.Y.Names, ch.Y.Ticks = append(ch.Y.Names, name(r)), append(ch.Y.Ticks, float64(i))
		y, m := float64(i), marks[forestKind(r)]
		m.Points = append(m.Points, xy(r.Ratio, y))
		m.Tips = append(m.Tips, name(r)+": "+strings.Trim(Plain(r.Effect, 100)+"; "+rowTitle(r), "; "))
		bounds = append(bounds, r.Ratio)
		if r.CI != nil && r.CI.Low > 0 && IsFinite(r.CI.High) {
			intervals.Points = append(intervals.Points, xy(r.CI.Low, y), xy(r.CI.High, y), []any{nil, nil})
			bounds = append(bounds, r.CI.Low, r.CI.High)
		}
	}
	low, high := forestSpan(bounds, rows)
	ch.X.Low, ch.X.High, ch.X.Ticks = pointer(low), pointer(high), forestTicks(low, high)
	upright := func(role, label string, at ...float64) {
		s := Series{Role: role, Name: label}
		for _, x := range at {
			s.Points = append(s.Points, xy(x, -0.5), xy(x, n-0.5), []any{nil, nil})
		}
		ch.Series = append(ch.Series, s)
	}
	upright("ideal", "no change", 1)
	upright("faint", "threshold, "+Percent(c.Threshold), least, most)
	if len(intervals.Points) > 0 {
		ch.Series = append(ch.Series, intervals)
	}
	for _, k := range forestKinds {
		if m := marks[k.name]; len(m.Points) > 0 {
			ch.Series = append(ch.Series, *m)
		}
	}
	ch.Sub = "A ratio of 1 is no change; to the right there is more than on the baseline."
	ch.Table = forestTable(rows, name)
	return ch
}

// forestSpan has room on both sides, and a width where all rows say the same. An
// interval that goes beyond forestWide is cut there, as it says nothing anyway; no ratio is:
// an empty sparse bundle takes a millionth of a new raw image.
func forestSpan(values []float64, rows []analysis.CompareRow) (low, high float64) {
	low, high = max(slices.Min(values), 1/forestWide), min(slices.Max(values), forestWide)
	for _, r := range rows {
		low, high = min(low, r.Ratio), max(high, r.Ratio)
	}
	return digits(low / 1.03), digits(high * 1.03)
}

const forestWide = 1000.0 // a float: 1/1000 of integers is 0

// forestTicks are the round ratios inside a span, about eight of them at most.
func forestTicks(low, high float64) []float64 {
	steps := []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5}
	for _, step := range steps {
		if (high-low)/step <= 8 {
			var out []float64
			for k := math.Ceil(low / step); k*step <= high; k++ {
				out = append(out, digits(k*step))
			}
			return out
		}
	}
	var out []float64
	within := []float64{1, 2, 5}
	if high > forestWide*low {
		within = within[:1]
	}
	for power := math.Pow(10, math.Floor(math.Log10(low))); power <= high; power *= 10 {
		for _, m := range within {
			if v := digits(m * power); v >= low && v <= high {
				out = append(out, v)
			}
		}
	}
	return out
}

func forestTable(rows []analysis.CompareRow, name func(analysis.CompareRow) string) Table {
	t := Table{Caption: "ratios", Columns: Columns("<", "ratio", "interval", "<sessions", "p after Holm", "<change")}
	for _, r := range rows {
		interval, p := "none", ""
		if r.CI != nil {
			if interval = human3(r.CI.Low) + "–" + human3(r.CI.High); r.CI.Unit != bySessions {
				interval += " (over " + replicated(r.CI.Unit) + ")"
			}
		}
		if r.Holm != nil {
			p = analysis.ShowP(*r.Holm)
		}
		t.Rows = append(t.Rows, []Cell{{Text: name(r), Class: "head"}, {Text: human3(r.Ratio)}, {Text: interval},
			{Text: fmt.Sprintf("%d and %d", len(r.Base.Sessions), len(r.Value.Sessions))}, {Text: p}, {Text: Plain(r.Effect, 100)}})
	}
	return t
}

// bySessions is the unit of intervals that say how far sessions differ.
const bySessions = "session"

// forestBars says what the bars are over: those over the rounds of one session a side say nothing of sessions.
func forestBars(rows []analysis.CompareRow) string {
	var over []string
	decided := false
	for _, r := range rows {
		if r.CI != nil {
			over = AppendNew(over, replicated(r.CI.Unit))
			decided = decided || r.P != nil
		}
	}
	if len(over) == 0 {
		return "Hollow marks (~): undecided."
	}
	text := "Bars: 95 % interval of the ratio over " + strings.Join(over, ", or over ") + ", not adjusted"
	if decided {
		text += "; what is called better or worse is significant after Holm's correction over all rows"
	} else {
		text += "; how far sessions differ is not in them"
	}
	return text + ". Hollow marks (~): undecided."
}

// forestProvenance says inside the picture what was compared, and what the marks are.
func forestProvenance(c *analysis.Comparison, side string, rows []analysis.CompareRow) []string {
	notes := []string{forestBars(rows)}
	var sizes []string
	at := 0
	for i, s := range c.Sides {
		if s.Name == side {
			at = i
		}
		if i == 0 || s.Name == side {
			sizes = append(sizes, Plain(s.Name, 60)+": "+Count(s.Sessions, "session")+", "+Count(s.Rounds, "round"))
		}
	}
	notes = append(notes, "n: "+strings.Join(sizes, "; ")+". Statistic: "+Plain(strings.ReplaceAll(c.Estimator, "-", " "), 40)+".")
	var facts []string
	for _, f := range c.Sides[at].Facts {
		if slices.Contains([]string{"model", "cpu", "os", "engine", "plan", "tool"}, f.Name) && len(f.Values) > 0 {
			values := plainList(f.Values, 60)
			if i := slices.IndexFunc(c.Sides[0].Facts, func(b analysis.CompareFact) bool { return b.Name == f.Name }); i >= 0 && !slices.Equal(c.Sides[0].Facts[i].Values, f.Values) {
				values = []string{strings.Join(plainList(c.Sides[0].Facts[i].Values, 60), " / ") + " → " + strings.Join(values, " / ")}
			}
			facts = append(facts, f.Name+" "+strings.Join(values, " / "))
		}
	}
	return append(notes, strings.Join(facts, " · "))
}
