package report

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/report/reporttest"
)

// Only cases that differ in nothing but encryption stand beside each other.
func TestEncryptionChart(t *testing.T) {
	t.Parallel()
	p, r := reporttest.Sample()
	charts := newView(p, r).charts()
	at := index(charts, "encryption-write-new")
	require.GreaterOrEqual(t, at, 0)
	c := charts[at]
	assert.Equal(t, []string{"UDRW", "UDSB"}, c.y.categories, "no ASIF, UDSP or directory: they have no partner")
	require.Len(t, c.table.Rows, 4)
	assert.Equal(t, "unencrypted", c.series[0].name)
	assert.Equal(t, "AES-256", c.series[2].name)
	for i := range r.Cases {
		for j := range r.Cases[i].Keys {
			if r.Cases[i].Keys[j][0] == "encryption" {
				r.Cases[i].Keys[j][1] = "none"
			}
		}
	}
	assert.Negative(t, index(newView(p, r).charts(), "encryption-write-new"))
}
