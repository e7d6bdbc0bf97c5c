package chart

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/report"
	"dmgbench/internal/report/reporttest"
)

func heats(t *testing.T, m maker) []report.Chart {
	t.Helper()
	p, r := m()
	return slices.DeleteFunc(NewView(p, r).Charts, func(c report.Chart) bool { return c.Series[0].Role != "heat" })
}

// Every case meets every size once, in the class of its median, and the table has the same numbers.
func TestHeatMapHasEveryCaseAndSize(t *testing.T) {
	all := heats(t, reporttest.Sample)
	require.Len(t, all, 6, "two directions in three phases")
	c := all[0]
	require.Equal(t, "heat-1-1", c.ID)
	assert.Equal(t, []string{"20 kB", "40 kB", "60 kB"}, c.X.Categories[:3])
	seen := map[[2]int]string{}
	for _, s := range c.Series {
		for _, p := range s.Marks {
			at := [2]int{int(p.X), int(p.Y)}
			assert.NotContains(t, seen, at)
			seen[at] = p.Label
			assert.Contains(t, p.Tip, c.Y.Categories[at[1]])
		}
	}
	assert.Len(t, seen, len(c.X.Categories)*len(c.Y.Categories))
	for at, text := range seen {
		assert.Equal(t, text, c.Table.Rows[at[0]][at[1]+1].Text)
	}
	p, r := reporttest.Sample()
	sets := fileSets(report.NewView(p, r))
	var rates []float64
	for _, f := range sets[0].files {
		if f.bytes == 1e6 {
			rates = append(rates, f.rate())
		}
	}
	median, err := stats.Median(rates)
	require.NoError(t, err)
	sc := report.ColumnScale("B/s", median)
	assert.Equal(t, report.Human(median, "B/s"), seen[[2]int{slices.Index(c.X.Categories, "1 MB"), 0}]+" "+report.FirstOf(sc.Suffix, "GB/s"))
}

// A cell has its number if all have: on a narrow screen colour, tips and table remain.
func TestHeatNumbersAreAllOrNone(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	c := heats(t, reporttest.Sample)[0]
	numbers := func(width int) int {
		svg := e.draw(t, c, width, "LIGHT")
		n := 0
		for _, s := range c.Series {
			for _, p := range s.Marks {
				n += bit(strings.Contains(svg, ">"+p.Label+"</text>"))
			}
		}
		return n
	}
	assert.Equal(t, 80, numbers(1200))
	assert.Zero(t, numbers(348))
}

// One case is a line, no map.
func TestHeatMapNeedsTwoCases(t *testing.T) {
	assert.Empty(t, heats(t, makers["large"]))
}

func TestClassLimitsPartTheRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := math.Pow(10, rapid.Float64Range(3, 10).Draw(t, "low"))
		high := low * math.Pow(10, rapid.Float64Range(0, 4).Draw(t, "ratio"))
		limits := heatLimits(low, high)
		if !slices.IsSorted(limits) || len(limits) >= heatSteps || len(slices.Compact(slices.Clone(limits))) != len(limits) {
			t.Fatalf("limits %v of %v to %v", limits, low, high)
		}
		for i, l := range limits {
			if l <= low || l >= high {
				t.Fatalf("limit %v outside of %v to %v: a class would be empty by rule", l, low, high)
			}
			if stepName(limits, i) == stepName(limits, i+1) {
				t.Fatalf("two classes of one name: %v", limits)
			}
		}
	})
}

// A step of colour that no cell has is in the legend, and in the picture of a browser no exception.
func TestHeatMapMayHaveEmptySteps(t *testing.T) {
	c := heats(t, reporttest.Sample)[0]
	c.Series[1].Marks = nil
	for _, labels := range newSpec(&c)["labels"].([][]string) {
		assert.NotNil(t, labels, "the script reads a list for each series")
	}
	assert.Contains(t, newEngine(t).draw(t, c, 900, "LIGHT"), c.Series[1].Name)
}
