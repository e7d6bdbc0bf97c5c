package report

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
)

// trendRuns is how many marks a line of blocks has; of more runs it has every second, third and so on.
const trendRuns = 32

// trendEach is of how many points one is printed.
func trendEach(points int) int { return max((points+trendRuns-1)/trendRuns, 1) }

// trendRows prints the lines of a chart as blocks, with what they begin and end with.
func trendRows(c chart) [][]string {
	rows := [][]string{{"", "", "first", "last"}}
	turns := trendTurns(c)
	for _, s := range c.series {
		if s.role != "line" {
			continue
		}
		var values []float64
		blocks, each, turned := "", trendEach(len(s.points)), false
		for i, p := range s.points {
			turned = turned || i > 0 && slices.Contains(turns, i)
			if (len(s.points)-1-i)%each != 0 {
				continue // the newest is always there
			}
			if turned && blocks != "" {
				blocks += "│"
			}
			turned = false
			y, ok := p.([]any)[1].(float64)
			if !ok {
				blocks += "·"
				continue
			}
			values = append(values, y)
			blocks += string(heightBlocks[min(max(int(math.Round((y-*c.y.low)/(*c.y.high-*c.y.low)*float64(len(heightBlocks)-1))), 0), len(heightBlocks)-1)])
		}
		row := []string{s.name, blocks, "", ""}
		if len(values) > 0 {
			row[2], row[3] = human(values[0], c.y.unit), human(values[len(values)-1], c.y.unit)
		}
		rows = append(rows, row)
	}
	return rows
}

// trendTurns are the places before which a line drawn upright stands: another version begins there.
func trendTurns(c chart) (out []int) {
	for _, s := range c.series {
		for _, p := range s.points {
			if x, ok := p.([]any)[0].(float64); ok && s.role == "faint" {
				out = append(out, int(math.Ceil(x)))
			}
		}
	}
	return slices.Compact(out) // a line has two ends
}

// trendScale says what the heights of the blocks are.
func trendScale(c chart) string {
	longest := 0
	for _, s := range c.series {
		if s.role == "line" {
			longest = max(longest, len(s.points))
		}
	}
	return fmt.Sprintf("▁ is %s, █ is %s, · is where nothing final was measured, │ is where system, program or engine changed; the oldest run on the left", human(*c.y.low, c.y.unit), human(*c.y.high, c.y.unit)) +
		zero(longest > trendRuns, fmt.Sprintf(", one block for %d runs: the last of them", trendEach(longest))) + "."
}

// trend prints a chart that is one; others are left to the page.
func (w *textWriter) trend(c chart) {
	if !c.trend {
		return
	}
	fmt.Fprintln(w)
	w.wrapped("  ", c.heading)
	rows := trendRows(c)
	blocks := 0
	for _, row := range rows[1:] {
		blocks = max(blocks, width(row[1]))
	}
	for _, row := range rows[1:] {
		row[0] = shorten(row[0], max(w.width-blocks-32, 12))
	}
	w.grid(rows, nil, 2)
	w.wrapped("  ", trendScale(c))
	w.wrapped("  ", c.notes[0])
}

// trendTableRows is how many rows of its table follow a trend in Markdown.
const trendTableRows = 20

// trendMarkdown prints a chart that is a trend as blocks and as its table.
func trendMarkdown(b *bytes.Buffer, c chart) {
	if !c.trend {
		return
	}
	fmt.Fprintf(b, "### %s\n\n", md(c.heading))
	rows := trendRows(c)
	fmt.Fprint(b, "| | trend | first | last |\n|:---|:---|---:|---:|\n")
	for _, row := range rows[1:] {
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", md(row[0]), row[1], md(row[2]), md(row[3]))
	}
	fmt.Fprintf(b, "\n%s\n\n", md(trendScale(c)))
	t := c.table
	t.Rows = slices.Clone(t.Rows[:min(len(t.Rows), trendTableRows)])
	rowsMarkdown(b, t)
	if n := len(c.table.Rows) - len(t.Rows); n > 0 {
		fmt.Fprintf(b, "%s left out of this table.\n\n", md(count(n, "older run")))
	}
	fmt.Fprintf(b, "%s\n\n", md(strings.Join(c.notes, " ")))
}
