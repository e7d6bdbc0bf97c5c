package report

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"dmgbench/internal/result/export"
)

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
