package chart

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/report/reporttest"
	"dmgbench/internal/result"
)

// The first screen has a chart of the main numbers: one of those further down, which then are one less, or their
// first cases.
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
		charts := v.Charts
		require.NotEmpty(t, charts, name)
		first := charts[0]
		assert.Equal(t, "first", first.Section, name)
		assert.LessOrEqual(t, len(first.Y.Categories), 7, name)
		assert.Contains(t, strings.Join(first.Notes, " "), "Example workstation", "%s: machine and plan are inside", name)
		assert.Contains(t, first.Sub, "rounds", name)
		assert.Contains(t, first.Description(), first.Heading, name)
		isSame := func(c report.Chart) bool { return reflect.DeepEqual(c.Table.Rows, first.Table.Rows) }
		before := speedCharts(&run{View: v})
		assert.Equal(t, c.moved, slices.ContainsFunc(before, isSame), "%s: %s", name, first.ID)
		assert.False(t, slices.ContainsFunc(charts[1:], isSame), name)
	}
}

// A saved picture has a margin on each side.
func TestSavedPicturesHaveMargins(t *testing.T) {
	t.Parallel()
	p, r := reporttest.Sample()
	for _, c := range NewView(p, r).Charts[:3] {
		svg := newEngine(t).draw(t, c, pictureWidth, "LIGHT")
		for _, m := range regexp.MustCompile(`<text [^>]*text-anchor="start"[^>]*translate\((-?[\d.]+) (-?[\d.]+)\)`).FindAllStringSubmatch(svg, -1) {
			for _, at := range m[1:] {
				n, err := strconv.ParseFloat(at, 64)
				require.NoError(t, err)
				assert.GreaterOrEqual(t, n, 24.0, "%s: %s", c.ID, m[0])
			}
		}
	}
}
