// Package text prints the model of package report where no pictures are: on a
// terminal, as Markdown, and as tables for web pages, documents and
// spreadsheets of other people. All sentences are made by package report; this
// package only arranges them.
package text

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/result"
	"dmgbench/internal/system/safetext"
)

// Options describe the terminal.
//
// Output that goes to a file has 80 columns, so that it is the same on every machine.
type Options struct {
	Width   int  // columns; 0 is 80, fewer than 60 are taken as 60
	Color   bool // ANSI colours for verdicts and headings
	Verbose bool // of a run: all figures, verdicts and warnings, instead of one screen
}

// Styles are the numbers of ANSI escape sequences.
const (
	bold   = "1"
	faint  = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// styles are those of the classes of cells and of verdicts.
var styles = map[string]string{
	"warn": red, "good": green, "muted": faint,
	result.Holds: green, result.DoesNotHold: red, result.CannotTell: yellow, result.NotMeasured: faint,
}

const (
	labelWidth   = 14 // of the column of verdicts; the longest is "does not hold"
	barColumns   = 14 // width of the longest bar
	nameColumns  = 26 // names of rows that are longer may go on lines of their own
	wordsColumns = 24 // width to which a last column of words may be wrapped
	tableIndent  = "    "
	belowIndent  = "  " // of the names of values below figures
)

// terminal lays text out in a number of columns. Widths are those of
// [report.Width]: a CJK character takes two columns, a combining mark or an
// ANSI sequence none.
type terminal struct {
	bytes.Buffer
	width   int
	color   bool
	verbose bool // long texts are not cut
}

// Fewer than 60 columns leave no room for a table with intervals.
func newTerminal(o Options) *terminal {
	return &terminal{width: max(60, cmp.Or(o.Width, 80)), color: o.Color, verbose: o.Verbose}
}

// Document prints a document for a terminal.
func Document(w io.Writer, d report.Document, o Options) error {
	t := newTerminal(o)
	d.Sections = withTrends(d.Sections, func(c report.Chart) []report.Section {
		s := trendSection(c)
		s.After = append(s.After, c.Notes[0])
		return []report.Section{s}
	})
	t.document(d)
	return deliver(w, t.Bytes(), d.Title)
}

// Methods prints the Methods paragraphs of a run for an article, in lines of 80
// columns.
func Methods(w io.Writer, p *plan.Plan, r *result.Result) error {
	t := newTerminal(Options{})
	t.wrap("", "Methods")
	step, gap := 0, true // a gap between paragraphs
	for line := range strings.Lines(report.Render("methods", report.NewView(p, r))) {
		text := strings.TrimSpace(line)
		if gap = gap || text == ""; text == "" {
			continue
		}
		if gap {
			fmt.Fprintln(t)
			gap = false
		}
		prefix := ""
		switch kind, rest, _ := strings.Cut(text, " "); kind {
		case "#":
			step++
			prefix, text = fmt.Sprintf("%4s ", fmt.Sprintf("%d.", step)), rest
		case "-":
			prefix, text = "  - ", rest
		}
		t.wrap(prefix, text)
	}
	return deliver(w, t.Bytes(), "methods of run "+r.Run)
}

// deliver writes a rendered document at once, without commands for the log of a
// workflow.
func deliver(w io.Writer, text []byte, title string) error {
	if _, err := io.WriteString(w, safetext.BreakCommands(string(text))); err != nil {
		return fmt.Errorf("writing %q: %w", title, err)
	}
	return nil
}

// document prints the sections that are not for pages only.
func (w *terminal) document(d report.Document) {
	w.wrap("", w.paint(bold, d.Title))
	w.paragraphs(d.Lead)
	for _, s := range d.Sections {
		if !s.Page {
			w.section(s)
		}
	}
}

// section prints the parts of a section in the order of its fields.
func (w *terminal) section(s report.Section) {
	if s.Heading != "" {
		fmt.Fprintln(w)
		w.wrap("", w.paint(bold, s.Heading))
	}
	if s.Alert && s.Heading == "" {
		s.Lead[0] = w.paint(yellow, s.Lead[0])
	}
	w.paragraphs(s.Lead)
	names := 0
	for _, p := range s.Pairs {
		names = max(names, report.Width(p.Name))
	}
	for _, p := range s.Pairs {
		w.wrap(fmt.Sprintf("  %-*s ", names, strings.ToLower(p.Name)), p.Value)
	}
	w.items("  ", s.Items)
	if s.Table != nil {
		w.table(*s.Table)
	}
	if s.Uses != nil {
		w.uses(*s.Uses)
	}
	if s.Grid != nil { // a row, and below it a line for each column
		for _, r := range s.Grid.Rows {
			w.wrap("  ", w.paint(cyan, r.Name)+report.TextIf(r.Note != "", " ("+r.Note+")"))
			for i, c := range r.Cells {
				if text := s.Grid.Columns[i] + report.TextIf(c.Note != "", ": "+c.Note); c.Word != "" {
					w.items("    ", []report.Item{{Label: c.Word, Class: c.Class, Text: text}})
				}
			}
		}
	}
	w.paragraphs(s.After)
}

func (w *terminal) paragraphs(list []string) {
	for _, p := range list {
		w.wrap("  ", p)
	}
}

// items prints a list. Items with a class have their label in a column of its
// own.
func (w *terminal) items(indent string, list []report.Item) {
	for _, item := range list {
		first, text := indent+"• ", item.Text
		if item.Class != "" {
			first = indent + align(w.paint(styles[item.Class], item.Label), labelWidth, true) + " "
		} else if item.Label != "" {
			text = item.Label + ": " + text
		}
		w.wrap(first, text+report.TextIf(item.Note != "", " ("+item.Note+")"))
		w.items(strings.Repeat(" ", visibleWidth(first)), item.Items)
	}
}

// paint gives text an ANSI style, if colours are wanted.
func (w *terminal) paint(style, text string) string {
	if !w.color || style == "" || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// wrap prints text after a prefix; further lines are indented as far as the
// prefix reaches.
func (w *terminal) wrap(prefix, text string) {
	if text != "" {
		fmt.Fprintln(w, Wrap(prefix, text, visibleWidth(prefix), w.width))
	}
}

// Wrap breaks text at blanks into lines of at most width columns, after a prefix
// on the first line and indent blanks on the others.
//
// A word longer than a line is printed whole: paths and digests have to stay in
// one piece.
func Wrap(prefix, text string, indent, width int) string {
	word, rest, more := strings.Cut(text, " ")
	line, lines := prefix+word, ""
	for more {
		word, rest, more = strings.Cut(rest, " ")
		if visibleWidth(line)+1+visibleWidth(word) > width {
			lines += line + "\n"
			line = strings.Repeat(" ", indent) + word
		} else {
			line += " " + word
		}
	}
	return lines + strings.TrimRight(line, " ")
}

// visibleWidth is the width of a text in columns without its ANSI styles.
//
// Only the sequences of paint occur: foreign escapes are removed before.
func visibleWidth(s string) int { return report.Width(ansiStyle.ReplaceAllString(s, "")) }

var ansiStyle = regexp.MustCompile(`\x1b\[[0-9]*m`)

// table prints a table with its notes. A value below a figure has a row of its
// own; per quantity there is a row for each group of columns: "write", its bar,
// measured, interval, published.
func (w *terminal) table(t report.Table) {
	if t.PerQuantity {
		t = perQuantity(t)
	} else {
		t = t.Unfold()
	}
	for _, row := range t.Rows {
		for i, c := range row {
			if c.Class == "uncomparable" && c.Text != "" { // it must not be compared
				c.Text = "(" + c.Text + ")"
			}
			for _, m := range c.Marks {
				c.Text += fmt.Sprintf(" (%d)", m)
			}
			if row[i].Text = w.paint(styles[c.Class], c.Text); c.Text == "" && c.Bar > 0 {
				row[i].Text = bar(c.Bar, barColumns)
			}
		}
		row[0].Text = report.TextIf(row[0].Class == report.BelowClass, belowIndent) + row[0].Text
	}
	w.columns(t)
	for _, n := range t.Notes {
		w.wrap("  ", report.TextIf(n.Mark > 0, fmt.Sprintf("(%d) ", n.Mark))+n.Text)
	}
}

// perQuantity is a table with a row for each row and group of columns of
// another one.
//
// A terminal is too narrow for several groups of columns side by side.
func perQuantity(t report.Table) report.Table {
	out := report.Table{Notes: t.Notes}
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
			line, at, measured := make([]report.Cell, len(out.Columns)), 0, false
			line[lead].Text = group
			for i, c := range t.Columns {
				switch cell := row[i]; {
				case c.Group == "":
					line[at], at = cell, at+1
				case c.Group == group && cell.Text != "":
					line[lead+1].Bar, cell.Bar = max(line[lead+1].Bar, cell.Bar), 0
					cell.Text = report.AddUnit(cell.Text, c.Unit)
					line[lead+2+slices.Index(titles, c.Title)], measured = cell, true
				}
			}
			if measured {
				out.Rows = append(out.Rows, line)
			}
		}
	}
	return out
}

// columns prints columns side by side. Where the terminal is too narrow for
// them:
//   - bars are left out, unless the first column is long and goes on lines of its own anyway;
//   - the first column goes on lines of its own, if it is long or if the rest fits then;
//   - the other columns are printed in parts, each with the first column.
//
// No value is ever left out for lack of room.
func (w *terminal) columns(t report.Table) {
	t.DropColumns(t.IsEmpty)
	widths, isBar := make([]int, len(t.Columns)), make([]bool, len(t.Columns))
	hasBars, hasBelow := false, false
	for i, c := range t.Columns {
		widths[i] = max(report.Width(c.Heading()), report.Width(c.Group))
		for _, row := range t.Rows {
			widths[i], isBar[i] = max(widths[i], visibleWidth(row[i].Text)), isBar[i] || row[i].Bar > 0
			hasBars, hasBelow = hasBars || isBar[i], hasBelow || row[0].Class == report.BelowClass
		}
	}
	last, room := len(widths)-1, w.width-len(tableIndent)
	total := func(from, to int) int { // the width of the columns from the one at from to the one at to
		n := 2 * (to - from)
		for i := from; i <= to; i++ {
			n += widths[i]
		}
		if to == last && t.Columns[last].Text { // it may be wrapped
			n -= max(widths[last]-wordsColumns, 0)
		}
		return n
	}
	wide, long := total(0, last) > room, widths[0] > nameColumns
	if hasBars && wide && (!long || total(1, last) > room) {
		t.DropColumns(func(i int) bool { return isBar[i] })
		w.columns(t)
		return
	}
	apart := wide && (long || total(1, last) <= room)
	if hasBelow { // their names would be taken for names of rows
		apart = widths[0] > room/2
	}
	if !apart {
		room -= widths[0] + 2
	}
	for from := 1; from <= last; {
		to := from
		for to < last && total(from, to+1) <= room {
			to++
		}
		w.part(t, widths, from, to, apart)
		from = to + 1
	}
}

// part prints the columns from the one at first to the one at last, with the
// names of the rows.
func (w *terminal) part(t report.Table, widths []int, first, last int, apart bool) {
	groups, titles := make([]report.Cell, len(widths)), make([]report.Cell, len(widths))
	for i, c := range t.Columns {
		groups[i].Text, titles[i].Text = c.Group, c.Heading()
	}
	name := ""
	for i, row := range append([][]report.Cell{groups, titles}, t.Rows...) {
		if !slices.ContainsFunc(row[first:last+1], func(c report.Cell) bool { return c.Text != "" }) {
			continue // no headings, or nothing in these columns
		}
		prefix, head := tableIndent, row[0].Text
		switch {
		case apart && i > 1 && head != name:
			w.wrap("  ", w.paint(cyan, head))
		case !apart && head != name:
			prefix += align(head, widths[0], true) + "  "
		case !apart:
			prefix += strings.Repeat(" ", widths[0]+2)
		}
		name = report.TextIf(i > 1, head)
		for k := first; k < last; k++ {
			prefix += align(row[k].Text, widths[k], t.Columns[k].Text) + "  "
		}
		if text := row[last].Text; t.Columns[last].Text && text != "" {
			w.wrap(prefix, text)
		} else {
			fmt.Fprintln(w, strings.TrimRight(prefix+align(text, widths[last], false), " "))
		}
	}
}

// align pads a text to a width, words to the left.
func align(text string, width int, words bool) string {
	space := strings.Repeat(" ", max(width-visibleWidth(text), 0))
	if words {
		return text + space
	}
	return space + text
}

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

// Spark draws values in a column each, on a scale from 0 to the highest.
// Negative values, which only a damaged journal has, are drawn as 0.
func Spark(values []float64) string {
	bars, out := []rune("▁▂▃▄▅▆▇█"), []rune(nil)
	top := cmp.Or(slices.Max(append([]float64{0}, values...)), 1)
	for _, v := range values {
		out = append(out, bars[min(int(max(v, 0)/top*float64(len(bars))), len(bars)-1)])
	}
	return string(out)
}
