package report

import (
	"math"
	"slices"
	"strings"

	"dmgbench/internal/result"
)

// barsPerChart keeps a picture short enough for a screen; more cases make more pictures.
const barsPerChart = 24

// group is what the bars of one colour show.
type group struct {
	name, phase, op string
	cycle           int
}

// barCharts draw every rate by case and phase: one picture a quantity, or one for
// all where there is a single phase. Cycles are drawn along time elsewhere.
func (v *View) barCharts() []Chart {
	if len(v.Sections) == 0 || v.Sections[0].ID != "speeds" {
		return nil
	}
	f := v.Sections[0].Figures
	var phases []string
	for _, k := range f.Keys {
		if k.Cycle == 0 {
			phases = AppendNew(phases, k.Phase)
		}
	}
	var out []Chart
	if len(phases) == 1 && len(f.Ops) > 1 {
		var groups []group
		for _, op := range f.Ops {
			groups = append(groups, group{name: QuantityName(op), phase: phases[0], op: op})
		}
		return v.barChart(f, "speed", barTitle(f.Ops, "B/s")+PhaseSuffix(phases[0]), groups)
	}
	for _, op := range f.Ops {
		var groups []group
		for _, phase := range phases {
			if f.Any(op, func(s *result.Summary) bool { return s.Phase == phase && s.Cycle == 0 }) {
				groups = append(groups, group{name: FirstOf(Plain(phase, 40), QuantityName(op)), phase: phase, op: op})
			}
		}
		if len(groups) > 0 {
			out = append(out, v.barChart(f, "speed-"+slug(op), barTitle([]string{op}, "B/s"), groups)...)
		}
	}
	return out
}

// barTitle names the quantities of a chart if they are few: "Write and read speed of each case".
func barTitle(ops []string, unit string) string {
	names := make([]string, len(ops))
	for i, op := range ops {
		names[i] = QuantityName(op)
	}
	return Capitalize(strings.TrimSpace(TextIf(len(ops) < 3, strings.Join(names, " and ")) + TextIf(unit == "B/s", " speed") + " of each case"))
}

func PhaseSuffix(phase string) string {
	if phase == "" {
		return ""
	}
	return ", phase “" + Plain(phase, 40) + "”"
}

// roundUp is the next value that ends an axis on a tick.
func roundUp(v float64) float64 {
	if v <= 0 || !IsFinite(v) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	step := power / 2
	if v/power < 2.5 {
		step = power / 5
	}
	return digits(math.Ceil(v/step-1e-9) * step)
}

// Capitalize starts a text with a capital.
func Capitalize(s string) string {
	r := []rune(s)
	if len(r) == 0 {
		return s
	}
	return strings.ToUpper(string(r[0])) + string(r[1:])
}

// barChart draws groups of bars, split over several pictures if there are many cases.
func (v *View) barChart(f Figures, id, heading string, groups []group) []Chart {
	var cases []string
	for _, k := range f.Keys {
		for _, g := range groups {
			if f.By[FigureKey{k.CaseID, g.phase, g.cycle}][g.op] != nil {
				cases = AppendNew(cases, k.CaseID)
			}
		}
	}
	top, unit := f.top(groups), f.unit(groups[0].op)
	var out []Chart
	parts := (len(cases) + barsPerChart - 1) / barsPerChart
	for i, part := range slices.Collect(slices.Chunk(cases, barsPerChart)) {
		c := Chart{ID: id, Section: "speed", Heading: heading, FixedLegend: true, Flipped: true,
			Height: 34 + len(part)*(14+18*len(groups)),
			X:      Axis{Name: barAxis(groups, unit), Unit: unit, Low: pointer(0), High: pointer(roundUp(top * 1.03)), Values: []float64{top}},
		}
		if parts > 1 {
			c.ID += "-" + Human(float64(i+1), "1")
			c.Heading += " (" + Human(float64(i+1), "1") + " of " + Human(float64(parts), "1") + ")"
		}
		for _, caseID := range part {
			c.Y.Categories = append(c.Y.Categories, v.CaseName(caseID))
		}
		v.bars(&c, f, groups, part)
		out = append(out, c)
	}
	return out
}

// barAxis names the quantity that the bars have in common.
func barAxis(groups []group, unit string) string {
	if unit == "B/s" {
		return "speed"
	}
	var names []string
	for _, g := range groups {
		names = AppendNew(names, QuantityName(g.op))
	}
	return strings.Join(names, ", ")
}

// unit is the base unit of a quantity.
func (f Figures) unit(op string) string {
	for _, k := range f.Keys {
		if s := f.By[k][op]; s != nil {
			return Headline(s).Unit
		}
	}
	return ""
}

// top is the largest value that has to fit on the axis: everything measured and
// what is published and comparable. The rest is named at the edge.
func (f Figures) top(groups []group) float64 {
	top := 0.0
	for _, k := range f.Keys {
		for _, g := range groups {
			s := f.By[k][g.op]
			if s == nil || k.Phase != g.phase {
				continue
			}
			h := Headline(s)
			top = max(top, h.Value)
			if h.CI != nil && IsFinite(h.CI.High) {
				top = max(top, min(h.CI.High, h.Value*3))
			}
			for _, p := range s.Published {
				if mid := Midpoint(p); IsFinite(mid) && (p.Comparable || mid <= 1.3*h.Value) {
					top = max(top, mid)
				}
			}
		}
	}
	return top
}

// bars adds a bar and a whisker series for each group, the legend of published marks, and the notes.
func (v *View) bars(c *Chart, f Figures, groups []group, cases []string) {
	var intervals, stats, ns []string
	published, uncomparable, bare, clipped := false, false, false, false
	values := slices.Clone(c.X.Values)
	for _, g := range groups {
		for _, id := range cases {
			if s := f.By[FigureKey{id, g.phase, g.cycle}][g.op]; s != nil {
				values = append(values, Headline(s).Value)
			}
		}
	}
	sc := ColumnScale(c.X.Unit, values...)
	t := Table{ID: c.ID + "-table", Caption: c.Heading, Columns: Columns("<case", "<bars", WithUnit("measured", sc), "interval", "published", "<n")}
	for slot, g := range groups {
		bar, whisker := Series{Role: "bar", Name: g.name}, Series{Role: "whisker", Name: g.name}
		for i, caseID := range cases {
			s := f.By[FigureKey{caseID, g.phase, g.cycle}][g.op]
			if s == nil {
				bar.Points, bar.Tips = append(bar.Points, nil), append(bar.Tips, "")
				continue
			}
			h := Headline(s)
			low, high := math.NaN(), math.NaN()
			if h.CI != nil {
				low, high = h.CI.Low, h.CI.High
				intervals = AppendNew(intervals, DescribeInterval(h.CI))
				clipped = clipped || high > *c.X.High
			} else {
				bare = true
			}
			pub, comparable := firstPublished(s)
			published, uncomparable = published || IsFinite(pub) && comparable, uncomparable || IsFinite(pub) && !comparable
			stats, ns = AppendNew(stats, StatisticName(h.Name)), AppendNew(ns, SampleSize(s))
			bar.Points = append(bar.Points, digits(h.Value))
			row := FigureRow(s, PhaseName(g.phase, g.cycle), sc)
			bar.Tips = append(bar.Tips, tip(row))
			whisker.Points = append(whisker.Points, []any{i, orNull(low), orNull(high), orNull(pub), bit(comparable), slot, len(groups), digits(h.Value), sc.Number(h.Value)})
			t.Rows = append(t.Rows, []Cell{{Text: v.CaseName(caseID), Class: "head"}, {Text: g.name}, {Text: sc.Number(h.Value)}, {Text: row[3]}, {Text: row[4]}, {Text: row[6], Class: "muted"}})
		}
		whisker.Tips = bar.Tips
		c.Series = append(c.Series, bar, whisker)
	}
	c.publishedLegend(published, uncomparable)
	c.Sub = Capitalize(strings.Join(stats, " / ")) + "; " + strings.Join(ns, " / ") + "."
	whiskers := "No interval: too few rounds."
	if len(intervals) > 0 {
		whiskers = "Whiskers: " + strings.Join(intervals, "; ") + "." + TextIf(bare, " No whisker: no interval.") + TextIf(clipped, " An arrow goes on beyond the scale.")
	}
	c.Notes = append(c.Notes, whiskers+TextIf(uncomparable, " Grey marks were published for other conditions (see deviations); those off the scale stand at its edge."), v.Provenance)
	c.Table = t
}

// publishedLegend says what the marks of published figures are.
func (c *Chart) publishedLegend(published, uncomparable bool) {
	if published {
		c.Series = append(c.Series, Series{Role: "published", Name: "published"})
	}
	if uncomparable {
		c.Series = append(c.Series, Series{Role: "uncomparable", Name: "published, not comparable"})
	}
}

// firstPublished prefers a figure that may be compared. One that was published for
// a part of the files does not belong beside a bar of all of them.
func firstPublished(s *result.Summary) (value float64, comparable bool) {
	value = math.NaN()
	for _, p := range s.Published {
		v := Midpoint(p)
		if e := ComparedEstimate(s, p); e != nil && strings.Contains(e.Name, "@") {
			continue
		}
		if IsFinite(v) && v > 0 && (!IsFinite(value) || p.Comparable && !comparable) {
			value, comparable = v, p.Comparable
		}
	}
	return value, comparable
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// tip is the text shown when a bar is pointed at.
func tip(row []string) string {
	lines := []string{row[1] + ": " + row[2]}
	for i, name := range []string{"interval", "published", "measured ÷ published", "n"} {
		if text := row[i+3]; text != "" {
			lines = append(lines, name+": "+text)
		}
	}
	return strings.Join(lines, "\n")
}
