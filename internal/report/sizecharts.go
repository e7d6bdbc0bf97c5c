package report

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// sizeCharts draw speed against file size: a line for each case, with an interval at each point where n allows.
func (v *view) sizeCharts(sets []fileSet) []chart {
	var out []chart
	for n, p := range drawn(sets) {
		for part, some := range pictureSets(sets, p) {
			c := chart{id: chartID("size", n, part), section: "size", height: 300, x: sizeAxis(some),
				heading: title(words(p.op)) + " speed against file size" + phaseText(p.phase), y: axis{name: "speed of a file", unit: "B/s", low: pointer(0)}}
			c.table = table{Caption: c.heading, Columns: []column{{"", "case", true}, {"", "file size", false}, {"", "middle", false}, {"", "interval", false},
				{"", "slowest", false}, {"", "fastest", false}, {"", "files", false}}}
			var kinds, lacking []string
			files, binned := 0, false
			for i, s := range some {
				rows, b := v.sizesOf(s.files)
				binned = binned || b
				files += len(s.files)
				apart := math.Pow(1.025, float64(i)-float64(len(some)-1)/2)
				c.addSizes(v.name(s.caseID), rows, apart)
				for _, r := range rows {
					if r.interval != nil {
						kinds = appendNew(kinds, ciText(r.interval))
					} else {
						lacking = appendNew(lacking, r.withoutBecause)
					}
				}
			}
			clipped := c.thinIntervals()
			c.sub = "Each point: " + v.middleText() + zero(binned, " (sizes taken together by thirds of an octave)") + "; " + count(files, "file") + "."
			c.notes = []string{intervalNote(kinds, lacking, clipped) + zero(len(some) > 1, " Cases stand a little apart sideways.") + workersText(some), v.provenance}
			out = append(out, c)
		}
	}
	return out
}

// addSizes adds the line of one case with its intervals; apart moves it sideways, so that they do not hide each other.
func (c *chart) addSizes(name string, rows []bySize, apart float64) {
	line, bars := series{role: "line", name: name}, series{role: "error", name: name}
	for _, r := range rows {
		line.points = append(line.points, xy(r.size*apart, r.middle))
		line.tips = append(line.tips, strings.Join(append([]string{brief(r.size, "B")}, r.lines()...), "\n"))
		c.y.values = append(c.y.values, r.middle)
		interval := cell{Text: "—", Class: "muted", Title: r.withoutBecause}
		if ci := r.interval; ci != nil && finite(ci.Low) && finite(ci.High) {
			bars.points = append(bars.points, []any{digits(r.size * apart), digits(ci.Low), digits(ci.High)})
			interval = cell{Text: human(ci.Low, "B/s") + "–" + human(ci.High, "B/s"), Title: ciText(ci)}
		}
		c.table.Rows = append(c.table.Rows, []cell{{Text: name, Class: "head"}, {Text: brief(r.size, "B")}, {Text: human(r.middle, "B/s")}, interval,
			{Text: human(r.low, "B/s")}, {Text: human(r.top, "B/s")}, {Text: strconv.Itoa(r.n)}})
	}
	c.series = append(c.series, line)
	if len(bars.points) > 0 {
		c.series = append(c.series, bars)
	}
}

// manyBars is the number of intervals from which they are drawn thin and light, so that the lines show through.
const manyBars = 48

// thinIntervals makes intervals recede where they are many, and ends the axis as [chart.capIntervals] does, sooner in that case.
func (c *chart) thinIntervals() (clipped bool) {
	bars := 0
	for _, s := range c.series {
		bars += bit(s.role == "error") * len(s.points)
	}
	if bars <= manyBars {
		return c.capIntervals(3)
	}
	clipped = c.capIntervals(1.5)
	for i, s := range c.series {
		if s.role == "error" {
			c.series[i].role = "thin"
		}
	}
	return clipped
}

// lines say a middle in words, for tips.
func (b bySize) lines() []string {
	out := []string{human(b.middle, "B/s") + ", " + count(b.n, "file")}
	if b.interval != nil {
		out = append(out, human(b.interval.Low, "B/s")+"–"+human(b.interval.High, "B/s")+", "+ciText(b.interval))
	}
	if b.n > 1 {
		out = append(out, "slowest "+human(b.low, "B/s")+", fastest "+human(b.top, "B/s"))
	}
	return out
}

// middleText says what [view.middle] is in this run.
func (v *view) middleText() string {
	if v.result.Rounds >= minRounds {
		return "geometric mean over " + count(v.result.Rounds, "round") + " of the median file of each size"
	}
	return "median file of each size"
}

// intervalNote says what the bars mean, or why there are none.
func intervalNote(kinds, lacking []string, clipped bool) string {
	slices.Sort(lacking)
	switch {
	case len(kinds) == 0:
		return "No interval: " + firstOf(strings.Join(nonEmpty(lacking), "; "), "too few rounds") + "."
	case len(kinds) > 3: // exact levels differ with n
		kinds = append(kinds[:2:2], "and the like")
	}
	return "Bars: " + strings.Join(kinds, "; ") + "." + zero(len(lacking) > 0, " No bar: too few files.") + zero(clipped, " An arrow goes on beyond the scale.")
}
