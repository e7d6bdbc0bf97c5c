package report

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
)

// This file prints the charts whose figures stand in no other table, from the very
// definition that the page draws.

// unprinted are the sections, or the beginnings of ids, of charts that Markdown prints as tables; all others
// draw what a table of figures has, or so many rows that they belong into an export.
func unprinted(c Chart) bool {
	return c.Section == "cost" || c.Section == "drift" || strings.HasPrefix(c.ID, "heat-") || strings.HasPrefix(c.ID, "life-case-")
}

func chartsMarkdown(b *bytes.Buffer, charts []Chart) {
	for _, c := range charts {
		if unprinted(c) && len(c.Table.Rows) > 0 {
			t := c.Table
			t.Notes = append([]Note{{0, c.Sub}}, t.Notes...)
			for _, text := range c.Notes[:len(c.Notes)-1] { // the last says where pictures come from
				t.Notes = append(t.Notes, Note{0, text})
			}
			tableMarkdown(b, t)
		}
	}
}

// chartsOnTerminal is how many pictures of a kind are printed; the others are in the report.
const chartsOnTerminal = 2

// charts prints waterfalls as bars and heat maps as rows of blocks.
func (w *textWriter) charts(all []Chart) {
	of := func(accept func(Chart) bool) []Chart {
		return slices.DeleteFunc(slices.Clone(all), func(c Chart) bool { return !accept(c) })
	}
	costs := of(func(c Chart) bool { return c.Section == "cost" })
	heats := of(func(c Chart) bool { return strings.HasPrefix(c.ID, "heat-") })
	for i, c := range costs[:min(len(costs), chartsOnTerminal)] {
		w.waterfall(c)
		if i == min(len(costs), chartsOnTerminal)-1 { // said once, below the last
			w.wrapped("  ", "░ took less. "+c.Notes[0])
		}
	}
	for _, c := range heats[:min(len(heats), chartsOnTerminal)] {
		w.heat(c)
	}
	if more := max(len(costs)-chartsOnTerminal, 0) + max(len(heats)-chartsOnTerminal, 0); more > 0 {
		w.wrapped("  ", Count(more, "picture")+" like these in the report.")
	}
}

// heightBlocks are the eight heights of a block.
var heightBlocks = []rune("▁▂▃▄▅▆▇█")

// heat prints a case a line, a block a size; the height is the rank of the class of colour.
func (w *textWriter) heat(c Chart) {
	w.heading(c.Heading)
	rows := make([][]rune, len(c.Y.Categories))
	ends := make([][]string, len(rows))
	for i := range rows {
		rows[i] = []rune(strings.Repeat(" ", len(c.X.Categories)))
		ends[i] = make([]string, len(c.X.Categories))
	}
	last := max(len(c.Series)-1, 1)
	for class, s := range c.Series {
		for _, p := range s.Points {
			at := p.([]any)
			column, row := at[0].(int), at[1].(int)
			rows[row][column] = heightBlocks[class*(len(heightBlocks)-1)/last]
			ends[row][column] = at[2].(string)
		}
	}
	sizes := c.X.Categories
	grid := [][]string{{"", "", sizes[0], sizes[len(sizes)-1]}}
	room := max(w.width-len(sizes)-24, 10)
	for i, name := range codesIfLong(c.Y.Categories, room) {
		name = Shorten(name, room)
		grid = append(grid, []string{name, string(rows[i]), ends[i][0], ends[i][len(sizes)-1]})
	}
	w.grid(grid, nil, 2)
	var classes []string
	for class, s := range c.Series {
		classes = append(classes, string(heightBlocks[class*(len(heightBlocks)-1)/last])+" "+s.Name)
	}
	w.wrapped("  ", strings.Join(classes, ", ")+".")
	w.wrapped("  ", strings.Replace(c.Sub, "Colour", "Height", 1))
}

// fallColumns is the width of a waterfall where the line is long enough; names and times beside it take fallBeside.
const (
	fallColumns = 26
	fallBeside  = 48
)

// waterfall prints the parts of each case below each other, each beginning where the last one ended.
func (w *textWriter) waterfall(c Chart) {
	w.heading(c.Heading)
	top, columns := *c.X.High, min(fallColumns, w.width-fallBeside)
	type bar struct {
		slot int
		line []string
	}
	rows := make([][]bar, len(c.Y.Categories))
	for _, s := range c.Series {
		for _, p := range s.Points {
			at := p.([]any)
			row := at[0].(int)
			rows[row] = append(rows[row], bar{at[5].(int), []string{s.Name, fall(at[1].(float64), at[2].(float64), top, columns), at[8].(string)}})
		}
	}
	grid, heads := [][]string{{"", "", "time"}}, map[int]string{}
	for i, list := range rows {
		slices.SortFunc(list, func(a, b bar) int { return a.slot - b.slot })
		heads[len(grid)] = c.Y.Categories[i]
		for _, b := range list {
			grid = append(grid, b.line)
		}
	}
	w.grid(grid, heads, 2)
	w.wrapped("  ", c.Sub)
}

// fall is one bar that begins at from; one that goes back is light.
func fall(from, to, top float64, columns int) string {
	column := func(v float64) int { return int(math.Round(max(v, 0) / top * float64(columns))) }
	a, b, block := column(from), column(to), "█"
	if to < from {
		a, b, block = b, a, "░"
	}
	return fmt.Sprintf("%-*s", columns, strings.Repeat(" ", a)+strings.Repeat(block, max(b-a, 1)))
}
