package text

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"dmgbench/internal/report"
)

// styled is text between marks of emphasis, "" for an empty text.
func styled(mark, s string) string { return report.TextIf(s != "", mark+report.EscapeMarkdown(s)+mark) }

// markdown collects a document.
type markdown struct{ bytes.Buffer }

// DocumentMarkdown prints a document for a repository or an issue.
func DocumentMarkdown(w io.Writer, d report.Document) error {
	m := &markdown{}
	m.document(d)
	return deliver(w, m.text(), d.Title)
}

// text is the document with one line feed at its end.
func (m *markdown) text() []byte { return append(bytes.TrimRight(m.Bytes(), "\n"), '\n') }

func (m *markdown) document(d report.Document) {
	fmt.Fprintf(m, "# %s\n\n", report.EscapeMarkdown(d.Title))
	m.paragraphs(d.Lead)
	for _, s := range d.Sections {
		if !s.Page {
			m.section(s)
		}
	}
}

func (m *markdown) paragraphs(list []string) {
	for _, p := range list {
		fmt.Fprintf(m, "%s\n\n", report.EscapeMarkdown(p))
	}
}

func (m *markdown) section(s report.Section) {
	if s.Heading != "" {
		fmt.Fprintf(m, "%s %s\n\n", map[bool]string{false: "##", true: "###"}[s.Sub], report.EscapeMarkdown(s.Heading))
	}
	if s.Alert && s.Heading == "" {
		fmt.Fprintf(m, "> **%s**\n\n", report.EscapeMarkdown(s.Lead[0]))
		s.Lead = s.Lead[1:]
	}
	m.paragraphs(s.Lead)
	if len(s.Pairs) > 0 {
		m.WriteString("| | |\n|---|---|\n")
		for _, p := range s.Pairs {
			fmt.Fprintf(m, "| %s | %s |\n", report.EscapeMarkdown(p.Name), report.EscapeMarkdown(p.Value))
		}
		fmt.Fprintln(m)
	}
	m.items("", s.Items)
	for _, c := range s.Charts {
		m.trend(c)
	}
	if s.Table != nil {
		m.WriteString(s.Table.MarkdownRows())
	}
	if s.Grid != nil {
		m.grid(*s.Grid)
	}
	m.code(s.Language, s.Code)
	m.paragraphs(s.After)
}

func (m *markdown) items(indent string, list []report.Item) {
	for _, item := range list {
		text := report.TextIf(item.Label != "", styled("**", item.Label)+": ") + report.EscapeMarkdown(item.Text)
		note := report.TextIf(item.Note != "", " *("+report.EscapeMarkdown(item.Note)+")*")
		fmt.Fprintf(m, "%s- %s%s\n", indent, text, note)
		m.items(indent+"  ", item.Items)
	}
	if indent == "" && len(list) > 0 {
		fmt.Fprintln(m)
	}
}

// grid prints a table of words, and below it what each of them rests on.
func (m *markdown) grid(g report.Grid) {
	t := report.Table{Columns: report.Columns("<" + g.Caption)}
	for _, c := range g.Columns {
		t.Columns = append(t.Columns, report.Column{Title: c, Text: true})
	}
	var evidence []report.Item
	for _, r := range g.Rows {
		row := []report.Cell{{Text: r.Name + report.TextIf(r.Note != "", " ("+r.Note+")")}}
		for i, c := range r.Cells {
			row = append(row, report.Cell{Text: strings.TrimSpace(c.Word + " " + c.Note)})
			for _, e := range c.Entries {
				item := report.Item{Label: r.Name, Text: g.Columns[i] + ", " + e.Title}
				for _, line := range e.Lines {
					item.Items = append(item.Items, report.Item{Text: line})
				}
				if len(e.More) > 0 {
					item.Items = append(item.Items, report.Item{Text: linkNames(e.More)})
				}
				evidence = append(evidence, item)
			}
		}
		t.Rows = append(t.Rows, row)
	}
	m.WriteString(t.MarkdownRows())
	m.items("", evidence)
}

func linkNames(links []report.Link) string {
	names := make([]string, len(links))
	for i, l := range links {
		names[i] = l.Name
	}
	return strings.Join(names, ", ")
}

// code prints a block of code, fenced with more backticks than the code has in
// a row.
func (m *markdown) code(language, code string) {
	if code == "" {
		return
	}
	fence := "```"
	for strings.Contains(code, fence) {
		fence += "`"
	}
	fmt.Fprintf(m, "%s%s\n%s\n%s\n\n", fence, language, strings.TrimRight(code, "\n"), fence)
}
