package report

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/report/reporttest"
	"dmgbench/internal/result"
)

// The first screen has a chart of the main numbers: one of those further down, which then are one less, or their first cases.
func TestFirstChart(t *testing.T) {
	t.Parallel()
	onePhase := func() (*plan.Plan, *result.Result) {
		p, r := reporttest.Sample()
		r.Tables = nil
		var kept []result.Summary
		for _, s := range r.Summaries {
			if s.Phase == "new" {
				kept = append(kept, s)
			}
		}
		r.Summaries = kept
		return p, r
	}
	for name, c := range map[string]struct {
		make  maker
		moved bool
	}{"sample": {reporttest.Sample, false}, "one phase": {onePhase, true}, "sweep": {reporttest.Sweep, false}} {
		v := NewView(c.make())
		charts := v.Charts()
		require.NotEmpty(t, charts, name)
		first := charts[0]
		assert.Equal(t, "first", first.Section, name)
		assert.LessOrEqual(t, len(first.Y.Categories), mainRows, name)
		assert.Contains(t, strings.Join(first.Notes, " "), "Example workstation", "%s: machine and plan are inside", name)
		assert.Contains(t, first.Sub, "rounds", name)
		assert.Contains(t, first.description(), first.Heading, name)
		before := v.barCharts()
		assert.Equal(t, c.moved, index(before, first.ID) >= 0, "%s: %s", name, first.ID)
		assert.Equal(t, 1, countOf(charts, first.ID), name)
	}
	page := html(t, maker(reporttest.Sample))
	assert.Less(t, strings.Index(page, "<figure>"), strings.Index(page, `id="h-claims"`))
	assert.Equal(t, 1, strings.Count(page, `data-for="first"`))
}

func countOf(charts []Chart, id string) (n int) {
	for _, c := range charts {
		n += bit(c.ID == id)
	}
	return n
}

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
						n += bit(c.Class == "warn")
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

func TestNamesOfPictures(t *testing.T) {
	t.Parallel()
	charts := []Chart{{Heading: "Write and read speed of each case, phase “new”"}, {Heading: "Size – on disk"}, {Heading: "Size on disk!"}, {Heading: "Größe/../x"},
		{Heading: "“”"}, {Heading: strings.Repeat("word ", 40)}, {Heading: "size on disk 2"}}
	nameFiles(charts)
	want := []string{"write-and-read-speed-of-each-case-phase-new", "size-on-disk", "size-on-disk-2", "gr-e-x", "chart",
		strings.TrimSuffix(strings.Repeat("word-", 16), "-"), "size-on-disk-2-2"}
	for i, c := range charts {
		assert.Equal(t, want[i], c.File)
		assert.LessOrEqual(t, len(c.File), maxPictureName)
	}
}

// A saved picture has a margin on each side.
func TestSavedPicturesHaveMargins(t *testing.T) {
	t.Parallel()
	p, r := reporttest.Sample()
	d, err := newDrawer(func(string) {})
	require.NoError(t, err)
	for _, c := range NewView(p, r).Charts()[:3] {
		svg, err := d.draw(c, pictureWidth, "LIGHT")
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`<text [^>]*text-anchor="start"[^>]*translate\((-?[\d.]+) (-?[\d.]+)\)`).FindAllStringSubmatch(svg, -1) {
			for _, at := range m[1:] {
				n, err := strconv.ParseFloat(at, 64)
				require.NoError(t, err)
				assert.GreaterOrEqual(t, n, 24.0, "%s: %s", c.ID, m[0])
			}
		}
	}
}
