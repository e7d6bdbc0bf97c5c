package html

import (
	"io"

	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/report/chart"
	"dmgbench/internal/result"
)

// runPage is the report of a run.
//
// The template reads the view itself; these are the parts that only a page
// needs.
type runPage struct {
	Head head
	*report.View
	FirstChart      *figure // of the main numbers
	FirstTable      *report.Table
	FirstHeading    string
	PrintedBySource bool // the source prints figures of the tables of the plan
	Verdicts        string
	PageSections    []section
}

// section is a heading with its charts and tables.
//
// The order is that of [chart.Sections], with all figures at the end.
type section struct {
	chart.Section
	Side    bool // charts are side by side where there is room
	Figures []figure
	Tables  []report.Table
}

// Run writes the report of a run as a page.
func Run(w io.Writer, p *plan.Plan, r *result.Result) error {
	return write(w, "run.tmpl", r.Run, func() (any, error) {
		v := chart.NewView(p, r)
		page := &runPage{Head: newHead(v.Title, true), View: v, PrintedBySource: v.Source != "" && v.PrintsTables(),
			Verdicts: report.CountVerdicts(v.Claims)}
		if len(v.Sections) > 0 {
			page.FirstTable, page.FirstHeading = &v.Sections[0].Tables[0], v.Sections[0].Caption+" in every phase"
		}
		return page, page.addSections()
	})
}

// addSections arranges charts and tables under headings; a section without
// either is left out.
func (p *runPage) addSections() error {
	sections := make([]section, len(chart.Sections))
	at := map[string]*section{}
	for i, s := range chart.Sections {
		s.Lead += p.ChartNotes[s.ID]
		sections[i].Section = s
		at[s.ID] = &sections[i]
	}
	for _, c := range p.Charts {
		f, err := newFigure(c)
		if err != nil {
			return err
		}
		if s := at[c.Section]; s != nil {
			s.Figures = append(s.Figures, f)
		} else {
			p.FirstChart = &f
		}
	}
	at["sweep"].Tables, at["relations"].Tables = p.Fits, p.Relations
	figures := section{Section: chart.Section{ID: "figures", Heading: "All figures"}}
	for i, s := range p.View.Sections {
		figures.Tables = append(figures.Tables, s.Tables[min(1-min(i, 1),
			len(s.Tables)):]...) // the very first is on the first screen
	}
	for _, s := range append(sections, figures) {
		if s.ID == "cost" && len(s.Figures) == 0 { // it explains what the run lacks
			s.Lead = p.ChartNotes[s.ID]
			if s.Lead == "" {
				continue
			}
		} else if len(s.Figures)+len(s.Tables) == 0 {
			continue
		}
		s.Side = s.ID != "speed" && len(s.Figures) > 1
		p.PageSections = append(p.PageSections, s)
	}
	return nil
}
