// Package html writes the report of a run, and documents, as self-contained
// pages: they load nothing from anywhere, and their content security policy
// forbids that they ever do.
package html

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"sync"

	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/report/chart"
	"dmgbench/internal/result"
	"dmgbench/third_party/echarts"
)

//go:embed page
var pageFiles embed.FS

//go:embed page/style.css
var style string

//go:embed reload.js
var reloadScript string

// html/template escapes by context: text, attributes and script data.
//
// The data of a chart is JSON with <, > and & escaped: safe inside a script
// element. 160 CSS pixels are what heading, legend and notes take above and
// below a plot: they are reserved, so that the page does not jump while its
// charts are drawn.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"class": cellClass, "forms": forms, "verdicts": report.CountVerdicts, "count": report.Count,
		"spec": func(c report.Chart) (template.JS, error) {
			text, err := chart.Encode(&c)
			return template.JS(text), err
		},
		"reserved": func(c report.Chart) int { return c.Height + 160 },
	}).ParseFS(pageFiles, "page/*.tmpl"))
})

// head is the data of the first and last lines of every page. Styles and
// scripts are ours and are printed as they are; everything else is a string and
// is escaped by html/template.
//
// Title is the only part of it that is foreign text.
type head struct {
	Title           string
	Policy          string
	Style           template.CSS
	Library, Script template.JS // empty on a page without charts
	Charts          string      // name and version of the library
	Reload          template.JS // of a page that follows a run, "" in a file
	Version         string      // that its server names in ETag
}

// newHead allows the two scripts of pages with charts by their digests, and
// pictures that the page itself makes. Styles may be inline, as the charting
// library sets style attributes; they can load nothing.
func newHead(title string, hasCharts bool) head {
	h := head{Title: title, Style: template.CSS(style)}
	scripts, pictures := "", ""
	if hasCharts {
		h.Library, h.Script, h.Charts = template.JS(echarts.Script), template.JS(chart.Script), echarts.Version()
		scripts, pictures = "script-src", " img-src data: blob:;"
		scripts += " " + digest(echarts.Script) + " " + digest(chart.Script) + "; "
	}
	h.Policy = "default-src 'none'; " + scripts + "style-src 'unsafe-inline';" + pictures +
		" base-uri 'none'; form-action 'none'"
	return h
}

// digest allows a script in a content security policy.
func digest(script string) string {
	sum := sha256.Sum256([]byte(script))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// write executes a template and writes its page at once, so that a page is
// whole or not there.
func write(w io.Writer, name, title string, page any) error {
	var b bytes.Buffer
	if err := templates().ExecuteTemplate(&b, name, page); err != nil {
		return fmt.Errorf("rendering %q: %w", title, err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("writing page %q: %w", title, err)
	}
	return nil
}

// Document writes a document as a page. A page without charts has no script.
func Document(w io.Writer, d report.Document) error {
	hasCharts := slices.ContainsFunc(d.Sections, func(s report.Section) bool { return len(s.Charts) > 0 })
	return write(w, "document.tmpl", d.Title, struct {
		Head head
		report.Document
	}{newHead(d.Title, hasCharts), d})
}

// Run writes the report of a run as a page.
func Run(w io.Writer, p *plan.Plan, r *result.Result) error { return LiveRun(w, p, r, "") }

// LiveRun is Run for a server. The page loads itself again when the server has
// another version of it, which the server names in the header ETag. Without a
// version the page is that of Run.
func LiveRun(w io.Writer, p *plan.Plan, r *result.Result, version string) error {
	v := chart.NewView(p, r)
	h := newHead(v.Title, true)
	if version != "" {
		h.Reload, h.Version = template.JS(reloadScript), version
		h.Policy = strings.Replace(h.Policy, "script-src", "connect-src 'self'; script-src "+digest(reloadScript), 1)
	}
	return write(w, "run.tmpl", r.Run, struct {
		Head head
		*report.View
		PageSections []section
	}{h, v, pageSections(v)})
}

// section is a heading with its charts and tables.
type section struct {
	chart.Section
	Charts []report.Chart
	Tables []report.Table
}

// pageSections arranges charts and tables under headings, in the order of
// [chart.Sections] with all figures at the end. A section without either is
// left out.
func pageSections(v *report.View) []section {
	var out []section
	add := func(head chart.Section, tables []report.Table) {
		s := section{Section: head, Tables: tables}
		s.Charts = report.Where(v.Charts, func(c report.Chart) bool { return c.Section == s.ID })
		if len(s.Charts)+len(s.Tables) > 0 {
			out = append(out, s)
		}
	}
	for _, s := range chart.Sections {
		add(s, map[string][]report.Table{"sweep": v.Fits, "relations": v.Relations}[s.ID])
	}
	figures := report.FlatMap(v.Sections, func(s report.FigureSection) []report.Table { return s.Tables })
	add(chart.Section{ID: "figures", Heading: "All figures"}, figures[min(len(figures), 1):]) // the first is above
	return out
}

// cellClass is the class of a cell of a page. Classes are ours, whatever a result
// has: the style sheet knows no others.
func cellClass(column report.Column, c report.Cell) string {
	if column.Text {
		return c.Class
	}
	return "number" + map[string]string{"muted": " greyed", "uncomparable": " greyed", "warn": " warn"}[c.Class]
}

// forms is what the copy buttons of a table give, as JSON. Without < it is safe
// inside a script element, and half as long as with all markup escaped.
func forms(t report.Table) (template.JS, error) {
	texts := map[string]string{}
	for _, f := range t.Forms() {
		texts[f.Name] = f.Text
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(texts); err != nil {
		return "", fmt.Errorf("encoding table %q: %w", t.Caption, err)
	}
	return template.JS(strings.ReplaceAll(strings.TrimSpace(b.String()), "<", `\u003c`)), nil
}
