package text

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/report/wording"
)

// This file prints charts as tables of blocks, from the definitions that the
// page draws.

// heights are the eight heights of a block.
var heights = []rune("▁▂▃▄▅▆▇█")

const (
	picturesPerKind = 2  // waterfalls, and heat maps, that a terminal has; the others are in the report
	trendBlocks     = 32 // of more runs a line of blocks has every second, third and so on
	waterfallWidth  = 26 // columns of a waterfall where the line is long enough
	besideWaterfall = 48 // columns that names and times beside it take
)

// pictures are the waterfalls and heat maps of a run for a terminal of a width.
//
// Other charts need more than a line of blocks; their tables are in the
// sections of figures.
func pictures(charts []report.Chart, width int) []report.Section {
	var out, heats []report.Section
	note, more := "", 0
	for _, c := range charts {
		switch isHeat := strings.HasPrefix(c.ID, "heat-"); {
		case isHeat && len(heats) < picturesPerKind:
			heats = append(heats, heatMap(c, width))
		case c.Section == "cost" && len(out) < picturesPerKind:
			out = append(out, waterfall(c, min(waterfallWidth, width-besideWaterfall)))
			note = "░ took less. " + c.Notes[0]
		case isHeat || c.Section == "cost":
			more++
		}
	}
	if len(out) > 0 {
		out[len(out)-1].After = append(out[len(out)-1].After, note)
	}
	if out = append(out, heats...); more > 0 {
		last := &out[len(out)-1]
		last.After = append(last.After, report.Count(more, "picture")+" like these in the report.")
	}
	return out
}

// heatMap has a row for each case and a block for each size; the height is the
// rank of the class of the value.
func heatMap(c report.Chart, width int) report.Section {
	sizes := c.X.Categories
	t := report.Table{Columns: report.Columns("<", "<", sizes[0], sizes[len(sizes)-1])}
	room := max(width-len(sizes)-24, 10)
	for _, name := range shortNames(c.Y.Categories, room) {
		blank := report.Cell{Text: strings.Repeat(" ", len(sizes))}
		t.Rows = append(t.Rows, []report.Cell{{Text: report.Plain(name, room)}, blank, {}, {}})
	}
	height := func(class int) rune { return heights[class*(len(heights)-1)/max(len(c.Series)-1, 1)] }
	var classes []string
	for class, s := range c.Series {
		classes = append(classes, string(height(class))+" "+s.Name)
		for _, p := range s.Marks {
			column, row := int(p.X), t.Rows[int(p.Y)]
			blocks := []rune(row[1].Text)
			blocks[column] = height(class)
			row[1].Text = string(blocks)
			switch column {
			case 0:
				row[2].Text = p.Label
			case len(sizes) - 1:
				row[3].Text = p.Label
			}
		}
	}
	return report.Section{Heading: c.Heading, Table: &t,
		After: []string{strings.Join(classes, ", ") + ".", strings.Replace(c.Sub, "Colour", "Height", 1)}}
}

// shortNames replaces the names of formats by their codes if a name is longer
// than a number of columns.
func shortNames(names []string, columns int) []string {
	if slices.ContainsFunc(names, func(s string) bool { return report.Width(s) > columns }) {
		return report.Map(names, plan.FormatCodes)
	}
	return names
}

// waterfall has a row for each part of a case; each part starts at the end of
// the one before. columns is the width of the bars.
func waterfall(c report.Chart, columns int) report.Section {
	t := report.Table{Columns: report.Columns("<", "<", "<", "time")}
	drawn := map[string]int{} // marks of each series: they are in the order of the rows of the chart's table
	for _, row := range c.Table.Rows {
		name := row[1].Text
		s := c.Series[slices.IndexFunc(c.Series, func(s report.Series) bool { return s.Name == name })]
		m := s.Marks[drawn[name]]
		drawn[name]++
		bar := part(m.From, m.X, *c.X.High, columns)
		t.Rows = append(t.Rows, report.TextRow(row[0].Text, name, bar, m.Label))
	}
	return report.Section{Heading: c.Heading, Table: &t, After: []string{c.Sub}}
}

// part is one bar of a waterfall; one that goes back is light.
//
// A part that is too short to be seen has one block.
func part(from, to, top float64, columns int) string {
	column := func(v float64) int { return int(math.Round(max(v, 0) / top * float64(columns))) }
	a, b, block := column(from), column(to), "█"
	if to < from {
		a, b, block = b, a, "░"
	}
	return fmt.Sprintf("%-*s", columns, strings.Repeat(" ", a)+strings.Repeat(block, max(b-a, 1)))
}

// trendSection is a trend as lines of blocks, with their first and last values.
//
// The scale is that of the picture, so that both have the same shape.
func trendSection(c report.Chart) report.Section {
	t := report.Table{Columns: report.Columns("<", "<trend", "first", "last")}
	changes, most := changePlaces(c), 1 // the most points of a block
	for _, s := range c.Series {
		if s.Role != "line" {
			continue
		}
		each, changed := max((len(s.Marks)+trendBlocks-1)/trendBlocks, 1), false
		most = max(most, each)
		row := make([]report.Cell, 4)
		row[0].Text = s.Name
		for i, p := range s.Marks {
			changed = changed || i > 0 && slices.Contains(changes, i)
			if (len(s.Marks)-1-i)%each != 0 {
				continue // the newest is always among the blocks
			}
			row[1].Text += report.TextIf(changed && row[1].Text != "", "│")
			if changed = false; !p.Drawn() {
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

// changePlaces are the runs that another version starts with: a vertical line
// is printed before them.
func changePlaces(c report.Chart) []int {
	var out []int
	for _, s := range c.Series {
		for _, p := range s.Marks {
			if s.Role == "faint" && p.Drawn() {
				out = append(out, int(math.Ceil(p.X)))
			}
		}
	}
	return slices.Compact(out) // a line has two ends
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
