package chart

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/result"
)

// A warning of one step is a ring at its place and time; one that all steps carry marks nothing.
func TestDriftRingsWarnings(t *testing.T) {
	p, r := makers["sample"]()
	everyStep := result.Warning{Kind: "cache", Text: "the host may cache"}
	eachStep(r, func(s *result.Step) {
		if s.Span != nil {
			s.Warnings = append(s.Warnings, everyStep)
		}
	})
	var slow *result.Step
	for i := range r.Cases[1].Steps {
		if s := &r.Cases[1].Steps[i]; s.Op == "read" && s.Phase == "emptied" && s.Round == 2 {
			slow = s
		}
	}
	slow.Samples[0].DurationNS *= 50 // the first file waits for something
	c := chartOf(t, p, r, "drift")
	ring := c.Series[len(c.Series)-1]
	require.Equal(t, "warned", ring.Role)
	require.Len(t, ring.Marks, 1)
	assert.Contains(t, ring.Marks[0].Tip, "read-write image (UDRW) · AES-256, read emptied")
	assert.Contains(t, ring.Marks[0].Tip, "the first file took")
	at := ring.Marks[0]
	found := false
	for _, s := range c.Series {
		if s.Name == "read-write image (UDRW) · AES-256" {
			for _, point := range s.Marks {
				found = found || point.X == at.X && point.Y == at.Y
			}
		}
	}
	assert.True(t, found, "the ring is around the step's own point")
	assert.Contains(t, c.Notes[0], "On half of the steps or more: the host may cache.")
	assert.Contains(t, c.Sub, "Rings: 1 step with")
	rows := 0
	for _, row := range c.Table.Rows {
		if strings.Contains(row[5].Text, "slow-first (round 2)") {
			assert.Equal(t, []string{"read-write image (UDRW) · AES-256", "read emptied"}, texts(row[:2]))
			rows++
		}
		assert.NotContains(t, row[5].Text, "cache")
	}
	assert.Equal(t, 1, rows)
}

func TestDriftWithoutWarningsSaysSo(t *testing.T) {
	p, r := makers["sample"]()
	eachStep(r, func(s *result.Step) { s.Warnings = nil })
	assert.Contains(t, chartOf(t, p, r, "drift").Sub, "No step has a warning of its own.")
}
