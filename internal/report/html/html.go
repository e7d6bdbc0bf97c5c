// Package html writes the report of a run, and documents, as self-contained
// pages: they load nothing from anywhere, and their content security policy
// forbids that they ever do.
package html

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"

	"dmgbench/internal/report"
	"dmgbench/internal/report/chart"
	"dmgbench/third_party/echarts"
)

//go:embed page
var pageFiles embed.FS

// html/template escapes by context: text, attributes and script data.
var templates = template.Must(template.New("").Funcs(template.FuncMap{"rows": rows,
	"forms": forms}).ParseFS(pageFiles, "page/*.tmpl"))

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
}

// newHead allows the two scripts of pages with charts by their digests, and
// pictures that the page itself makes. Styles may be inline, as the charting
// library sets style attributes; they can load nothing.
func newHead(title string, hasCharts bool) head {
	h := head{Title: title, Policy: "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action " +
		"'none'"}
	css, err := pageFiles.ReadFile("page/style.css")
	if err != nil {
		panic(err) // it is embedded
	}
	h.Style = template.CSS(css)
	if hasCharts {
		h.Library, h.Script, h.Charts = template.JS(echarts.Script), template.JS(chart.Script), echarts.Version()
		var hashes []string
		for _, script := range []string{echarts.Script, chart.Script} {
			sum := sha256.Sum256([]byte(script))
			hashes = append(hashes, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
		}
		h.Policy = "default-src 'none'; script-src " + strings.Join(hashes, " ") +
			"; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
	}
	return h
}

// figure is a chart as the page needs it.
//
// The height is reserved so that the page does not jump while its charts are
// drawn.
type figure struct {
	report.Chart
	Description string
	Reserved    int         // height in CSS pixels until the script draws
	Spec        template.JS // JSON with <, > and & escaped: safe inside a script element
}

// 160 CSS pixels are what heading, legend and notes take above and below a
// plot.
func newFigure(c report.Chart) (figure, error) {
	text, err := chart.Encode(&c)
	return figure{c, c.Description(), c.Height + 160, template.JS(text)}, err
}

// write executes a template and writes its page at once, so that a page is
// whole or not there. The charting library is known to panic on odd input; that
// ends as an error.
func write(w io.Writer, name, title string, page func() (any, error)) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("rendering %q: building charts: %v", title, r)
		}
	}()
	data, err := page()
	var b bytes.Buffer
	if err == nil {
		err = templates.ExecuteTemplate(&b, name, data)
	}
	if err != nil {
		return fmt.Errorf("rendering %q: %w", title, err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("writing page %q: %w", title, err)
	}
	return nil
}

// documentPage is a document with the figures of its sections.
//
// A section id is unique within its document.
type documentPage struct {
	Head head
	report.Document
	Figures map[string][]figure // by section
}

// Document writes a document as a page. A page without charts has no script.
func Document(w io.Writer, d report.Document) error {
	return write(w, "document.tmpl", d.Title, func() (any, error) {
		var all []report.Chart
		for _, s := range d.Sections {
			all = append(all, s.Charts...)
		}
		chart.NameFiles(all)
		p := documentPage{newHead(d.Title, len(all) > 0), d, map[string][]figure{}}
		for _, s := range d.Sections {
			for range s.Charts {
				f, err := newFigure(all[0])
				if err != nil {
					return nil, err
				}
				all, p.Figures[s.ID] = all[1:], append(p.Figures[s.ID], f)
			}
		}
		return p, nil
	})
}
