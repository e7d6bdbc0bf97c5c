package report

import (
	"cmp"
	"slices"
	"strings"
)

// Table is one table of a report. The page, Markdown, the terminal and the
// published forms print the same cells; they differ in where they put a column
// that is [Column.Below] another, and in what they do on a narrow screen.
type Table struct {
	Caption string
	Columns []Column
	Rows    [][]Cell
	Notes   []Note
	File    string // name of the files of a table of the plan, without a suffix
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
	out := make([]Column, len(titles))
	for i, title := range titles {
		name, words := strings.CutPrefix(title, "<")
		out[i] = Column{Title: name, Text: words}
	}
	return out
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
	return strings.Join(NonEmpty([]string{c.Group, c.Heading()}), " · ")
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
	row := []Cell{{Text: head, Class: "head"}}
	for _, t := range texts {
		row = append(row, Cell{Text: t})
	}
	return row
}

// keyedRows finds the rows of a table by a key.
//
// Names do not serve as keys: two hostile names may be cut to the same text.
type keyedRows[K comparable] map[K]int

// row is the row of a key. A new one has a name and empty cells.
func (at keyedRows[K]) row(t *Table, key K, name string) []Cell {
	i, ok := at[key]
	if !ok {
		i = len(t.Rows)
		at[key] = i
		t.Rows = append(t.Rows, TextRow(name, make([]string, len(t.Columns)-1)...))
	}
	return t.Rows[i]
}

// Note is a footnote; one with Mark 0 is about the whole table.
type Note struct {
	Mark int
	Text string
}

// footnotes collects the notes of a table, each text once.
type footnotes struct {
	general, marked []Note
}

// mark is the number of the footnote with this text, none for "".
func (n *footnotes) mark(text string) []int {
	if text == "" {
		return nil
	}
	at := slices.IndexFunc(n.marked, func(have Note) bool { return have.Text == text })
	if at < 0 {
		at = len(n.marked)
		n.marked = append(n.marked, Note{at + 1, text})
	}
	return []int{at + 1}
}

// add appends notes about the whole table; empty texts are left out.
func (n *footnotes) add(texts ...string) {
	for _, text := range texts {
		if text != "" {
			n.general = append(n.general, Note{Text: text})
		}
	}
}

func (n *footnotes) list() []Note { return slices.Concat(n.general, n.marked) }

// dropEmptyColumns removes the columns, from the second on, in which no row has
// anything; with belowOnly it keeps those that are not [Column.Below] another.
func (t *Table) dropEmptyColumns(belowOnly bool) {
	for i := len(t.Columns) - 1; i > 0; i-- {
		used := slices.ContainsFunc(t.Rows, func(row []Cell) bool { return row[i].Text != "" })
		if used || belowOnly && !t.Columns[i].Below {
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
	return slices.DeleteFunc(slices.Clone(t.Columns), func(c Column) bool { return c.Below })
}

// ColumnGroup is a heading over several columns.
type ColumnGroup struct {
	Name string
	Span int
}

// Groups are the headings over groups of columns; none if no column has one.
func (t Table) Groups() []ColumnGroup {
	var out []ColumnGroup
	columns, named := t.MainColumns(), false
	for i, c := range columns {
		named = named || c.Group != ""
		if i > 0 && columns[i-1].Group == c.Group {
			out[len(out)-1].Span++
		} else {
			out = append(out, ColumnGroup{c.Group, 1})
		}
	}
	if !named {
		return nil
	}
	return out
}

// BelowLine is a value in small print below a figure.
type BelowLine struct{ Text, Class string }

// Below are the values below the figure in column i of a row. An interval needs
// no name.
func (t Table) Below(row []Cell, i int) []BelowLine {
	var out []BelowLine
	for k := i + 1; k < len(t.Columns) && t.Columns[k].Below; k++ {
		if text := row[k].Text; text != "" {
			name := TextIf(t.Columns[k].Title != "interval", t.Columns[k].Title+" ")
			out = append(out, BelowLine{name + text, row[k].Class})
		}
	}
	return out
}

// Form is a table in a form for other programs: the name of the form and the
// suffix of its files.
type Form struct{ Name, Suffix, Text string }

// Forms are the forms in which a table of the plan is handed out.
func (t Table) Forms() []Form {
	markdown := strings.TrimRight(Render("file.md", t), "\n") + "\n"
	return []Form{{"HTML", ".html", Render("table.html", t)}, {"Markdown", ".md", markdown},
		{"TSV", ".tsv", Render("table.tsv", t)}}
}

// BelowClass marks the rows of values below figures.
const BelowClass = "below"

// Unfold is a table with a row of its own for each kind of value that is below
// figures: "interval", "published".
//
// For forms that have no small print.
func (t Table) Unfold() Table {
	out := t
	out.Columns, out.Rows = nil, nil
	var kinds []string
	for _, c := range t.Columns {
		if c.Below {
			kinds = AppendNew(kinds, c.Title)
		} else {
			out.Columns = append(out.Columns, c)
		}
	}
	for _, row := range t.Rows {
		for _, kind := range append([]string{""}, kinds...) {
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

// fileName is the name of a table of the plan, harmless as the name of a file.
func fileName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._+-", r) {
			return r
		}
		return -1
	}, Shorten(name, 64))
	return cmp.Or(strings.TrimLeft(name, ".-"), "table")
}
