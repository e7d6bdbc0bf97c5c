package chart

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/report"
	"dmgbench/internal/report/reporttest"
	"dmgbench/internal/result"
)

// Only cases that differ in nothing but encryption stand beside each other.
func TestEncryptionChart(t *testing.T) {
	t.Parallel()
	p, r := reporttest.Sample()
	charts := NewView(p, r).Charts
	at := index(charts, "encryption-write-new")
	require.GreaterOrEqual(t, at, 0)
	c := charts[at]
	assert.Equal(t, []string{"UDRW", "UDSB"}, c.Y.Categories, "no ASIF, UDSP or directory: they have no partner")
	require.Len(t, c.Table.Rows, 4)
	assert.Equal(t, "unencrypted", c.Series[0].Name)
	assert.Equal(t, "AES-256", c.Series[1].Name)
	assert.NotContains(t, c.Names(), "published")

	// A published figure is said to be one, and lies on the scale; an interval that does not is said to go on.
	for i := range r.Summaries {
		if s := &r.Summaries[i]; s.Op == "write" && s.Phase == "new" {
			h := report.Headline(s)
			s.Published = []result.PublishedValue{{Kind: "is", Low: 9 * h.Value, High: 9 * h.Value, Unit: h.Unit, Ratio: 1.0 / 9, Estimate: h.Name, Comparable: true}}
			h.CI = &result.CI{Low: h.Value / 2, High: 99 * h.Value, Level: 0.95, Method: "Student t of logarithms", Unit: "round"}
		}
	}
	charts = NewView(p, r).Charts
	c = charts[index(charts, "encryption-write-new")]
	assert.Contains(t, c.Names(), "published")
	assert.Contains(t, c.Notes[0], "An arrow goes on beyond the scale.")
	for _, m := range c.Marks() {
		assert.Positive(t, m.Published)
		assert.LessOrEqual(t, m.Published, *c.X.High)
	}
	for i := range r.Cases {
		for j := range r.Cases[i].Keys {
			if r.Cases[i].Keys[j][0] == "encryption" {
				r.Cases[i].Keys[j][1] = "none"
			}
		}
	}
	assert.Negative(t, index(NewView(p, r).Charts, "encryption-write-new"))
}
