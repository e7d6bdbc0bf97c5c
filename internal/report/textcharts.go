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
func unprinted(c chart) bool {
	return c.section == "cost" || c.section == "drift" || strings.HasPrefix(c.id, "heat-") || strings.HasPrefix(c.id, "life-case-")
}

func chartsMarkdown(b *bytes.Buffer, charts []chart) {
	for _, c := range charts {
		if unprinted(c) && len(c.table.Rows) > 0 {
			t := c.table
			t.Notes = append([]note{{0, c.sub}}, t.Notes...)
			for _, text := range c.notes[:len(c.notes)-1] { // the last says where pictures come from
				t.Notes = append(t.Notes, note{0, text})
			}
			tableMarkdown(b, t)
		}
	}
}

// chartsOnTerminal is how many pictures of a kind are printed; the others are in the report.
const chartsOnTerminal = 2

// charts prints waterfalls as bars and heat maps as rows of blocks.
func (w *textWriter) charts(all []chart) {
	of := func(accept func(chart) bool) []chart {
		return slices.DeleteFunc(slices.Clone(all), func(c chart) bool { return !accept(c) })
	}
	costs := of(func(c chart) bool { return c.section == "cost" })
	heats := of(func(c chart) bool { return strings.HasPrefix(c.id, "heat-") })
	for i, c := range costs[:min(len(costs), chartsOnTerminal)] {
		w.waterfall(c)
		if i == min(len(costs), chartsOnTerminal)-1 { // said once, below the last
			w.wrapped("  ", "░ took less. "+c.notes[0])
		}
	}
	for _, c := range heats[:min(len(heats), chartsOnTerminal)] {
		w.heat(c)
	}
	if more := max(len(costs)-chartsOnTerminal, 0) + max(len(heats)-chartsOnTerminal, 0); more > 0 {
		w.wrapped("  ", count(more, "picture")+" like these in the report.")
	}
}

// heightBlocks are the eight heights of a block.
var heightBlocks = []rune("▁▂▃▄▅▆▇█")

// heat prints a case a line, a block a size; the height is the rank of the class of colour.
func (w *textWriter) heat(c chart) {
	w.heading(c.heading)
	rows := make([][]rune, len(c.y.categories))
	ends := make([][]string, len(rows))
	for i := range rows {
		rows[i] = []rune(strings.Repeat(" ", len(c.x.categories)))
		ends[i] = make([]string, len(c.x.categories))
	}
	last := max(len(c.series)-1, 1)
	for class, s := range c.series {
		for _, p := range s.points {
			at := p.([]any)
			column, row := at[0].(int), at[1].(int)
			rows[row][column] = heightBlocks[class*(len(heightBlocks)-1)/last]
			ends[row][column] = at[2].(string)
		}
	}
	sizes := c.x.categories
	grid := [][]string{{"", "", sizes[0], sizes[len(sizes)-1]}}
	room := max(w.width-len(sizes)-24, 10)
	for i, name := range codesIfLong(c.y.categories, room) {
		name = shorten(name, room)
		grid = append(grid, []string{name, string(rows[i]), ends[i][0], ends[i][len(sizes)-1]})
	}
	w.grid(grid, nil, 2)
	var classes []string
	for class, s := range c.series {
		classes = append(classes, string(heightBlocks[class*(len(heightBlocks)-1)/last])+" "+s.name)
	}
	w.wrapped("  ", strings.Join(classes, ", ")+".")
	w.wrapped("  ", strings.Replace(c.sub, "Colour", "Height", 1))
}

// fallColumns is the width of a waterfall where the line is long enough; names and times beside it take fallBeside.
const (
	fallColumns = 26
	fallBeside  = 48
)

// waterfall prints the parts of each case below each other, each beginning where the last one ended.
func (w *textWriter) waterfall(c chart) {
	w.heading(c.heading)
	top, columns := *c.x.high, min(fallColumns, w.width-fallBeside)
	type bar struct {
		slot int
		line []string
	}
	rows := make([][]bar, len(c.y.categories))
	for _, s := range c.series {
		for _, p := range s.points {
			at := p.([]any)
			row := at[0].(int)
			rows[row] = append(rows[row], bar{at[5].(int), []string{s.name, fall(at[1].(float64), at[2].(float64), top, columns), at[8].(string)}})
		}
	}
	grid, heads := [][]string{{"", "", "time"}}, map[int]string{}
	for i, list := range rows {
		slices.SortFunc(list, func(a, b bar) int { return a.slot - b.slot })
		heads[len(grid)] = c.y.categories[i]
		for _, b := range list {
			grid = append(grid, b.line)
		}
	}
	w.grid(grid, heads, 2)
	w.wrapped("  ", c.sub)
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
