package report

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"dmgbench/internal/result/export"
)

// Table is one table of a report. The page, Markdown, the terminal and the
// published forms print the same cells; they differ in where they put a column
// that is [Column.Below] another, and in what they do on a narrow screen.
type Table struct {
	ID, Caption string
	Columns     []Column
	Rows        [][]Cell
	Notes       []Note
	File        string // name of the files of a table of the plan, without a suffix
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

// Note is a footnote; one with Mark 0 is about the whole table.
type Note struct {
	Mark int
	Text string
}

// footnotes collects the notes of a table, each text once.
type footnotes struct {
	general, marked []Note
}

// mark is the number of the footnote with this text.
func (n *footnotes) mark(text string) int {
	at := slices.IndexFunc(n.marked, func(have Note) bool { return have.Text == text })
	if at < 0 {
		at = len(n.marked)
		n.marked = append(n.marked, Note{at + 1, text})
	}
	return at + 1
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
	markdown := "## " + EscapeMarkdown(t.Caption) + "\n\n" + strings.TrimRight(t.MarkdownRows(), "\n") + "\n"
	return []Form{{"HTML", ".html", t.html()}, {"Markdown", ".md", markdown}, {"TSV", ".tsv", t.tsv()}}
}

// BelowClass marks the rows of values below figures.
const BelowClass = "below"

// unfold is a table with a row of its own for each kind of value that is below
// figures: "interval", "published".
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

// html is the table without classes and styles, for the web page of somebody
// else.
func (t Table) html() string {
	var b strings.Builder
	e := template.HTMLEscapeString
	fmt.Fprintf(&b, "<table>\n<caption>%s</caption>\n<thead>\n", e(t.Caption))
	if groups := t.Groups(); groups != nil {
		b.WriteString("<tr>")
		for _, g := range groups {
			fmt.Fprintf(&b, `<th scope="colgroup" colspan="%d">%s</th>`, g.Span, e(g.Name))
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("<tr>")
	for _, c := range t.MainColumns() {
		fmt.Fprintf(&b, `<th scope="col">%s</th>`, e(c.Heading()))
	}
	b.WriteString("</tr>\n</thead>\n<tbody>\n")
	for _, row := range t.Rows {
		fmt.Fprintf(&b, `<tr><th scope="row">%s</th>`, e(row[0].Text))
		for i := 1; i < len(row); i++ {
			if t.Columns[i].Below {
				continue
			}
			fmt.Fprintf(&b, "<td>%s", e(row[i].Text))
			for _, m := range row[i].Marks {
				fmt.Fprintf(&b, "<sup>%d</sup>", m)
			}
			for _, line := range t.Below(row, i) {
				fmt.Fprintf(&b, "<br><small>%s</small>", e(line.Text))
			}
			b.WriteString("</td>")
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</tbody>\n</table>\n")
	for _, n := range t.Notes {
		mark := TextIf(n.Mark > 0, fmt.Sprintf("<sup>%d</sup> ", n.Mark))
		fmt.Fprintf(&b, "<p>%s<small>%s</small></p>\n", mark, e(n.Text))
	}
	return b.String()
}

// escapes keep foreign text from being markup, in the dialect of GitHub and in
// CommonMark.
var escapes = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "{", `\{`, "}", `\}`, "[", `\[`, "]", `\]`, "<", "&lt;", ">", "&gt;",
	"#", `\#`, "|", `\|`, "~", `\~`, "!", `\!`, "&", "&amp;", "$", `\$`, "@", `\@`, "://", ":&#8203;//",
)

// EscapeMarkdown makes text safe in Markdown.
func EscapeMarkdown(s string) string { return escapes.Replace(s) }

// MarkdownRows is the table without its caption. Values below figures have rows
// of their own, or columns where each group of columns is a quantity.
func (t Table) MarkdownRows() string {
	if !t.PerQuantity {
		t = t.Unfold()
	}
	var b strings.Builder
	for _, c := range t.Columns {
		fmt.Fprintf(&b, "| %s ", EscapeMarkdown(c.FullHeading()))
	}
	b.WriteString("|\n")
	for _, c := range t.Columns {
		b.WriteString(map[bool]string{true: "|:---", false: "|---:"}[c.Text])
	}
	b.WriteString("|\n")
	for _, row := range t.Rows {
		for _, c := range row {
			text := EscapeMarkdown(c.Text)
			if text != "" && (c.Class == "muted" || c.Class == "uncomparable" || c.Class == BelowClass) {
				text = "*" + text + "*"
			}
			for _, n := range c.Marks {
				text += fmt.Sprintf(" (%d)", n)
			}
			fmt.Fprintf(&b, "| %s ", text)
		}
		b.WriteString("|\n")
	}
	b.WriteString("\n")
	for _, n := range t.Notes {
		fmt.Fprintf(&b, "%s%s  \n", TextIf(n.Mark > 0, fmt.Sprintf("(%d) ", n.Mark)), EscapeMarkdown(n.Text))
	}
	return b.String() + TextIf(len(t.Notes) > 0, "\n")
}

// tsv is the table for spreadsheets: a line for each row, and all values in
// columns of their own.
func (t Table) tsv() string {
	var b strings.Builder
	line := func(cells []string) {
		for i, c := range cells {
			cells[i] = export.PlainCell(strings.Join(strings.Fields(c), " "))
		}
		b.WriteString(strings.Join(cells, "\t") + "\n")
	}
	var heads []string
	figure := ""
	for _, c := range t.Columns {
		if c.Below {
			heads = append(heads, figure+", "+c.Title)
			continue
		}
		figure = c.FullHeading()
		heads = append(heads, figure)
	}
	line(heads)
	for _, row := range t.Rows {
		texts := make([]string, len(row))
		for i, c := range row {
			texts[i] = c.Text
		}
		line(slices.Clone(texts))
	}
	return b.String()
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
