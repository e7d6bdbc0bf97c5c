package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// This file writes the tables of the plan as HTML, Markdown and TSV. The page's
// buttons hand out these very texts, so that there is one rendering of each form.

// Tables writes every table of the plan as HTML, Markdown and TSV and hands
// each to save, in the order of the plan and under a file name of its own. The
// same result gives the same bytes.
func Tables(p *plan.Plan, r *result.Result, save func(name string, text []byte) error) error {
	taken := map[string]int{}
	for _, t := range NewView(p, r).PlanTables {
		name := t.File
		if taken[t.File]++; taken[t.File] > 1 {
			name += fmt.Sprintf("-again-%d", taken[t.File])
		}
		for _, form := range []struct{ suffix, text string }{{".html", t.html()}, {".md", t.markdown()}, {".tsv", t.tsv()}} {
			if err := save(name+form.suffix, []byte(form.text)); err != nil {
				return fmt.Errorf("saving table %q: %w", name, err)
			}
		}
	}
	return nil
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

// forms is what the page's copy buttons hand out, as JSON.
func (t Table) forms() template.JS {
	text, err := json.Marshal(map[string]string{"HTML": t.html(), "Markdown": t.markdown(), "TSV": t.tsv()})
	if err != nil {
		panic("a map of strings is JSON: " + err.Error())
	}
	return template.JS(text)
}

// underNames are the lines that stand below any figure of the table.
func (t Table) underNames() []string {
	var out []string
	for _, name := range []string{underInterval, underPublished} {
		if slices.ContainsFunc(t.Rows, func(row []Cell) bool {
			return slices.ContainsFunc(row, func(c Cell) bool { return c.under(name) != "" })
		}) {
			out = append(out, name)
		}
	}
	return out
}

// under is the text of one line below a figure.
func (c Cell) under(name string) string {
	for _, u := range c.Under {
		if u.Name == name {
			return u.Text
		}
	}
	return ""
}

// html is the table alone, without classes: what a page of somebody else takes.
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
	for _, c := range t.Columns {
		fmt.Fprintf(&b, `<th scope="col">%s</th>`, e(c.Title))
	}
	b.WriteString("</tr>\n</thead>\n<tbody>\n")
	for _, row := range t.Rows {
		b.WriteString("<tr>")
		for i, c := range row {
			if i == 0 {
				fmt.Fprintf(&b, `<th scope="row">%s</th>`, e(c.Text))
				continue
			}
			fmt.Fprintf(&b, "<td>%s", e(c.Text))
			for _, m := range c.Marks {
				fmt.Fprintf(&b, "<sup>%d</sup>", m)
			}
			for _, u := range c.Under {
				fmt.Fprintf(&b, "<br><small>%s</small>", e(u.text()))
			}
			b.WriteString("</td>")
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</tbody>\n</table>\n")
	for _, n := range t.Notes {
		fmt.Fprintf(&b, "<p>%s<small>%s</small></p>\n", TextIf(n.Mark > 0, fmt.Sprintf("<sup>%d</sup> ", n.Mark)), e(n.Text))
	}
	return b.String()
}

// text names a published figure; an interval needs no name.
func (u Under) text() string {
	if u.Name == underPublished {
		return "published " + u.Text
	}
	return u.Text
}

func (t Table) markdown() string {
	var b bytes.Buffer
	tableMarkdown(&b, t.unfolded().ungrouped())
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// unfolded has a row of its own for each kind of line below the figures.
func (t Table) unfolded() Table {
	out := t
	out.Rows = nil
	for _, row := range t.Rows {
		out.Rows = append(out.Rows, row)
		for _, name := range t.underNames() {
			below := make([]Cell, len(row))
			below[0] = Cell{Text: name, Class: "muted"}
			some := false
			for i, c := range row[1:] {
				if text := c.under(name); text != "" {
					below[i+1], some = Cell{Text: text, Class: "muted"}, true
				}
			}
			if some {
				out.Rows = append(out.Rows, below)
			}
		}
	}
	return out
}

// heading is a column's title with that of its group before it, as the titles of rows have it.
func (c Column) heading() string {
	return strings.Join(NonEmpty([]string{c.Group, c.Title}), " · ")
}

// ungrouped has one line of headings, which is all that Markdown knows.
func (t Table) ungrouped() Table {
	t.Columns = slices.Clone(t.Columns)
	for i, c := range t.Columns {
		t.Columns[i].Group, t.Columns[i].Title = "", c.heading()
	}
	return t
}

// tsv has a column of its own for each kind of line below a column's figures: a
// row is a row of the table.
func (t Table) tsv() string {
	var b strings.Builder
	line := func(cells []string) {
		for i, c := range cells {
			cells[i] = result.PlainCell(strings.Join(strings.Fields(c), " "))
		}
		b.WriteString(strings.Join(cells, "\t") + "\n")
	}
	var head []string
	below := make([][]string, len(t.Columns))
	for i, c := range t.Columns {
		title := c.heading()
		head = append(head, title)
		for _, name := range []string{underInterval, underPublished} {
			if slices.ContainsFunc(t.Rows, func(row []Cell) bool { return row[i].under(name) != "" }) {
				head, below[i] = append(head, title+", "+name), append(below[i], name)
			}
		}
	}
	line(head)
	for _, row := range t.Rows {
		var cells []string
		for i, c := range row {
			cells = append(cells, c.Text)
			for _, name := range below[i] {
				cells = append(cells, c.under(name))
			}
		}
		line(cells)
	}
	return b.String()
}

// published prints a table of the plan, in parts where the terminal is too narrow for all columns.
func (w *textWriter) published(t Table) {
	w.heading(t.Caption)
	t = t.unfolded()
	for from := 1; from < len(t.Columns); {
		wide, to := w.columnWidth(t, 0)+4, from
		for to < len(t.Columns) && (to == from || wide+w.columnWidth(t, to)+2 <= w.width) {
			wide += w.columnWidth(t, to) + 2
			to++
		}
		rows := t.textRows(from, to)
		if strings.Join(rows[0], "") == "" { // no groups
			rows = rows[1:]
		}
		w.grid(rows, nil, 1)
		from = to
	}
	for _, n := range t.Notes {
		w.wrapped("  ", TextIf(n.Mark > 0, fmt.Sprintf("(%d) ", n.Mark))+n.Text)
	}
}

func (w *textWriter) columnWidth(t Table, at int) int {
	most := 0
	for _, row := range t.textRows(at, at+1) {
		most = max(most, Width(row[len(row)-1]))
	}
	return most
}

// textRows are some of the columns behind the first, with two lines of headings.
func (t Table) textRows(from, to int) [][]string {
	groups, head := []string{""}, []string{""}
	for _, c := range t.Columns[from:to] {
		groups, head = append(groups, c.Group), append(head, c.Title)
	}
	out := [][]string{groups, head}
	for _, row := range t.Rows {
		line := []string{TextIf(row[0].Class == "muted", "  ") + row[0].Text}
		for _, c := range row[from:to] {
			text := c.Text
			for _, m := range c.Marks {
				text += fmt.Sprintf(" (%d)", m)
			}
			line = append(line, text)
		}
		if row[0].Class != "muted" || strings.Join(line[1:], "") != "" {
			out = append(out, line)
		}
	}
	return out
}
