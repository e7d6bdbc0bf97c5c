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
func (v *view) barCharts() []chart {
	if len(v.sections) == 0 || v.sections[0].id != "speeds" {
		return nil
	}
	f := v.sections[0].figures
	var phases []string
	for _, k := range f.keys {
		if k.cycle == 0 {
			phases = appendNew(phases, k.phase)
		}
	}
	var out []chart
	if len(phases) == 1 && len(f.ops) > 1 {
		var groups []group
		for _, op := range f.ops {
			groups = append(groups, group{name: words(op), phase: phases[0], op: op})
		}
		return v.barChart(f, "speed", barTitle(f.ops, "B/s")+phaseText(phases[0]), groups)
	}
	for _, op := range f.ops {
		var groups []group
		for _, phase := range phases {
			if f.some(op, func(s *result.Summary) bool { return s.Phase == phase && s.Cycle == 0 }) {
				groups = append(groups, group{name: firstOf(plain(phase, 40), words(op)), phase: phase, op: op})
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
		names[i] = words(op)
	}
	return title(strings.TrimSpace(zero(len(ops) < 3, strings.Join(names, " and ")) + zero(unit == "B/s", " speed") + " of each case"))
}

func phaseText(phase string) string {
	if phase == "" {
		return ""
	}
	return ", phase “" + plain(phase, 40) + "”"
}

// roundUp is the next value that ends an axis on a tick.
func roundUp(v float64) float64 {
	if v <= 0 || !finite(v) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	step := power / 2
	if v/power < 2.5 {
		step = power / 5
	}
	return digits(math.Ceil(v/step-1e-9) * step)
}

// title starts a text with a capital.
func title(s string) string {
	r := []rune(s)
	if len(r) == 0 {
		return s
	}
	return strings.ToUpper(string(r[0])) + string(r[1:])
}

// barChart draws groups of bars, split over several pictures if there are many cases.
func (v *view) barChart(f figures, id, heading string, groups []group) []chart {
	var cases []string
	for _, k := range f.keys {
		for _, g := range groups {
			if f.by[figureKey{k.caseID, g.phase, g.cycle}][g.op] != nil {
				cases = appendNew(cases, k.caseID)
			}
		}
	}
	top, unit := f.top(groups), f.unit(groups[0].op)
	var out []chart
	parts := (len(cases) + barsPerChart - 1) / barsPerChart
	for i, part := range slices.Collect(slices.Chunk(cases, barsPerChart)) {
		c := chart{id: id, section: "speed", heading: heading, fixed: true, flipped: true,
			height: 34 + len(part)*(14+18*len(groups)),
			x:      axis{name: barAxis(groups, unit), unit: unit, low: pointer(0), high: pointer(roundUp(top * 1.03)), values: []float64{top}},
		}
		if parts > 1 {
			c.id += "-" + human(float64(i+1), "1")
			c.heading += " (" + human(float64(i+1), "1") + " of " + human(float64(parts), "1") + ")"
		}
		for _, caseID := range part {
			c.y.categories = append(c.y.categories, v.name(caseID))
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
		names = appendNew(names, words(g.op))
	}
	return strings.Join(names, ", ")
}

// unit is the base unit of a quantity.
func (f figures) unit(op string) string {
	for _, k := range f.keys {
		if s := f.by[k][op]; s != nil {
			return headline(s).Unit
		}
	}
	return ""
}

// top is the largest value that has to fit on the axis: everything measured and
// what is published and comparable. The rest is named at the edge.
func (f figures) top(groups []group) float64 {
	top := 0.0
	for _, k := range f.keys {
		for _, g := range groups {
			s := f.by[k][g.op]
			if s == nil || k.phase != g.phase {
				continue
			}
			h := headline(s)
			top = max(top, h.Value)
			if h.CI != nil && finite(h.CI.High) {
				top = max(top, min(h.CI.High, h.Value*3))
			}
			for _, p := range s.Published {
				if mid := midpoint(p); finite(mid) && (p.Comparable || mid <= 1.3*h.Value) {
					top = max(top, mid)
				}
			}
		}
	}
	return top
}

// bars adds a bar and a whisker series for each group, the legend of published marks, and the notes.
func (v *view) bars(c *chart, f figures, groups []group, cases []string) {
	var intervals, stats, ns []string
	published, uncomparable, bare, clipped := false, false, false, false
	values := slices.Clone(c.x.values)
	for _, g := range groups {
		for _, id := range cases {
			if s := f.by[figureKey{id, g.phase, g.cycle}][g.op]; s != nil {
				values = append(values, headline(s).Value)
			}
		}
	}
	sc := columnScale(c.x.unit, values...)
	t := table{ID: c.id + "-table", Caption: c.heading, Columns: []column{{"", "case", true}, {"", "bars", true},
		{"", withUnit("measured", sc), false}, {"", "interval", false}, {"", "published", false}, {"", "n", true}}}
	for slot, g := range groups {
		bar, whisker := series{role: "bar", name: g.name}, series{role: "whisker", name: g.name}
		for i, caseID := range cases {
			s := f.by[figureKey{caseID, g.phase, g.cycle}][g.op]
			if s == nil {
				bar.points, bar.tips = append(bar.points, nil), append(bar.tips, "")
				continue
			}
			h := headline(s)
			low, high := math.NaN(), math.NaN()
			if h.CI != nil {
				low, high = h.CI.Low, h.CI.High
				intervals = appendNew(intervals, ciText(h.CI))
				clipped = clipped || high > *c.x.high
			} else {
				bare = true
			}
			pub, comparable := firstPublished(s)
			published, uncomparable = published || finite(pub) && comparable, uncomparable || finite(pub) && !comparable
			stats, ns = appendNew(stats, statistic(h.Name)), appendNew(ns, counted(s))
			bar.points = append(bar.points, digits(h.Value))
			row, _, _ := textRow(s, cycled(g.phase, g.cycle), sc, sameForAll{})
			bar.tips = append(bar.tips, tip(row))
			whisker.points = append(whisker.points, []any{i, orNull(low), orNull(high), orNull(pub), bit(comparable), slot, len(groups), digits(h.Value), sc.number(h.Value)})
			t.Rows = append(t.Rows, []cell{{Text: v.name(caseID), Class: "head"}, {Text: g.name}, {Text: sc.number(h.Value)}, {Text: row[3]}, {Text: row[4]}, {Text: row[6], Class: "muted"}})
		}
		whisker.tips = bar.tips
		c.series = append(c.series, bar, whisker)
	}
	c.publishedLegend(published, uncomparable)
	c.sub = title(strings.Join(stats, " / ")) + "; " + strings.Join(ns, " / ") + "."
	whiskers := "No interval: too few rounds."
	if len(intervals) > 0 {
		whiskers = "Whiskers: " + strings.Join(intervals, "; ") + "." + zero(bare, " No whisker: no interval.") + zero(clipped, " An arrow goes on beyond the scale.")
	}
	c.notes = append(c.notes, whiskers+zero(uncomparable, " Grey marks were published for other conditions (see deviations); those off the scale stand at its edge."), v.provenance)
	c.table = t
}

// publishedLegend says what the marks of published figures are.
func (c *chart) publishedLegend(published, uncomparable bool) {
	if published {
		c.series = append(c.series, series{role: "published", name: "published"})
	}
	if uncomparable {
		c.series = append(c.series, series{role: "uncomparable", name: "published, not comparable"})
	}
}

// firstPublished prefers a figure that may be compared. One that was published for
// a part of the files does not belong beside a bar of all of them.
func firstPublished(s *result.Summary) (value float64, comparable bool) {
	value = math.NaN()
	for _, p := range s.Published {
		v := midpoint(p)
		if e := comparedWith(s, p); e != nil && strings.Contains(e.Name, "@") {
			continue
		}
		if finite(v) && v > 0 && (!finite(value) || p.Comparable && !comparable) {
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
