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
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/result"
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

// labelWidth is the width of the column of verdicts; the longest is "does not
// hold".
const labelWidth = 14

// terminal lays text out in a number of columns. Widths are those of
// [report.Width]: a CJK character takes two columns, a combining mark or an
// ANSI sequence none.
type terminal struct {
	bytes.Buffer
	width int
	color bool
}

// Fewer than 60 columns leave no room for a table with intervals.
func newTerminal(o Options) *terminal {
	return &terminal{width: max(60, cmp.Or(o.Width, 80)), color: o.Color}
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

// deliver writes a rendered document at once.
func deliver(w io.Writer, text []byte, title string) error {
	if _, err := w.Write(text); err != nil {
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
	if s.Grid != nil {
		w.grid(*s.Grid)
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
			first = indent + w.paint(styles[item.Class], item.Label) + pad(item.Label, labelWidth) + " "
		} else if item.Label != "" {
			text = item.Label + ": " + text
		}
		w.wrap(first, text+report.TextIf(item.Note != "", " ("+item.Note+")"))
		w.items(strings.Repeat(" ", visibleWidth(first)), item.Items)
	}
}

// grid prints a row, and below it a line for each column.
func (w *terminal) grid(g report.Grid) {
	for _, r := range g.Rows {
		w.wrap("  ", w.paint(cyan, r.Name)+report.TextIf(r.Note != "", " ("+r.Note+")"))
		for i, c := range r.Cells {
			if c.Word != "" {
				w.items("    ", []report.Item{{Label: c.Word, Class: c.Class,
					Text: g.Columns[i] + report.TextIf(c.Note != "", ": "+c.Note)}})
			}
		}
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
//
// A word longer than a line is printed whole: paths and digests have to stay in
// one piece.
func (w *terminal) wrap(prefix, text string) {
	if text == "" {
		return
	}
	indent := strings.Repeat(" ", visibleWidth(prefix))
	room, line := w.width-visibleWidth(prefix), ""
	for word := range strings.SplitSeq(text, " ") {
		if line != "" && visibleWidth(line)+1+visibleWidth(word) > room {
			fmt.Fprintln(w, prefix+line)
			prefix, line = indent, ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	fmt.Fprintln(w, strings.TrimRight(prefix+line, " "))
}

// visibleWidth is the width of a text in columns without its ANSI styles.
//
// Only the sequences of paint occur: foreign escapes are removed before.
func visibleWidth(s string) int {
	plain, rest, found := strings.Cut(s, "\x1b[")
	for found {
		_, rest, _ = strings.Cut(rest, "m")
		var part string
		part, rest, found = strings.Cut(rest, "\x1b[")
		plain += part
	}
	return report.Width(plain)
}

// pad is the space that follows a text in a column of a width.
func pad(text string, width int) string { return strings.Repeat(" ", max(width-visibleWidth(text), 0)) }
