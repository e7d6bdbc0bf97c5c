package report

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// sizeCharts draw speed against file size: a line for each case, with an interval at each point where n allows.
func (v *View) sizeCharts(sets []fileSet) []Chart {
	var out []Chart
	for n, p := range drawn(sets) {
		for part, some := range pictureSets(sets, p) {
			c := Chart{ID: chartID("size", n, part), Section: "size", Height: 300, X: sizeAxis(some),
				Heading: Capitalize(QuantityName(p.op)) + " speed against file size" + PhaseSuffix(p.phase), Y: Axis{Name: "speed of a file", Unit: "B/s", Low: pointer(0)}}
			c.Table = Table{Caption: c.Heading, Columns: Columns("<case", "file size", "middle", "interval", "slowest", "fastest", "files")}
			var kinds, lacking []string
			files, binned := 0, false
			for i, s := range some {
				rows, b := v.sizesOf(s.files)
				binned = binned || b
				files += len(s.files)
				apart := math.Pow(1.025, float64(i)-float64(len(some)-1)/2)
				c.addSizes(v.CaseName(s.caseID), rows, apart)
				for _, r := range rows {
					if r.interval != nil {
						kinds = AppendNew(kinds, DescribeInterval(r.interval))
					} else {
						lacking = AppendNew(lacking, r.withoutBecause)
					}
				}
			}
			clipped := c.thinIntervals()
			c.Sub = "Each point: " + v.middleText() + TextIf(binned, " (sizes taken together by thirds of an octave)") + "; " + Count(files, "file") + "."
			c.Notes = []string{intervalNote(kinds, lacking, clipped) + TextIf(len(some) > 1, " Cases stand a little apart sideways.") + workersText(some), v.Provenance}
			out = append(out, c)
		}
	}
	return out
}

// addSizes adds the line of one case with its intervals; apart moves it sideways, so that they do not hide each other.
func (c *Chart) addSizes(name string, rows []bySize, apart float64) {
	line, bars := Series{Role: "line", Name: name}, Series{Role: "error", Name: name}
	for _, r := range rows {
		line.Points = append(line.Points, xy(r.size*apart, r.middle))
		line.Tips = append(line.Tips, strings.Join(append([]string{Brief(r.size, "B")}, r.lines()...), "\n"))
		c.Y.Values = append(c.Y.Values, r.middle)
		interval := Cell{Text: "—", Class: "muted", Title: r.withoutBecause}
		if ci := r.interval; ci != nil && IsFinite(ci.Low) && IsFinite(ci.High) {
			bars.Points = append(bars.Points, []any{digits(r.size * apart), digits(ci.Low), digits(ci.High)})
			interval = Cell{Text: Human(ci.Low, "B/s") + "–" + Human(ci.High, "B/s"), Title: DescribeInterval(ci)}
		}
		c.Table.Rows = append(c.Table.Rows, []Cell{{Text: name, Class: "head"}, {Text: Brief(r.size, "B")}, {Text: Human(r.middle, "B/s")}, interval,
			{Text: Human(r.low, "B/s")}, {Text: Human(r.top, "B/s")}, {Text: strconv.Itoa(r.n)}})
	}
	c.Series = append(c.Series, line)
	if len(bars.Points) > 0 {
		c.Series = append(c.Series, bars)
	}
}

// manyBars is the number of intervals from which they are drawn thin and light, so that the lines show through.
const manyBars = 48

// thinIntervals makes intervals recede where they are many, and ends the axis as [Chart.capIntervals] does, sooner in that case.
func (c *Chart) thinIntervals() (clipped bool) {
	bars := 0
	for _, s := range c.Series {
		bars += bit(s.Role == "error") * len(s.Points)
	}
	if bars <= manyBars {
		return c.capIntervals(3)
	}
	clipped = c.capIntervals(1.5)
	for i, s := range c.Series {
		if s.Role == "error" {
			c.Series[i].Role = "thin"
		}
	}
	return clipped
}

// lines say a middle in words, for tips.
func (b bySize) lines() []string {
	out := []string{Human(b.middle, "B/s") + ", " + Count(b.n, "file")}
	if b.interval != nil {
		out = append(out, Human(b.interval.Low, "B/s")+"–"+Human(b.interval.High, "B/s")+", "+DescribeInterval(b.interval))
	}
	if b.n > 1 {
		out = append(out, "slowest "+Human(b.low, "B/s")+", fastest "+Human(b.top, "B/s"))
	}
	return out
}

// middleText says what [View.middle] is in this run.
func (v *View) middleText() string {
	if v.Result.Rounds >= minRounds {
		return "geometric mean over " + Count(v.Result.Rounds, "round") + " of the median file of each size"
	}
	return "median file of each size"
}

// intervalNote says what the bars mean, or why there are none.
func intervalNote(kinds, lacking []string, clipped bool) string {
	slices.Sort(lacking)
	switch {
	case len(kinds) == 0:
		return "No interval: " + FirstOf(strings.Join(NonEmpty(lacking), "; "), "too few rounds") + "."
	case len(kinds) > 3: // exact levels differ with n
		kinds = append(kinds[:2:2], "and the like")
	}
	return "Bars: " + strings.Join(kinds, "; ") + "." + TextIf(len(lacking) > 0, " No bar: too few files.") + TextIf(clipped, " An arrow goes on beyond the scale.")
}
