package report

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The picture has names, ranks, the line and the outliers inside, not only in its table.
func TestRelationShowsRanksAndOutliers(t *testing.T) {
	p, r := makers["sweep"]()
	rel := &r.Relations[0]
	other := rel.Points[0]
	other.Label, other.X, other.Y = "ASIF", 1.5, 2.5e9
	rel.Points = append(rel.Points, other)
	c := chartOf(t, p, r, "relation-1")
	assert.Equal(t, "UDSB (1 → 1)", c.series[1].name)
	rings := role(c, "warned")
	require.Len(t, rings, 1)
	require.Len(t, rings[0].points, 1)
	assert.Equal(t, role(c, "named")[2].points[0], rings[0].points[0], "the outlier's own point")
	line := role(c, "faint")
	require.Len(t, line, 1)
	assert.Equal(t, 1.2, line[0].points[0].([]any)[0], "the line leaves the outlier out, and ends with the others")
	assert.Equal(t, 1.9, line[0].points[1].([]any)[0])
	svg := newEngine(t).draw(t, c, 900, "LIGHT")
	for _, text := range []string{"UDSP (2 → 3)", "off the line", "rank by ratio → by stream", "Theil–Sen"} {
		assert.Contains(t, svg, text)
	}
}

func TestPaddedHasRoomForEveryPoint(t *testing.T) {
	for _, values := range [][]float64{{1, 2, 3}, {100, 101}, {5}, {0, 0}, {-3, 4}, {1e9, 1.01e9, 1.02e9}} {
		low, high := padded(values)
		for _, v := range values {
			assert.LessOrEqual(t, *low, v, values)
			assert.Greater(t, *high, v, values)
		}
	}
	low, high := padded(nil)
	assert.Nil(t, low)
	assert.Nil(t, high)
}
