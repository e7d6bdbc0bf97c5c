package report

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"dmgbench/third_party/echarts"
)

//go:embed page/page.tmpl
var pageSource string

//go:embed page/style.css
var styleSource string

//go:embed page/report.js
var chartsSource string

//go:embed page/tables.js
var tablesSource string

//go:embed page/save.js
var saveSource string

//go:embed page/marks.js
var marksSource string

// scriptSource is all script of ours.
var scriptSource = tablesSource + saveSource + marksSource + chartsSource

var pageTemplate = template.Must(template.New("report").Parse(pageSource))

// page is what the template prints. Scripts and styles are ours and go in as they
// are; everything else is a string and is escaped by html/template.
type page struct {
	Policy   string
	Style    template.CSS
	Library  template.JS
	Script   template.JS
	Title    string
	Source   string
	Summary  string
	Facts    []Pair
	Answer   FirstScreen
	Tally    string
	Claims   []ClaimGroup
	Departs  []Deviation
	Departed string  // heading of the departures
	Tables   []Table // of the plan
	Printed  bool    // the source prints figures of these tables
	First    *Table

	FirstHeading string
	Sections     []pageSection
	Warnings     []Warning
	NotDone      []Pair
	Legend       []Pair
	Settings     []Pair
	Hosts        [][]Pair
	Repeat       string
	Plan         string
	Charts       string // name and version of the library
}

// pageSection is a heading with its charts and tables.
type pageSection struct {
	ID, Heading, Lead string
	Side              bool // charts stand side by side where there is room
	Charts            []pageChart
	Tables            []Table
}

// pageChart is a chart as the page needs it.
type pageChart struct {
	ID, Heading, Description string
	Height                   int
	Spec                     template.JS // JSON with <, > and & escaped: safe inside a script element
	Table                    Table
}

// renderPage prints the page; the chart library is known to panic on odd input, which ends as an error here.
func renderPage(w io.Writer, v *View) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("building charts: %v", r)
		}
	}()
	sections, err := v.pageSections()
	if err != nil {
		return err
	}
	p := page{
		Policy: policy(echarts.Script, scriptSource), Style: template.CSS(styleSource),
		Library: template.JS(echarts.Script), Script: template.JS(scriptSource),
		Title: v.Title, Source: v.Source, Summary: v.Summary, Facts: v.Facts, Tally: CountVerdicts(v.Claims), Claims: v.Claims,
		Departs: v.Deviations, Departed: v.DeviationsHeading, Answer: v.First, Tables: v.OtherTables(), Printed: v.Source != "" && v.PrintsTables(), Sections: sections, Warnings: v.Warnings, NotDone: v.NotDone, Legend: v.Legend,
		Settings: v.Settings, Hosts: v.Hosts, Repeat: strings.Join(v.Repeat, "\n"), Plan: v.Canonical, Charts: echarts.Version(),
	}
	if len(v.Sections) > 0 {
		p.First, p.FirstHeading = &v.Sections[0].Tables[0], "Measured"
		f := v.Sections[0].Figures
		if slices.ContainsFunc(f.Ops, func(op string) bool { return len(f.PublishedOn(op)) > 0 }) {
			p.FirstHeading = "Measured beside published"
		}
	}
	return pageTemplate.Execute(w, p)
}

// policy forbids everything but our two scripts, by their digests, and pictures
// that the page itself makes. Styles may be inline, since the charting library
// sets style attributes; they can load nothing.
func policy(scripts ...string) string {
	hashes := make([]string, len(scripts))
	for i, s := range scripts {
		sum := sha256.Sum256([]byte(s))
		hashes[i] = "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; script-src " + strings.Join(hashes, " ") +
		"; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
}

// pageSections arranges charts and tables under headings; a section without either is left out.
func (v *View) pageSections() ([]pageSection, error) {
	sections := []pageSection{
		{ID: "speed", Heading: "Speed"},
		{ID: "encryption", Heading: "What encryption costs"},
		{ID: "cost", Heading: "Where the time went", Lead: "The same files in the native folder and in the images of the same rounds: what harness, file system, format and encryption each took."},
		{ID: "sweep", Heading: "Along what the plan varies"},
		{ID: "size", Heading: "Speed and file size", Lead: "How the speed depends on the size of the file; intervals where rounds or files are enough, and in the tables how far the files spread."},
		{ID: "files", Heading: "Every file", Lead: "Nothing averaged: one point for each timed file."},
		{ID: "life", Heading: "Space over the steps"},
		{ID: "drift", Heading: "Drift along the run", Lead: "Each step against the median of its own kind: a level band means that nothing but the case changed."},
		{ID: "relations", Heading: "One quantity against another"},
		{ID: "figures", Heading: "All figures"},
	}
	at := map[string]*pageSection{}
	for i := range sections {
		at[sections[i].ID] = &sections[i]
	}
	ids := map[string]int{}
	for _, c := range v.Charts() {
		if ids[c.ID]++; ids[c.ID] > 1 { // odd names of quantities may give the same id
			c.ID += fmt.Sprintf("-again-%d", ids[c.ID])
		}
		text, err := c.spec()
		if err != nil {
			return nil, err
		}
		drawn := pageChart{c.ID, c.Heading, c.description(), c.Height + 160, template.JS(text), c.Table}
		if c.Section == "first" {
			v.First.Chart = &drawn
			continue
		}
		at[c.Section].Charts = append(at[c.Section].Charts, drawn)
	}
	for i, s := range v.Sections {
		from := 0
		if i == 0 { // its first table stands on the first screen
			from = 1
		}
		at["figures"].Tables = append(at["figures"].Tables, s.Tables[from:]...)
	}
	at["size"].Lead += v.undrawn()
	at["files"].Lead += v.undrawn()
	for _, f := range v.Fits {
		at["sweep"].Tables = append(at["sweep"].Tables, f.Table)
	}
	at["relations"].Tables = v.Relations
	kept := sections[:0]
	for _, s := range sections {
		s.Side = s.ID != "speed" && len(s.Charts) > 1
		if s.ID == "cost" && len(s.Charts) == 0 {
			s.Lead = v.costLacks(v.fileSets())
			if s.Lead != "" {
				kept = append(kept, s)
			}
		} else if len(s.Charts)+len(s.Tables) > 0 {
			kept = append(kept, s)
		}
	}
	return kept, nil
}
