package report_test

import (
	"io"

	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/report/chart"
	"dmgbench/internal/report/html"
	"dmgbench/internal/report/text"
	"dmgbench/internal/result"
)

func init() {
	r := &report.Renderers
	r.HTML, r.DocumentHTML, r.Encode = html.Run, html.Document, chart.Encode
	r.Charts = func(p *plan.Plan, res *result.Result) []report.Chart { return chart.NewView(p, res).Charts }
	r.Run = func(w io.Writer, p *plan.Plan, res *result.Result, o report.TextOptions) error {
		return text.Run(w, p, res, text.Options(o))
	}
	r.Document = func(w io.Writer, d report.Document, o report.TextOptions) error {
		return text.Document(w, d, text.Options(o))
	}
	r.RunMarkdown, r.DocumentMarkdown, r.Tables = text.RunMarkdown, text.DocumentMarkdown, text.Tables
}
