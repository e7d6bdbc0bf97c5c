package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/analysis"
	"dmgbench/internal/result"
)

func TestForestPlot(t *testing.T) {
	t.Parallel()
	c := comparison(t)
	var charts []Chart
	for _, s := range ComparisonDocument(c).Sections {
		charts = append(charts, s.Charts...)
	}
	require.Len(t, charts, 2, "one for writing, one for reading")
	drawn := strings.Join(slices.Concat(charts[0].Names(), charts[0].Notes, charts[0].Y.Names, []string{charts[0].X.Name}), "\n")
	for _, text := range []string{"no change", "threshold, 5 %", "95 % interval", "UDSB", "ratio to the baseline", "3 sessions", "macOS", "Apple M4 Pro"} {
		assert.Contains(t, drawn, text)
	}
	low, high := c.Within("write")
	threshold := role(charts[0], "faint")[0].Marks
	assert.Equal(t, []Mark{Point(low, -0.5), Point(high, -0.5)}, []Mark{threshold[0], threshold[3]}, "drawn is the threshold that was tested")
	kinds := charts[0].Names()
	assert.Contains(t, kinds, "worse")
	assert.Contains(t, kinds, "better")
	assert.Contains(t, charts[1].Names(), "~ undecided")
	assert.Len(t, charts[0].Table.Rows, 2)
	var page bytes.Buffer
	require.NoError(t, Renderers.DocumentHTML(&page, ComparisonDocument(c)))
	assert.Equal(t, 2, strings.Count(page.String(), `class="chart"`))
	assert.NotContains(t, page.String(), "http://www.w3.org/1999/xlink\" src")
}

// Ratios and p values stand as people read them, with no power of ten.
func TestRowsOfComparisonsHaveNoPowersOfTen(t *testing.T) {
	p, holm := 3e-9, 0.00012
	row := analysis.CompareRow{Ratio: 1234, CI: &result.CI{Low: 0.00009, High: 12345, Method: "Welch t", Unit: "session"}, P: &p, Holm: &holm}
	assert.Contains(t, rowBasis(row), "ratio 0.0000900 to 12345, Welch t over sessions; p below 0.0001, after Holm 0.00012")
	cells := forestTable([]analysis.CompareRow{row}, func(analysis.CompareRow) string { return "x" }).Rows[0]
	assert.Equal(t, []string{"x", "1234", "0.0000900–12345"}, []string{cells[0].Text, cells[1].Text, cells[2].Text})
	assert.Equal(t, "0.00012", cells[4].Text)
}

// A bar over the rounds of one session a side is not said to be over sessions.
func TestForestsSayWhatTheirBarsAreOver(t *testing.T) {
	p := 0.01
	sessions := analysis.CompareRow{Ratio: 1.2, CI: &result.CI{Low: 1.1, High: 1.3, Unit: "session"}, P: &p}
	rounds := analysis.CompareRow{Ratio: 1.2, CI: &result.CI{Low: 1.1, High: 1.3, Unit: "round within one session a side"}}
	assert.Contains(t, forestNote([]analysis.CompareRow{sessions}), "over sessions, not adjusted; what is called better")
	alone := forestNote([]analysis.CompareRow{rounds})
	assert.Contains(t, alone, "over rounds within one session a side, not adjusted; how far sessions differ is not in them")
	assert.NotContains(t, alone, "Holm")
	assert.Contains(t, forestNote([]analysis.CompareRow{rounds, sessions}), "over rounds within one session a side, or over sessions, not adjusted; what is called better")
	assert.NotContains(t, forestNote([]analysis.CompareRow{{Ratio: 1}}), "Bars")
	rows := forestTable([]analysis.CompareRow{sessions, rounds}, func(analysis.CompareRow) string { return "x" }).Rows
	assert.Equal(t, "1.10–1.30", rows[0][2].Text)
	assert.Equal(t, "1.10–1.30 (over rounds within one session a side)", rows[1][2].Text)
}

func TestRatioTicks(t *testing.T) {
	for _, far := range []float64{1.25, 1.5, 2, 3, 8, 40, 1e3, 1e6} {
		assert.Contains(t, RoundTicks(1/far, far), 1.0, far)
		assert.GreaterOrEqual(t, len(RoundTicks(1/far, far)), 3, far)
	}
	for _, span := range [][2]float64{{0.9, 1.1}, {0.5, 2}, {0.01, 900}, {0.999, 1.001}, {0.97, 1.03}} {
		ticks := RoundTicks(span[0], span[1])
		assert.NotEmpty(t, ticks, span)
		assert.LessOrEqual(t, len(ticks), 20, span)
		for _, v := range ticks {
			assert.True(t, v >= span[0]*(1-1e-9) && v <= span[1]*(1+1e-9), "%v in %v", v, span)
		}
	}
}

// An empty bundle against an image that is allocated in full: the point lies in the picture.
func TestForestShowsEveryRatio(t *testing.T) {
	c := comparison(t)
	row := analysis.CompareRow{Case: "x", Op: "allocated", Side: c.Sides[1].Name, Ratio: 1.4e-6, CI: &result.CI{Low: 1e-9, High: 1e-3, Unit: "session"}}
	c.Rows = []analysis.CompareRow{row}
	ch := forests(c, "allocated", c.Sides[1].Name, "forest", func(analysis.CompareRow) string { return "x" })[0]
	assert.Less(t, *ch.X.Low, row.Ratio)
	assert.Greater(t, *ch.X.Low, 1e-7, "the interval is cut")
	assert.LessOrEqual(t, len(ch.X.Ticks), 8)
}

// What is not clear enough after Holm says so, where its interval by itself would say a change.
func TestUnclearRowsSayWhy(t *testing.T) {
	c := comparison(t)
	at := 0
	for c.Rows[at].Status != analysis.RowUnclear {
		at++
	}
	const why = "~ next to an interval that does not contain 0"
	text := func() string {
		var out bytes.Buffer
		require.NoError(t, Renderers.DocumentMarkdown(&out, ComparisonDocument(c)))
		return out.String()
	}
	c.Rows[at].CI.Low, c.Rows[at].CI.High = 0.9, 1.1
	assert.NotContains(t, text(), why)
	c.Rows[at].CI.Low = 1.02
	assert.Contains(t, text(), why)
}
