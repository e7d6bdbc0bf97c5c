package text

import (
	"cmp"
	"math"

	"dmgbench/internal/report"
	"dmgbench/internal/report/wording"
)

// heights are the eight heights of a block.
var heights = []rune("▁▂▃▄▅▆▇█")

// trendBlocks is the number of blocks in a line; of more runs it has every second,
// third and so on.
const trendBlocks = 32

// trendSection is a trend as lines of blocks, with their first and last values.
//
// The scale is that of the picture, so that both have the same shape.
func trendSection(c report.Chart) report.Section {
	t := report.Table{Columns: report.Columns("<", "<trend", "first", "last")}
	most := 1 // the most points of a block
	for _, s := range c.Series {
		if s.Role != "line" {
			continue
		}
		each := max((len(s.Marks)+trendBlocks-1)/trendBlocks, 1)
		most = max(most, each)
		row := make([]report.Cell, 4)
		row[0].Text = s.Name
		for i, p := range s.Marks {
			if (len(s.Marks)-1-i)%each != 0 {
				continue // the newest is always among the blocks
			}
			if !p.Drawn() {
				row[1].Text += "·"
				continue
			}
			height := math.Round((p.Y - *c.Y.Low) / (*c.Y.High - *c.Y.Low) * float64(len(heights)-1))
			row[1].Text += string(heights[min(max(int(height), 0), len(heights)-1)])
			row[3].Text = report.Human(p.Y, c.Y.Unit)
			row[2].Text = cmp.Or(row[2].Text, row[3].Text)
		}
		t.Rows = append(t.Rows, row)
	}
	blocks := report.TextIf(most > 1, wording.Text("trend-blocks", most))
	low, high := report.Human(*c.Y.Low, c.Y.Unit), report.Human(*c.Y.High, c.Y.Unit)
	return report.Section{Heading: c.Heading, Sub: true, Table: &t,
		After: []string{wording.Text("trend-scale", low, high, blocks)}}
}

// withTrends puts what print makes of them in the place of charts that are
// trends; the other charts are on the page only.
func withTrends(sections []report.Section, print func(report.Chart) []report.Section) []report.Section {
	var out []report.Section
	for _, s := range sections {
		var trends []report.Section
		for _, c := range s.Charts {
			if c.Trend {
				trends = append(trends, print(c)...)
			}
		}
		if len(trends) > 0 {
			trends = append(trends, report.Section{After: s.After})
			s.After = nil
		}
		out = append(append(out, s), trends...)
	}
	return out
}
