package report

import (
	"bytes"
	"encoding/json"
	"fmt"
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
	e := newEngine(t)
	svg := e.draw(t, charts[0], 900, "LIGHT")
	require.NoError(t, wellFormed(svg))
	for _, text := range []string{"no change", "threshold, 5 %", "95 % interval", "UDSB", "ratio to the baseline", "3 sessions", "macOS", "Apple M4 Pro"} {
		assert.Contains(t, svg, text)
	}
	low, high := c.Within("write")
	threshold := role(charts[0], "faint")[0].Points
	assert.Equal(t, []any{xy(low, -0.5), xy(high, -0.5)}, []any{threshold[0], threshold[3]}, "drawn is the threshold that was tested")
	kinds := charts[0].legend()
	assert.Contains(t, kinds, "worse")
	assert.Contains(t, kinds, "better")
	assert.Contains(t, charts[1].legend(), "~ undecided")
	assert.Len(t, charts[0].Table.Rows, 2)
	var page bytes.Buffer
	require.NoError(t, ComparisonHTML(&page, c))
	assert.Equal(t, 2, strings.Count(page.String(), `class="chart"`))
	assert.NotContains(t, page.String(), "http://www.w3.org/1999/xlink\" src")
}

// Ratios and p values stand as people read them, with no power of ten.
func TestRowsOfComparisonsHaveNoPowersOfTen(t *testing.T) {
	p, holm := 3e-9, 0.00012
	row := analysis.CompareRow{Ratio: 1234, CI: &result.CI{Low: 0.00009, High: 12345, Method: "Welch t", Unit: "session"}, P: &p, Holm: &holm}
	assert.Contains(t, rowTitle(row), "ratio 0.0000900 to 12345, Welch t over sessions; p below 0.0001, after Holm 0.00012")
	cells := forestTable([]analysis.CompareRow{row}, func(analysis.CompareRow) string { return "x" }).Rows[0]
	assert.Equal(t, []string{"x", "1234", "0.0000900–12345"}, []string{cells[0].Text, cells[1].Text, cells[2].Text})
	assert.Equal(t, "0.00012", cells[4].Text)
}

// A bar over the rounds of one session a side is not said to be over sessions.
func TestForestsSayWhatTheirBarsAreOver(t *testing.T) {
	p := 0.01
	sessions := analysis.CompareRow{Ratio: 1.2, CI: &result.CI{Low: 1.1, High: 1.3, Unit: "session"}, P: &p}
	rounds := analysis.CompareRow{Ratio: 1.2, CI: &result.CI{Low: 1.1, High: 1.3, Unit: "round within one session a side"}}
	assert.Contains(t, forestBars([]analysis.CompareRow{sessions}), "over sessions, not adjusted; what is called better")
	alone := forestBars([]analysis.CompareRow{rounds})
	assert.Contains(t, alone, "over rounds within one session a side, not adjusted; how far sessions differ is not in them")
	assert.NotContains(t, alone, "Holm")
	assert.Contains(t, forestBars([]analysis.CompareRow{rounds, sessions}), "over rounds within one session a side, or over sessions, not adjusted; what is called better")
	assert.NotContains(t, forestBars([]analysis.CompareRow{{Ratio: 1}}), "Bars")
	rows := forestTable([]analysis.CompareRow{sessions, rounds}, func(analysis.CompareRow) string { return "x" }).Rows
	assert.Equal(t, "1.10–1.30", rows[0][2].Text)
	assert.Equal(t, "1.10–1.30 (over rounds within one session a side)", rows[1][2].Text)
}

// An outcome has the same colour in every picture, whatever other outcomes are in it.
func TestOutcomesKeepTheirColours(t *testing.T) {
	e := newEngine(t)
	colours := func(names ...string) map[string]string {
		var rows []analysis.CompareRow
		for i, n := range names {
			r := analysis.CompareRow{Case: fmt.Sprintf("format=F%d", i), Op: "write", Ratio: 1 + float64(i)/100, Status: analysis.RowChanged}
			switch n {
			case "the same":
				r.Status = analysis.RowSame
			case "better":
				r.Better = 1
			case "worse":
				r.Better = -1
			}
			rows = append(rows, r)
		}
		ch := forest(comparison(t), rows, func(r analysis.CompareRow) string { return r.Case })
		ch.ID, ch.Heading, ch.Notes = "forest", "Write", []string{"n"}
		svg := e.draw(t, ch, 900, "LIGHT")
		out := map[string]string{}
		for name, fill := range map[string]string{"the same": "#0b6bb8", "worse": "#c9570c", "better": "#0f8a68"} {
			if strings.Contains(svg, fill) {
				out[name] = fill
			}
		}
		return out
	}
	all := colours("better", "worse", "the same")
	require.Len(t, all, 3)
	for _, name := range []string{"better", "worse", "the same"} {
		assert.Equal(t, map[string]string{name: all[name]}, colours(name))
	}
}

// An interval that goes on beyond the axis ends at its edge, with an arrow, above and below.
func TestWhiskersStayInThePlot(t *testing.T) {
	for _, k := range []struct {
		low, high float64
		arrows    int
	}{{20, 80, 0}, {-50, 80, 1}, {20, 300, 1}, {-50, 300, 2}} {
		v, err := newEngine(t).RunString(fmt.Sprintf(`JSON.stringify(dmgbenchMarks.errorBar('#000', true)({ coordSys: { y: 10, height: 100 } },
			{ value: function (i) { return [0, %v, %v][i]; }, coord: function (p) { return [p[0], 110 - p[1]]; } }).children.map(function (c) { return c.shape; }))`, k.low, k.high))
		require.NoError(t, err)
		var lines []struct{ X1, Y1, X2, Y2 float64 }
		require.NoError(t, json.Unmarshal([]byte(v.String()), &lines))
		arrows := 0
		for _, l := range lines {
			for _, y := range []float64{l.Y1, l.Y2} {
				assert.True(t, y >= 10 && y <= 110, "%v to %v: %v", k.low, k.high, l)
			}
			if l.X1 != l.X2 && l.Y1 != l.Y2 {
				arrows++
			}
		}
		assert.Equal(t, 2*k.arrows, arrows, "%v to %v", k.low, k.high)
	}
}

func TestForestTicks(t *testing.T) {
	for _, span := range [][2]float64{{0.9, 1.1}, {0.5, 2}, {0.01, 900}, {0.999, 1.001}, {0.97, 1.03}} {
		ticks := forestTicks(span[0], span[1])
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
	row := analysis.CompareRow{Case: "x", Op: "allocated", Ratio: 1.4e-6, CI: &result.CI{Low: 1e-9, High: 1e-3, Unit: "session"}}
	ch := forest(c, []analysis.CompareRow{row}, func(analysis.CompareRow) string { return "x" })
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
