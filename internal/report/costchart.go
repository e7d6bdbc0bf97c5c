package report

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// casesPerCost is how many waterfalls one picture carries.
const casesPerCost = 8

// costCharts draw where the time of the same files went, one waterfall a case.
func (v *View) costCharts(sets []fileSet) []Chart {
	var out []Chart
	for n, p := range drawn(sets) {
		part := 0
		costs := v.costs(p)
		for i := range v.Result.Cases {
			group := costs[v.Result.Cases[i].ID]
			if len(group) < 2 { // a directory alone has nothing to be set against
				continue
			}
			for some := range slices.Chunk(group, casesPerCost) {
				out = append(out, v.costChart(chartID("cost", n, part), p, some))
				part++
			}
		}
	}
	return out
}

func (v *View) costChart(id string, p picture, cases []costCase) Chart {
	slots, top := 0, 0.0
	for _, c := range cases {
		slots = max(slots, len(c.parts))
		at := 0.0
		for _, p := range c.parts {
			at += p.e.Value
			top = max(top, at)
			if p.e.CI != nil {
				top = max(top, min(at-p.e.Value+p.e.CI.High, 1.5*at))
			}
		}
	}
	c := Chart{ID: id, Section: "cost", Flipped: true, HeadedTips: true, Heading: "Where the time went: " + QuantityName(p.op) + PhaseSuffix(p.phase),
		Height: 30 + len(cases)*(18*slots+14), X: Axis{Name: "time", Unit: "s", Low: pointer(0), High: pointer(roundUp(top * 1.12)), Values: []float64{top}},
		Y: Axis{Categories: []string{}}}
	c.Table = Table{Caption: c.Heading, Columns: Columns("<case", "<part", "time", "of the time inside the clock", "interval", "rounds")}
	by, names := map[string]*Series{}, partNames(cases)
	for _, name := range names {
		by[name] = &Series{Role: "part", Name: name}
	}
	var kinds, ns []string
	for row, one := range cases {
		c.Y.Categories = append(c.Y.Categories, v.CaseName(one.c.ID))
		ns = AppendNew(ns, Count(one.rounds, "round"))
		at := 0.0
		for slot, part := range one.parts {
			kinds = c.addPart(by[part.name], one, row, slot, slots, at, kinds)
			at += part.e.Value
		}
	}
	for _, name := range names {
		c.Series = append(c.Series, *by[name])
	}
	w := works(cases[0].c, p)
	for _, one := range w { // all rounds of all cases have as many files
		c.Sub = "The same " + Count(one.files, "file") + " (" + Human(float64(one.bytes), "B") + ") in the native folder and in each image; mean of " + strings.Join(ns, " / ") + "."
	}
	whiskers := "No interval: too few rounds."
	if len(kinds) > 0 {
		whiskers = "Whiskers, at the end of each part: " + strings.Join(kinds, "; ") + ", of that part." + TextIf(c.cut(), " One without a cap goes on beyond the scale.")
	}
	c.Notes = []string{"Each part is what one thing more took in the same rounds; hollow parts took less. Outside the clock the program opens and closes files and makes their data: that is in no rate. " +
		whiskers + v.wayIn() + unsplit(cases), v.Provenance}
	return c
}

// cut reports whether an interval of a waterfall is longer than the scale.
func (c *Chart) cut() bool {
	for _, s := range c.Series {
		for _, p := range s.Points {
			low, okLow := p.([]any)[3].(float64)
			high, okHigh := p.([]any)[4].(float64)
			if okLow && low < 0 || okHigh && high > *c.X.High {
				return true
			}
		}
	}
	return false
}

// partNames are the parts of all cases in the order in which pictures and tables have them: from below, the harness last.
func partNames(cases []costCase) []string {
	at := map[string]int{partNative: -2, partReserved: -1, partInside: 1 << 8, partOutside: 1 << 9}
	var out []string
	for _, c := range cases {
		for _, p := range c.parts {
			if p.layers != 0 {
				at[p.name] = int(p.layers)
			}
			out = AppendNew(out, p.name)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return at[a] - at[b] })
	return out
}

// addPart adds one bar of a waterfall with its row.
func (c *Chart) addPart(s *Series, one costCase, row, slot, slots int, at float64, kinds []string) []string {
	part := one.parts[slot]
	low, high, interval := math.NaN(), math.NaN(), "—"
	if ci := part.e.CI; ci != nil {
		low, high = at+ci.Low, at+ci.High
		interval = signed(ci.Low, false) + " to " + signed(ci.High, false)
		kinds = AppendNew(kinds, DescribeInterval(ci))
	}
	label := signed(part.e.Value, slot > 0)
	s.Points = append(s.Points, []any{row, digits(at), digits(at + part.e.Value), orNull(low), orNull(high), slot, slots, len(one.parts), label})
	share := ""
	if part.name != partOutside && one.total > 0 {
		share = Percent(part.e.Value / one.total)
	}
	s.Tips = append(s.Tips, strings.Join(NonEmpty([]string{c.Y.Categories[row], part.name, label + TextIf(share != "", ", "+share+" of the time inside the clock"),
		TextIf(part.e.CI != nil, interval), Count(one.rounds, "round")}), "\n"))
	c.Table.Rows = append(c.Table.Rows, []Cell{{Text: c.Y.Categories[row], Class: "head"}, {Text: part.name}, {Text: label}, {Text: share},
		{Text: interval}, {Text: strconv.Itoa(one.rounds)}})
	return kinds
}

// signed writes a time; what comes on top of something else has its sign.
func signed(seconds float64, plus bool) string {
	text := Human(seconds, "s")
	if plus && seconds >= 0 {
		return "+" + text
	}
	return strings.Replace(text, "-", "−", 1)
}
