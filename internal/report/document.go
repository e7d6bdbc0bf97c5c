package report

import (
	"slices"
	"strings"

	"dmgbench/internal/report/wording"
)

// Document is a page of sections of sentences, lists and tables, which every
// form prints, and of charts, which the page draws; of those that are trends
// the other forms print lines of blocks. Its strings are safe to print, see
// [Plain].
type Document struct {
	Kicker, Title string
	Lead          []string
	Sections      []Section
}

// Section is a heading with its contents, in this order. The lead of an alert
// without a heading is a notice.
type Section struct {
	ID, Heading string
	Sub         bool // part of the section before
	Page        bool // printed on a page only: a long list that other commands print
	Alert       bool // has to be read before the rest
	Lead        []string
	Pairs       []Pair
	Items       []Item
	Charts      []Chart
	Table       *Table
	Grid        *Grid
	Uses        *UseMatrix
	Language    string // of the code
	Code        string
	After       []string
}

// Item is an entry of a list: "label: text (note)" with entries of its own. The
// label of an item with a class is a verdict.
type Item struct {
	Label, Class, Text, Note string
	Items                    []Item
}

// Items are entries without labels; empty texts are left out.
func Items(texts ...string) []Item {
	return Map(wording.NonEmpty(texts), func(text string) Item { return Item{Text: text} })
}

// Grid is a table with cells that open: a page shows the evidence of a cell on
// demand, Markdown after the table.
type Grid struct {
	Caption string
	Columns []string
	Rows    []GridRow
}

type GridRow struct {
	Name, Note string
	Cells      []GridCell
}

// GridCell is a word with what it rests on.
type GridCell struct {
	Class, Word, Note string
	Entries           []GridEntry
}

// GridEntry is one piece of evidence; Link is an address relative to the page,
// "" for none.
type GridEntry struct {
	Title, Link string
	Lines       []string
	More        []Link // other pieces behind the same title, by name alone
}

// Link is a name that may lead somewhere, as the link of [GridEntry] does.
type Link struct{ Name, Link string }

// Table is one table of a report. The page, Markdown, the terminal and the
// published forms print the same cells; they differ in where they put a column
// that is [Column.Below] another, and in what they do on a narrow screen.
type Table struct {
	Caption string
	Columns []Column
	Rows    [][]Cell
	Notes   []Note
	Origin  []string // what was measured, and on what: taken along where the table leaves its page
	File    string   // name of the files of a table of the plan, without a suffix
	// PerQuantity is set where each group of columns is one quantity: a
	// terminal prints a line for each of them.
	PerQuantity bool
}

// Column is a column with the heading of its group ("write"), its own
// ("measured") and the unit of its figures ("GB/s"), where the cells do not
// have it.
type Column struct {
	Group, Title, Unit string
	Text               bool // words, aligned to the left; otherwise numbers
	Below              bool // printed below the column before it where a table has to be narrow
}

// Columns are columns without groups. A title with a leading "<" is that of a
// column of words; the others are of numbers.
func Columns(titles ...string) []Column {
	return Map(titles, func(title string) Column {
		name, words := strings.CutPrefix(title, "<")
		return Column{Title: name, Text: words}
	})
}

// Heading is the title with the unit of the figures, unless the title names it
// already.
func (c Column) Heading() string {
	if c.Unit == "" || c.Title == c.Unit || strings.HasSuffix(c.Title, " "+c.Unit) {
		return c.Title
	}
	return strings.TrimPrefix(c.Title+", "+c.Unit, ", ")
}

// FullHeading is the heading with that of the group, for forms that have a
// single line of headings.
func (c Column) FullHeading() string {
	return strings.Join(wording.NonEmpty([]string{c.Group, c.Heading()}), " · ")
}

// Cell is one entry of a table.
type Cell struct {
	Text  string
	Class string  // "", head, muted, warn, good, or uncomparable for a value that must not be compared
	Title string  // what a page shows when the cell is pointed at
	Sub   string  // a second line in small print
	Bar   float64 // length of the bar that a page draws under the figure, in percent; 0 is none
	Marks []int   // footnotes
	Link  string  // address that the first cell of a row leads to, relative to the page
}

// TextRow is a row of a table: the name of the row, then its texts.
func TextRow(head string, texts ...string) []Cell {
	cells := Map(texts, func(text string) Cell { return Cell{Text: text} })
	return append([]Cell{{Text: head, Class: "head"}}, cells...)
}

// Note is a footnote; one with Mark 0 is about the whole table.
type Note struct {
	Mark int
	Text string
}

// IsEmpty reports whether no row has anything in column i.
func (t *Table) IsEmpty(i int) bool {
	return !slices.ContainsFunc(t.Rows, func(row []Cell) bool { return row[i].Text != "" })
}

// DropColumns removes the columns, from the second on, that drop returns true
// for.
func (t *Table) DropColumns(drop func(i int) bool) {
	for i := len(t.Columns) - 1; i > 0; i-- {
		if !drop(i) {
			continue
		}
		t.Columns = slices.Delete(t.Columns, i, i+1)
		for k := range t.Rows {
			t.Rows[k] = slices.Delete(t.Rows[k], i, i+1)
		}
	}
}

// MainColumns are the columns of a page: all but those below others.
func (t Table) MainColumns() []Column {
	return Where(t.Columns, func(c Column) bool { return !c.Below })
}

// ColumnGroup is a heading over several columns.
type ColumnGroup struct {
	Name string
	Span int
}

// Groups are the headings over groups of columns; none if no column has one.
func (t Table) Groups() []ColumnGroup {
	var out []ColumnGroup
	for _, c := range t.MainColumns() {
		if n := len(out); n > 0 && out[n-1].Name == c.Group {
			out[n-1].Span++
		} else {
			out = append(out, ColumnGroup{c.Group, 1})
		}
	}
	if len(out) == 1 && out[0].Name == "" {
		return nil
	}
	return out
}

// Below are the values in small print below the figure in column i of a row. An
// interval needs no name.
func (t Table) Below(row []Cell, i int) []Cell {
	var out []Cell
	for k := i + 1; k < len(t.Columns) && t.Columns[k].Below; k++ {
		if text := row[k].Text; text != "" {
			name := TextIf(t.Columns[k].Title != "interval", t.Columns[k].Title+" ")
			out = append(out, Cell{Text: name + text, Class: row[k].Class})
		}
	}
	return out
}

// BelowClass marks the rows of values below figures.
const BelowClass = "below"

// Unfold is a table with a row of its own for each kind of value that is below
// figures: "interval", "published".
//
// For forms that have no small print.
func (t Table) Unfold() Table {
	out := t
	out.Columns, out.Rows = t.MainColumns(), nil
	below := Where(t.Columns, func(c Column) bool { return c.Below })
	kinds := AppendNew([]string{""}, Map(below, func(c Column) string { return c.Title })...)
	for _, row := range t.Rows {
		for _, kind := range kinds {
			var line []Cell
			filled := kind == ""
			for i, c := range t.Columns {
				switch {
				case !c.Below && kind == "":
					line = append(line, row[i])
				case !c.Below:
					line = append(line, Cell{Class: BelowClass})
				case c.Title == kind:
					line[len(line)-1].Text, filled = row[i].Text, filled || row[i].Text != ""
				}
			}
			if kind != "" {
				line[0].Text = kind
			}
			if filled {
				out.Rows = append(out.Rows, line)
			}
		}
	}
	return out
}

// MarkdownRows is the table without its caption. Values below figures have rows
// of their own, or columns where each group of columns is a quantity.
func (t Table) MarkdownRows() string {
	if !t.PerQuantity {
		t = t.Unfold()
	}
	return Render("table.md", t)
}

// IsQuiet reports whether a cell recedes behind the figures: it is no figure, or
// one that must not be compared.
func (c Cell) IsQuiet() bool {
	return c.Class == "muted" || c.Class == "uncomparable" || c.Class == BelowClass
}
