package text

import (
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/report"
)

const (
	barColumns   = 14 // width of the longest bar
	nameColumns  = 26 // names of rows that are longer may go on lines of their own
	wordsColumns = 24 // width to which a last column of words may be wrapped
	tableIndent  = "    "
	belowIndent  = "  " // of the names of values below figures
)

// eighths are the left parts of a block: a bar is as fine as an eighth of a
// column.
var eighths = []string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}

// bar draws a share of a width in columns.
//
// At least an eighth, so that the smallest figure has a bar.
func bar(percent float64, columns int) string {
	n := min(max(int(percent/100*float64(columns*8)), 1), columns*8)
	return strings.Repeat("█", n/8) + eighths[n%8]
}

// layout is a table as a terminal prints it: every cell is a text.
type layout struct {
	columns []report.Column
	rows    [][]string
	widths  []int // of the columns
	bars    int   // the column of bars, 0 for none
}

// table prints a table with its notes.
func (w *terminal) table(t report.Table) {
	w.layout(w.textRows(t))
	for _, n := range t.Notes {
		w.wrap("  ", report.TextIf(n.Mark > 0, fmt.Sprintf("(%d) ", n.Mark))+n.Text)
	}
}

// textRows has a row of texts for each row of a table, and one for each kind of
// value below its figures; or, per quantity, a row for each group of columns:
// "write", its bar, measured, interval, published.
func (w *terminal) textRows(t report.Table) layout {
	var l layout
	if t.PerQuantity {
		t, l.bars = perQuantity(t)
	} else {
		t = t.Unfold()
	}
	l.columns = t.Columns
	for _, row := range t.Rows {
		line := make([]string, len(row))
		for i, c := range row {
			line[i] = w.cell(c)
		}
		line[0] = report.TextIf(row[0].Class == report.BelowClass, belowIndent) + line[0]
		l.rows = append(l.rows, line)
	}
	return l
}

// cell is the text of a cell with its marks, or its bar. A value that must not
// be compared is in brackets.
func (w *terminal) cell(c report.Cell) string {
	text := c.Text
	switch {
	case text == "" && c.Bar > 0:
		return bar(c.Bar, barColumns)
	case text != "" && c.Class == "uncomparable":
		text = "(" + text + ")"
	}
	for _, m := range c.Marks {
		text += fmt.Sprintf(" (%d)", m)
	}
	return w.paint(styles[c.Class], text)
}

// perQuantity is a table with a row for each row and group of columns of
// another one; bars is the column of bars.
//
// A terminal is too narrow for several groups of columns side by side.
func perQuantity(t report.Table) (out report.Table, bars int) {
	var groups, titles []string
	for _, c := range t.Columns {
		if c.Group == "" {
			out.Columns = append(out.Columns, report.Column{Text: true})
		} else {
			groups, titles = report.AppendNew(groups, c.Group), report.AppendNew(titles, c.Title)
		}
	}
	lead := len(out.Columns)
	out.Columns = append(out.Columns, report.Columns("<", "<")...) // the quantity, and the bar
	out.Columns = append(out.Columns, report.Columns(titles...)...)
	for _, row := range t.Rows {
		for _, group := range groups {
			line, at := make([]report.Cell, len(out.Columns)), 0
			line[lead].Text = group
			measured := false
			for i, c := range t.Columns {
				switch cell := row[i]; {
				case c.Group == "":
					line[at], at = cell, at+1
				case c.Group == group && cell.Text != "":
					line[lead+1].Bar, cell.Bar = max(line[lead+1].Bar, cell.Bar), 0
					cell.Text += report.TextIf(c.Unit != "", " "+c.Unit)
					line[lead+2+slices.Index(titles, c.Title)], measured = cell, true
				}
			}
			if measured {
				out.Rows = append(out.Rows, line)
			}
		}
	}
	return out, lead + 1
}

// layout prints columns side by side. Where the terminal is too narrow for
// them:
//   - bars are left out, unless the first column is long and goes on lines of its own anyway;
//   - the first column goes on lines of its own, if it is long or if the rest fits then;
//   - the other columns are printed in parts, each with the first column.
//
// No value is ever left out for lack of room.
func (w *terminal) layout(l layout) {
	l.measure()
	last := len(l.columns) - 1
	room := w.width - len(tableIndent)
	wide, long := l.total(0, last) > room, l.widths[0] > nameColumns
	if l.bars > 0 && wide && (!long || l.total(1, last) > room) {
		l.drop(l.bars)
		w.layout(l)
		return
	}
	apart := wide && (long || l.total(1, last) <= room)
	if l.hasBelow() { // its rows would be taken for names
		apart = l.widths[0] > room/2
	}
	if !apart {
		room -= l.widths[0] + 2
	}
	for from := 1; from <= last; {
		to := from
		for to < last && l.total(from, to+1) <= room {
			to++
		}
		w.part(l, from, to, apart)
		from = to + 1
	}
}

// drop removes a column.
func (l *layout) drop(i int) {
	l.columns = slices.Delete(slices.Clone(l.columns), i, i+1)
	for k := range l.rows {
		l.rows[k] = slices.Delete(l.rows[k], i, i+1)
	}
	switch {
	case i == l.bars:
		l.bars = 0
	case i < l.bars:
		l.bars--
	}
}

// measure removes empty columns, and sets the widths of the others.
//
// A group heading counts as one of its columns.
func (l *layout) measure() {
	l.widths = nil
	for i := 0; i < len(l.columns); {
		wide := 0
		for _, row := range l.rows {
			wide = max(wide, visibleWidth(row[i]))
		}
		if wide == 0 && i > 0 {
			l.drop(i)
			continue
		}
		l.widths = append(l.widths, max(wide, report.Width(l.columns[i].Heading()), report.Width(l.columns[i].Group)))
		i++
	}
}

// hasBelow reports whether the table has rows of values below figures.
func (l *layout) hasBelow() bool {
	return slices.ContainsFunc(l.rows, func(row []string) bool { return strings.HasPrefix(row[0], belowIndent) })
}

// total is the width of the columns from the one at first to the one at last; a
// last column of words may be wrapped.
func (l *layout) total(first, last int) int {
	n := 2 * (last - first)
	for i := first; i <= last; i++ {
		wide := l.widths[i]
		if i == len(l.columns)-1 && l.columns[i].Text {
			wide = min(wide, wordsColumns)
		}
		n += wide
	}
	return n
}

// part prints the columns from the one at first to the one at last, with the
// names of the rows.
func (w *terminal) part(l layout, first, last int, apart bool) {
	var groups, titles []string
	for _, c := range l.columns {
		groups, titles = append(groups, c.Group), append(titles, c.Heading())
	}
	name := ""
	for i, row := range append([][]string{groups, titles}, l.rows...) {
		if strings.Join(row[first:last+1], "") == "" {
			continue // no headings, or nothing in these columns
		}
		prefix := tableIndent
		switch {
		case apart && i > 1 && row[0] != name:
			w.wrap("  ", w.paint(cyan, row[0]))
		case !apart && row[0] != name:
			prefix += row[0] + pad(row[0], l.widths[0]) + "  "
		case !apart:
			prefix += strings.Repeat(" ", l.widths[0]+2)
		}
		name = report.TextIf(i > 1, row[0])
		for k := first; k < last; k++ {
			prefix += align(row[k], l.widths[k], l.columns[k].Text) + "  "
		}
		if l.columns[last].Text && row[last] != "" {
			w.wrap(prefix, row[last])
		} else {
			fmt.Fprintln(w, strings.TrimRight(prefix+align(row[last], l.widths[last], false), " "))
		}
	}
}

// align pads a text to a width, words to the left.
func align(text string, width int, words bool) string {
	if words {
		return text + pad(text, width)
	}
	return pad(text, width) + text
}
