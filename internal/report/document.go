package report

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"dmgbench/third_party/echarts"
)

// Document is a page of sections of sentences, lists and tables, which all renderings
// print alike, and of charts, which HTML draws; of those that are trends the others
// print lines of blocks. Its strings are clean.
type Document struct {
	Kicker, Title string
	Lead          []string
	Sections      []Section
}

// Section is a heading with what stands under it, in this order.
type Section struct {
	ID, Heading string
	Sub         bool // belongs to the section before
	Page        bool // stands on a page only: a long list that other commands print
	Alert       bool // stands out: it has to be read before the rest
	Lead        []string
	Items       []string
	Charts      []Chart
	Table       *Table
	Grid        *Grid
	After       []string
}

// Grid is a table whose cells open.
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

// GridEntry is one piece of evidence; Link is an address relative to the page, "" for none.
type GridEntry struct {
	Title, Link string
	Lines       []string
	More        []Link // other pieces behind the same title, by name alone
}

// Link is a name that may lead somewhere, as the link of [GridEntry] does.
type Link struct{ Name, Link string }

//go:embed page/doc.tmpl
var docSource string

//go:embed page/doc.css
var docStyle string

var docTemplate = template.Must(template.New("doc").Parse(docSource))

// docPolicy forbids everything: a page without charts has no script and loads nothing.
const docPolicy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

func (d Document) html(w io.Writer) (err error) {
	defer func() { // the chart library is known to panic on odd input
		if r := recover(); r != nil {
			err = fmt.Errorf("rendering %q: building charts: %v", d.Title, r)
		}
	}()
	page := struct {
		Document
		Policy   string
		Style    template.CSS
		Library  template.JS
		Script   template.JS
		Echarts  string
		Drawings map[string][]pageChart // by section
	}{Document: d, Policy: docPolicy, Style: template.CSS(styleSource + docStyle), Drawings: map[string][]pageChart{}}
	var all []Chart
	for _, s := range d.Sections {
		all = append(all, s.Charts...)
	}
	nameFiles(all)
	for _, s := range d.Sections {
		for range s.Charts {
			c := all[0]
			all = all[1:]
			text, err := c.spec()
			if err != nil {
				return fmt.Errorf("rendering %q: %w", d.Title, err)
			}
			page.Drawings[s.ID] = append(page.Drawings[s.ID], pageChart{c.ID, c.Heading, c.description(), c.Height + 160, template.JS(text), c.Table})
			page.Policy = policy(echarts.Script, scriptSource)
			page.Library, page.Script, page.Echarts = template.JS(echarts.Script), template.JS(scriptSource), echarts.Version()
		}
	}
	var b bytes.Buffer
	if err := docTemplate.Execute(&b, page); err != nil {
		return fmt.Errorf("rendering %q: %w", d.Title, err)
	}
	return deliver(w, b.Bytes(), "page", d.Title)
}

func (d Document) markdown(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n", md(d.Title))
	paragraphs := func(list []string) {
		for _, p := range list {
			fmt.Fprintf(&b, "%s\n\n", md(p))
		}
	}
	paragraphs(d.Lead)
	for _, s := range d.Sections {
		if s.Page {
			continue
		}
		fmt.Fprintf(&b, "%s %s\n\n", map[bool]string{false: "##", true: "###"}[s.Sub], md(s.Heading))
		paragraphs(s.Lead)
		for _, item := range s.Items {
			fmt.Fprintf(&b, "- %s\n", md(item))
		}
		if len(s.Items) > 0 {
			fmt.Fprintln(&b)
		}
		for _, c := range s.Charts {
			trendMarkdown(&b, c)
		}
		if s.Table != nil {
			rowsMarkdown(&b, *s.Table)
		}
		if s.Grid != nil {
			gridMarkdown(&b, *s.Grid)
		}
		paragraphs(s.After)
	}
	return deliver(w, append(bytes.TrimRight(b.Bytes(), "\n"), '\n'), "page", d.Title)
}

// rowsMarkdown is a table without the heading that [tableMarkdown] gives it.
func rowsMarkdown(b *bytes.Buffer, t Table) {
	var own bytes.Buffer
	tableMarkdown(&own, t)
	_, rows, _ := strings.Cut(own.String(), "\n\n")
	b.WriteString(strings.TrimRight(rows, "\n") + "\n\n")
}

func gridMarkdown(b *bytes.Buffer, g Grid) {
	fmt.Fprintf(b, "| %s ", md(g.Caption))
	for _, c := range g.Columns {
		fmt.Fprintf(b, "| %s ", md(c))
	}
	fmt.Fprint(b, "|\n|:---"+strings.Repeat("|:---", len(g.Columns))+"|\n")
	for _, r := range g.Rows {
		fmt.Fprintf(b, "| %s ", md(r.Name+TextIf(r.Note != "", " ("+r.Note+")")))
		for _, c := range r.Cells {
			word := TextIf(c.Word != "", "**"+md(c.Word)+"**")
			fmt.Fprintf(b, "| %s ", strings.TrimSpace(word+" "+md(c.Note)))
		}
		fmt.Fprint(b, "|\n")
	}
	fmt.Fprintln(b)
	for _, r := range g.Rows {
		for i, c := range r.Cells {
			for _, e := range c.Entries {
				fmt.Fprintf(b, "- **%s**, %s, %s\n", md(r.Name), md(g.Columns[i]), md(e.Title))
				for _, line := range e.Lines {
					fmt.Fprintf(b, "  - %s\n", md(line))
				}
				if len(e.More) > 0 {
					fmt.Fprintf(b, "  - %s\n", md(names(e.More)))
				}
			}
		}
	}
	fmt.Fprintln(b)
}

// names are the names of links, in a row.
func names(links []Link) string {
	out := make([]string, len(links))
	for i, l := range links {
		out[i] = l.Name
	}
	return strings.Join(out, ", ")
}

func (d Document) text(w io.Writer, o TextOptions) error {
	t := &textWriter{width: max(60, cmp.Or(o.Width, 80)), color: o.Color}
	t.wrapped("", t.paint("1", d.Title))
	for _, p := range d.Lead {
		t.wrapped("  ", p)
	}
	for _, s := range d.Sections {
		if s.Page {
			continue
		}
		t.heading(s.Heading)
		for _, p := range s.Lead {
			t.wrapped("  ", p)
		}
		for _, item := range s.Items {
			t.wrapped("  • ", item)
		}
		for _, c := range s.Charts {
			t.trend(c)
		}
		if s.Table != nil {
			t.rows(*s.Table)
		}
		if s.Grid != nil {
			t.cells(*s.Grid)
		}
		for _, p := range s.After {
			t.wrapped("  ", p)
		}
	}
	return deliver(w, t.Bytes(), "page", d.Title)
}

// rows lays a table out; where it is too wide, the first column of a row stands
// on a line of its own. The last column is wrapped if it is one of words.
func (w *textWriter) rows(t Table) {
	wide := make([]int, len(t.Columns))
	for i, c := range t.Columns {
		wide[i] = Width(c.Title)
		for _, row := range t.Rows {
			wide[i] = max(wide[i], Width(row[i].Text))
		}
	}
	last := len(wide) - 1
	middle := 0
	for _, n := range wide[1:last] {
		middle += n + 2
	}
	split := 4+wide[0]+middle+wide[last] > w.width
	if len("      ")+middle > w.width {
		w.stacked(t)
		return
	}
	line := func(cells []string, styles []string) {
		head := "  " + cells[0] + strings.Repeat(" ", max(wide[0]-Width(cells[0]), 0)) + "  "
		if split {
			w.wrapped("  ", cells[0])
			head = "      "
		}
		for i := 1; i < last; i++ {
			pad := strings.Repeat(" ", max(wide[i]-Width(cells[i]), 0))
			if t.Columns[i].Text {
				head += cells[i] + pad + "  "
			} else {
				head += pad + cells[i] + "  "
			}
		}
		text := cells[last]
		if styles[last] != "" {
			text = w.paint(styles[last], text)
		}
		if text == "" {
			fmt.Fprintln(w, strings.TrimRight(head, " "))
			return
		}
		w.wrapped(head, text)
	}
	titles := make([]string, len(wide))
	for i, c := range t.Columns {
		titles[i] = c.Title
	}
	if strings.Join(titles[1:], "") != "" {
		line(titles, make([]string, len(wide)))
	}
	for _, row := range t.Rows {
		texts, styles := make([]string, len(wide)), make([]string, len(wide))
		for i, c := range row {
			texts[i], styles[i] = c.Text, map[string]string{"warn": "31", "good": "32", "muted": "2"}[c.Class]
		}
		line(texts, styles)
	}
}

// stacked prints a table whose middle columns are wider than the screen: a row, and below it its cells with their names.
func (w *textWriter) stacked(t Table) {
	for _, row := range t.Rows {
		w.wrapped("  ", strings.TrimSpace(t.Columns[0].Title+" "+row[0].Text))
		var parts []string
		for i, c := range row[1:] {
			if c.Text != "" {
				parts = append(parts, strings.TrimSpace(t.Columns[i+1].Title+" "+c.Text))
			}
		}
		w.wrapped("      ", strings.Join(parts, "; "))
	}
}

// cells prints a grid as a list: a row, and below it one line for each column.
func (w *textWriter) cells(g Grid) {
	for _, r := range g.Rows {
		w.wrapped("  ", w.paint("36", r.Name)+TextIf(r.Note != "", " ("+r.Note+")"))
		for i, c := range r.Cells {
			if c.Word == "" {
				continue
			}
			word := w.paint(verdictStyle[c.Class], c.Word) + strings.Repeat(" ", max(14-Width(c.Word), 1))
			w.wrapped("    "+word, g.Columns[i]+TextIf(c.Note != "", ": "+c.Note))
		}
	}
}
