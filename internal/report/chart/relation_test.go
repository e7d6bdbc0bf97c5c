package chart

import (
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/report"
)

// The picture has names, ranks, the line and the outliers inside, not only in its table.
func TestRelationShowsRanksAndOutliers(t *testing.T) {
	p, r := makers["sweep"]()
	rel := &r.Relations[0]
	other := rel.Points[0]
	other.Label, other.X, other.Y = "ASIF", 1.5, 2.5e9
	rel.Points = append(rel.Points, other)
	c := chartOf(t, p, r, "relation-1")
	assert.Equal(t, "UDSB (1 → 1)", c.Series[1].Name)
	rings := role(c, "warned")
	require.Len(t, rings, 1)
	require.Len(t, rings[0].Marks, 1)
	own := role(c, "named")[2].Marks[0]
	assert.Equal(t, []float64{own.X, own.Y}, []float64{rings[0].Marks[0].X, rings[0].Marks[0].Y}, "the outlier's own point")
	line := role(c, "faint")
	require.Len(t, line, 1)
	assert.Equal(t, 1.2, line[0].Marks[0].X, "the line leaves the outlier out, and ends with the others")
	assert.Equal(t, 1.9, line[0].Marks[1].X)
	svg := newEngine(t).draw(t, c, 900, "LIGHT")
	for _, text := range []string{"UDSP (2 → 3)", "off the line", "rank by ratio → by stream", "Theil–Sen"} {
		assert.Contains(t, svg, text)
	}
}

func TestPaddedHasRoomForEveryPoint(t *testing.T) {
	for _, values := range [][]float64{{1, 2, 3}, {100, 101}, {5}, {0, 0}, {-3, 4}, {-5}, {1e9, 1.01e9, 1.02e9}, {0.96e9, 2.2e9}, {1e-7, 3e-5}, {1e300, 1.7e308}} {
		var a report.Axis
		a.FitAround(pointRoom, values...)
		low, high, ticks := a.Low, a.High, a.Ticks
		if low == nil {
			assert.Greater(t, slices.Max(values), 1e308, "what leaves the numbers is left to the library")
			continue
		}
		for _, v := range values {
			assert.LessOrEqual(t, *low, v, values)
			assert.Greater(t, *high, v, values)
		}
		require.LessOrEqual(t, len(ticks), 9, values)
		require.Greater(t, len(ticks), 1, values)
		assert.Equal(t, []float64{*low, *high}, []float64{ticks[0], ticks[len(ticks)-1]}, "the axis ends on ticks")
		for i := range ticks[1:] {
			assert.InEpsilon(t, ticks[1]-ticks[0], ticks[i+1]-ticks[i], 1e-3, "%v", ticks)
		}
	}
	var a report.Axis
	a.FitAround(pointRoom)
	assert.Equal(t, report.Axis{}, a)
}

// The library adds no tick of its own beside the end of an axis, on which its label would lie.
func TestRelationAxisLabelsAreApart(t *testing.T) {
	p, r := makers["sweep"]()
	e := newEngine(t)
	for i, span := range [][2]float64{{1.05e9, 1.44e9}, {3.51e9, 3.92e9}, {1.99e9, 2.092e9}} {
		for k := range r.Relations[0].Points {
			v := span[0] + (span[1]-span[0])*float64(k)/float64(len(r.Relations[0].Points)-1)
			r.Relations[0].Points[k].X, r.Relations[0].Points[k].Y = v, v
		}
		r.Relations[0].XOp, r.Relations[0].YOp = "write", "read"
		c := chartOf(t, p, r, "relation-1")
		svg := e.draw(t, c, 900, "LIGHT")
		var labels []string
		for _, m := range regexp.MustCompile(`text-anchor="end"[^>]*font-size:11.5px[^>]*>([\d.]+)</text>`).FindAllStringSubmatch(svg, -1) {
			labels = append(labels, m[1])
		}
		var want []string
		for _, v := range c.Y.Ticks {
			want = append(want, strconv.FormatFloat(report.RoundDigits(v/1e9), 'f', -1, 64))
		}
		assert.Equal(t, want, labels, "axis %d", i)
	}
}
