package chart

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/report"
)

// An outcome has the same colour in every picture, whatever other outcomes are in it.
func TestOutcomesKeepTheirColours(t *testing.T) {
	e := newEngine(t)
	colours := func(names ...string) map[string]string {
		c := report.Chart{ID: "forest", Heading: "Write", Notes: []string{"n"}, Height: 100, Flipped: true,
			X: report.Axis{Name: "ratio", Unit: "1", Log: true, Low: new(0.9), High: new(1.1)}}
		c.Y = report.RowAxis(names)
		for i, name := range names {
			c.Add(report.Series{Role: "outcome", Name: name, Marks: []report.Mark{report.Point(1+float64(i)/100, float64(i))}})
		}
		svg := e.draw(t, c, 900, "LIGHT")
		for _, name := range names {
			assert.Contains(t, svg, name)
		}
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
		v := newEngine(t).eval(t, fmt.Sprintf(`JSON.stringify(dmgbenchMarks.errorBar('#000')({ coordSys: { y: 10, height: 100 } },
			{ value: function (i) { return [0, 0, %v, %v][i]; }, coord: function (p) { return [p[0], 110 - p[1]]; } }).children.map(function (c) { return c.shape; }))`, k.low, k.high))
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
