package report

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/report/reporttest"
	"dmgbench/internal/result"
)

// A plan that is about what works and what does not has that table first.
func TestOutcomesComeFirst(t *testing.T) {
	t.Parallel()
	m := func() (*plan.Plan, *result.Result) {
		p, r := reporttest.Sample()
		r.Tables = []result.Table{{Name: "outcome", Title: "What opens it", Columns: []result.TableLine{{Title: "as it is", Op: result.OpOutcome}},
			Rows: []result.TableLine{{Title: "raw"}}, Cells: [][]result.TableCell{{{Outcome: &result.TableOutcome{Text: "refused"}}}}}}
		return p, r
	}
	for what, out := range map[string]string{"page": html(t, m), "markdown": markdown(t, m), "screen": text(t, m, TextOptions{}), "text": text(t, m, TextOptions{Verbose: true})} {
		at := strings.Index(out, "refused")
		require.GreaterOrEqual(t, at, 0, what)
		if rate := strings.Index(out, "2.31"); rate >= 0 {
			assert.Less(t, at, rate, what)
		}
	}
}

// A doubt about the whole run is no colour and no footnote of its figures; one about a figure is both.
func TestOnlyDoubtsAboutAFigureColourIt(t *testing.T) {
	t.Parallel()
	p, r := reporttest.Sample()
	r.Tables, r.Warnings = nil, append(r.Warnings, result.Warning{Kind: "two", Text: "said of the run"})
	for i := range r.Summaries {
		r.Summaries[i].Warnings = []result.Warning{{Kind: "outliers", Text: "round " + strconv.Itoa(i)}}
		if i%2 == 0 {
			r.Summaries[i].Warnings = append(r.Summaries[i].Warnings, result.Warning{Kind: "virtual", Text: "it is virtual"}, result.Warning{Kind: "two", Text: "said of the run"})
		}
	}
	coloured := func() (n int) {
		v := NewView(p, r)
		for _, s := range v.Sections {
			for _, tb := range s.Tables {
				for _, row := range tb.Rows {
					for _, c := range row {
						if c.Class == "warn" {
							n++
						}
					}
				}
			}
		}
		return n
	}
	assert.Zero(t, coloured())
	v := NewView(p, r)
	assert.Contains(t, v.First.Above(), "all rates: some files differ much from the rest")
	assert.Equal(t, r.Summaries[0].Warnings[0].Kind, "outliers", "the result is as it was")
	r.Summaries[0].Warnings = append(r.Summaries[0].Warnings, result.Warning{Kind: "slow-first", Text: "x"})
	assert.Equal(t, 1, coloured())
}
