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
func trendRows(c Chart) [][]string {
	rows := [][]string{{"", "", "first", "last"}}
	turns := trendTurns(c)
	for _, s := range c.Series {
		if s.Role != "line" {
			continue
		}
		var values []float64
		blocks, each, turned := "", trendEach(len(s.Points)), false
		for i, p := range s.Points {
			turned = turned || i > 0 && slices.Contains(turns, i)
			if (len(s.Points)-1-i)%each != 0 {
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
			blocks += string(heightBlocks[min(max(int(math.Round((y-*c.Y.Low)/(*c.Y.High-*c.Y.Low)*float64(len(heightBlocks)-1))), 0), len(heightBlocks)-1)])
		}
		row := []string{s.Name, blocks, "", ""}
		if len(values) > 0 {
			row[2], row[3] = Human(values[0], c.Y.Unit), Human(values[len(values)-1], c.Y.Unit)
		}
		rows = append(rows, row)
	}
	return rows
}

// trendTurns are the places before which a line drawn upright stands: another version begins there.
func trendTurns(c Chart) (out []int) {
	for _, s := range c.Series {
		for _, p := range s.Points {
			if x, ok := p.([]any)[0].(float64); ok && s.Role == "faint" {
				out = append(out, int(math.Ceil(x)))
			}
		}
	}
	return slices.Compact(out) // a line has two ends
}

// trendScale says what the heights of the blocks are.
func trendScale(c Chart) string {
	longest := 0
	for _, s := range c.Series {
		if s.Role == "line" {
			longest = max(longest, len(s.Points))
		}
	}
	return fmt.Sprintf("▁ is %s, █ is %s, · is where nothing final was measured, │ is where system, program or engine changed; the oldest run on the left", Human(*c.Y.Low, c.Y.Unit), Human(*c.Y.High, c.Y.Unit)) +
		TextIf(longest > trendRuns, fmt.Sprintf(", one block for %d runs: the last of them", trendEach(longest))) + "."
}

// trend prints a chart that is one; others are left to the page.
func (w *textWriter) trend(c Chart) {
	if !c.Trend {
		return
	}
	fmt.Fprintln(w)
	w.wrapped("  ", c.Heading)
	rows := trendRows(c)
	blocks := 0
	for _, row := range rows[1:] {
		blocks = max(blocks, Width(row[1]))
	}
	for _, row := range rows[1:] {
		row[0] = Shorten(row[0], max(w.width-blocks-32, 12))
	}
	w.grid(rows, nil, 2)
	w.wrapped("  ", trendScale(c))
	w.wrapped("  ", c.Notes[0])
}

// trendTableRows is how many rows of its table follow a trend in Markdown.
const trendTableRows = 20

// trendMarkdown prints a chart that is a trend as blocks and as its table.
func trendMarkdown(b *bytes.Buffer, c Chart) {
	if !c.Trend {
		return
	}
	fmt.Fprintf(b, "### %s\n\n", md(c.Heading))
	rows := trendRows(c)
	fmt.Fprint(b, "| | trend | first | last |\n|:---|:---|---:|---:|\n")
	for _, row := range rows[1:] {
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", md(row[0]), row[1], md(row[2]), md(row[3]))
	}
	fmt.Fprintf(b, "\n%s\n\n", md(trendScale(c)))
	t := c.Table
	t.Rows = slices.Clone(t.Rows[:min(len(t.Rows), trendTableRows)])
	rowsMarkdown(b, t)
	if n := len(c.Table.Rows) - len(t.Rows); n > 0 {
		fmt.Fprintf(b, "%s left out of this table.\n\n", md(Count(n, "older run")))
	}
	fmt.Fprintf(b, "%s\n\n", md(strings.Join(c.Notes, " ")))
}
