package chart

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/report"
	"dmgbench/internal/result"
)

// Points stand whether or not the plan fits anything, beside what ideal scaling would give.
func TestThreadsWithoutFits(t *testing.T) {
	p, r := makers["sweep"]()
	r.Fits = nil
	c := chartOf(t, p, r, "sweep-threads-stream")
	require.Len(t, role(c, "line"), 1)
	assert.Len(t, role(c, "line")[0].Marks, 9)
	ideal := role(c, "ideal")
	require.Len(t, ideal, 1)
	first := role(c, "line")[0].Marks[0].Y
	assert.Equal(t, report.Point(1, first), ideal[0].Marks[0])
	last := ideal[0].Marks[40]
	assert.InEpsilon(t, 14*first, last.Y, 1e-5, "fourteen threads, fourteen times the rate")
	assert.Contains(t, c.Sub, "ideal scaling")
	assert.Equal(t, axisRoom*top(role(c, "line")[0].Marks) < 14*first, c.Y.High != nil, "an ideal far off does not press what was measured flat")
}

// A rate along an axis comes with the time that it is the inverse of; other times only where something is said about
// them.
func TestSweepsHaveTimeAndRate(t *testing.T) {
	p, r := makers["sweep"]()
	for i := range slices.Clone(r.Summaries) {
		s := r.Summaries[i]
		for _, op := range []string{"stream_time", "detach_time"} {
			e := s.Estimates[0]
			e.Value, e.Unit, e.CI = 15e9/e.Value, "s", nil
			other := s
			other.Op, other.Estimates = op, []result.Estimate{e}
			r.Summaries = append(r.Summaries, other)
		}
	}
	c := chartOf(t, p, r, "sweep-threads-stream_time")
	assert.Equal(t, "s", c.Y.Unit)
	ideal := role(c, "ideal")[0].Marks
	first, last := ideal[0].Y, ideal[40].Y
	assert.InEpsilon(t, first/14, last, 1e-5)
	assert.Negative(t, index(NewView(p, r).Charts, "sweep-threads-detach_time"))
	r.Fits[0].Op, r.Fits[0].Along = "detach_time", "threads"
	assert.GreaterOrEqual(t, index(NewView(p, r).Charts, "sweep-threads-detach_time"), 0)
}

// The ideal of 14 threads that are as fast as one is 14 times as high as what was measured.
func TestAxisEndsAboveTheMeasured(t *testing.T) {
	p, r := makers["sweep"]()
	r.Fits = nil
	for i := range r.Summaries {
		for j := range r.Summaries[i].Estimates {
			r.Summaries[i].Estimates[j].Value, r.Summaries[i].Estimates[j].CI = 1e9, nil
		}
	}
	c := chartOf(t, p, r, "sweep-threads-stream")
	require.NotNil(t, c.Y.High)
	assert.InDelta(t, axisRoom*1e9, *c.Y.High, 1e9)
}
