package analysis

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/plans"
)

// smaller is a plan of ours with one set of files: what its tables say does not hang on that.
func smaller(t *testing.T, name string) *plan.Plan {
	t.Helper()
	p, err := plan.Load("../../plans/" + name + ".toml")
	require.NoError(t, err)
	p, _, err = p.Apply(plan.Overrides{Sets: 1})
	require.NoError(t, err)
	return p
}

func tableOf(t *testing.T, r *result.Result, name string) result.Table {
	t.Helper()
	i := slices.IndexFunc(r.Tables, func(t result.Table) bool { return t.Name == name })
	require.GreaterOrEqual(t, i, 0, name)
	return r.Tables[i]
}

func TestTables(t *testing.T) {
	l := laws{rate: func(m moment) float64 { return 2e9 * (1 + 0.01*m.noise("rate")) }, engine: apple(),
		skip: func(c plan.Case) (string, string) {
			if c.Settings.Format == "ASIF" && c.Settings.Encryption == "none" {
				return result.Skipped, "no diskutil"
			}
			return "", ""
		},
		disk: func(moment) result.DiskUse { return result.DiskUse{Allocated: 5e6, VolumeFree: -1} }}
	r := analysed(t, smaller(t, "encryption-cost-2026"), 3, l)
	rates := tableOf(t, r, "rates")
	require.Len(t, rates.Cells, len(rates.Rows))
	first := rates.Cells[0][0]
	want := summaryOf(t, r, first.Case, "new", "read")
	assert.Equal(t, want.Estimates[0], *first.Estimate, "what the summary says, and nothing else")
	assert.Equal(t, "6.13 GB/s", first.Published.Text)
	assert.InDelta(t, first.Estimate.Value/6.13e9, first.Published.Ratio, 1e-12)
	assert.False(t, first.Published.Comparable, "one set is not ten")
	assert.Equal(t, "GB/s", rates.Columns[0].Unit)

	row := slices.IndexFunc(rates.Rows, func(l result.TableLine) bool { return l.Title == "UDSB, AES-256" })
	assert.NotNil(t, rates.Cells[row][1].Estimate)
	assert.Equal(t, result.TableCell{Why: "not part of the protocol"}, rates.Cells[row][2])
	row = slices.IndexFunc(rates.Rows, func(l result.TableLine) bool { return l.Title == "ASIF" })
	assert.Contains(t, rates.Cells[row][0].Why, "was skipped: no diskutil")
	assert.Equal(t, "5.99 GB/s", rates.Cells[row][0].Published.Text, "the source has it all the same")
	row = slices.IndexFunc(rates.Rows, func(l result.TableLine) bool { return strings.HasPrefix(l.Title, "native") })
	assert.Equal(t, "7.66 GB/s", rates.Cells[row][1].Published.Text)
	assert.Nil(t, rates.Cells[row][0].Published)

	then := tableOf(t, r, "since-26.0")
	assert.True(t, then.Columns[1].Printed)
	assert.Nil(t, then.Cells[0][1].Estimate)
	assert.Equal(t, "4.3 GB/s", then.Cells[0][1].Published.Text)
	assert.Equal(t, "1.58 GB/s", then.Cells[0][0].Published.Text, "the source's own figure first")

	only := smaller(t, "encryption-cost-2026")
	only, _, err := only.Apply(plan.Overrides{Only: plan.Selector{{Key: "format", Values: []string{"UDSB"}}}})
	require.NoError(t, err)
	rates = tableOf(t, analysed(t, only, 1, l), "rates")
	assert.Equal(t, "no case of this run", rates.Cells[1][0].Why)
	assert.NotEmpty(t, rates.Cells[0][0].Estimate)
}

// TestTablesPrintTheSource: every figure that a plan of an article says to be
// measured stands in one of its tables, and the virtual machine of 2024 beside them.
func TestTablesPrintTheSource(t *testing.T) {
	for _, name := range plans.Names() {
		p := loaded(t, name)
		require.NotEmpty(t, p.Tables, "%s: an article about it would print a table", name)
		s, err := newRunData(p, &result.Result{})
		require.NoError(t, err)
		printed := map[string]bool{}
		for _, table := range s.tables() {
			for _, row := range table.Cells {
				for _, c := range row {
					if c.Published != nil {
						printed[c.Published.Text] = true
					}
				}
			}
		}
		for _, f := range p.Published {
			if (!f.Unmeasured || name == "performance-2024") && f.On == (plan.On{}) {
				assert.True(t, printed[f.Value.Text], "%s: no table prints %s %s of %s", name, f.Quantity, f.Value.Text, f.Where)
			}
		}
	}
}
