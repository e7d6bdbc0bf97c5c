package analysis

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

func cellOf(t *testing.T, table result.Table, row, column string) result.TableCell {
	t.Helper()
	at := func(lines []result.TableLine, title string) int {
		i := slices.IndexFunc(lines, func(l result.TableLine) bool { return l.Title == title })
		require.GreaterOrEqual(t, i, 0, title)
		return i
	}
	return table.Cells[at(table.Rows, row)][at(table.Columns, column)]
}

// loaded is a shipped plan as it is.
func loaded(t *testing.T, name string) *plan.Plan {
	t.Helper()
	p, err := plan.Load("../../plans/" + name + ".toml")
	require.NoError(t, err)
	return p
}

// The line through the times of files without noise is their law: its rate and
// its time for each file stand in the table, each beside its fit.
func TestTablesOfCoefficients(t *testing.T) {
	rates := map[string]float64{"UDSB": 2e9, "native": 4e9}
	l := steady(rates, 0)
	l.latency = 3e-3
	r := analysed(t, loaded(t, "consistency-2024"), 3, l)
	table := tableOf(t, r, "consistency")
	for row, rate := range map[string]float64{"sparse bundle (UDSB)": 2e9, "native folder": 4e9} {
		slope, time := cellOf(t, table, row, "rate"), cellOf(t, table, row, "time of each file")
		assert.InEpsilon(t, rate, slope.Estimate.Value, 1e-6)
		assert.Equal(t, "B/s", slope.Estimate.Unit)
		assert.LessOrEqual(t, slope.Estimate.CI.Low, slope.Estimate.CI.High)
		assert.InEpsilon(t, rate, slope.Estimate.CI.High, 1e-6)
		assert.InEpsilon(t, 3e-3, time.Estimate.Value, 1e-4)
		assert.Equal(t, "s", time.Estimate.Unit)
		r2 := cellOf(t, table, row, "R²").Estimate
		assert.InDelta(t, 1, r2.Value, 1e-9)
		assert.NotEmpty(t, r2.Why)
		least := cellOf(t, table, row, "slowest").Estimate
		assert.Equal(t, "minimum", least.Name)
		assert.Less(t, least.Value, rate)
	}
	assert.Equal(t, "write-line", cellOf(t, table, "sparse bundle (UDSB)", "rate").Fit)
	assert.Equal(t, result.OpCoefficient, table.Columns[len(table.Columns)-1].Op)

	l.rate = func(m moment) float64 { return float64(m.size) / (1 - 1e-11*float64(m.size)) } // the larger the quicker
	r = analysed(t, loaded(t, "consistency-2024"), 1, l)
	falling := cellOf(t, tableOf(t, r, "consistency"), "native folder", "rate")
	assert.Nil(t, falling.Estimate)
	assert.Equal(t, "the fitted time does not grow with the size", falling.Why)

	l.skip = func(c plan.Case) (string, string) { return result.Skipped, "no tool" }
	r = analysed(t, loaded(t, "consistency-2024"), 1, l)
	assert.Contains(t, cellOf(t, tableOf(t, r, "consistency"), "native folder", "R²").Why, "no tool")
}

// Coefficients that the source prints stand beside the fitted ones.
func TestTablesOfPublishedCoefficients(t *testing.T) {
	l := laws{engine: apple(), rate: func(moment) float64 { return 1e9 }, stream: func(m moment) (float64, int64, int64) {
		return 50 * math.Pow(float64(m.c.Settings.Threads), -0.9), 15_517_000_000, 14e9
	}}
	r := analysed(t, loaded(t, "thread-scaling-2024"), 1, l)
	factor := cellOf(t, tableOf(t, r, "time-law"), "host", "factor")
	assert.InEpsilon(t, 50, factor.Estimate.Value, 1e-6)
	assert.Equal(t, "49.8863 s", factor.Published.Text)
	assert.InEpsilon(t, 50/49.8863, factor.Published.Ratio, 1e-6)
	exponent := cellOf(t, tableOf(t, r, "time-law"), "virtual machine", "exponent")
	assert.InDelta(t, -0.854318, exponent.Published.Low, 1e-12)
	assert.Equal(t, "1", exponent.Estimate.Unit)
	slope := cellOf(t, tableOf(t, r, "rate-line"), "host", "slope")
	assert.Equal(t, "B/s", slope.Estimate.Unit)
	assert.Equal(t, "0.264 GB/s", slope.Published.Text)
}

// What became of the steps is told in the plan's words, over all rounds.
func TestTablesOfOutcomes(t *testing.T) {
	l := laws{engine: apple(), rate: func(moment) float64 { return 1e9 }, fail: func(m moment) string {
		switch {
		case m.step.Expect == "fail":
			return "attaching: file system damaged"
		case m.step.Do == "verify" && m.step.Phase == "repaired" && m.format() == "ASIF" && m.round == 2:
			return "verifying: 1 file differs"
		}
		return ""
	}, skip: func(c plan.Case) (string, string) {
		if c.Settings.VolumeName == "CONVERT" {
			return result.Skipped, "no such format"
		}
		return "", ""
	}}
	table := tableOf(t, analysed(t, loaded(t, "repair-2026"), 3, l), "outcome")
	refused := cellOf(t, table, "read-write (UDRW)", "as it is")
	assert.Equal(t, &result.TableOutcome{Do: "attach", Text: "refused", Failed: 3}, refused.Outcome)
	assert.Equal(t, 3, refused.Rounds)
	assert.Empty(t, refused.Why)
	assert.Equal(t, "refused", cellOf(t, table, "compressed (UDZO)", "as it is").Outcome.Text)
	assert.Equal(t, "mounts", cellOf(t, table, "ASIF", "afterwards").Outcome.Text)
	assert.Equal(t, "as written 2 of 3 times, differ 1", cellOf(t, table, "ASIF", "files").Outcome.Text)
	assert.Equal(t, "not part of the protocol", cellOf(t, table, "compressed (UDZO)", "repair").Why)
	assert.Contains(t, cellOf(t, table, "converted to UDSB first", "repair").Why, "no such format")
	assert.Equal(t, result.OpOutcome, table.Columns[0].Op)
}

// A statistic may stand beside the selection instead of the quantity.
func TestTablesOfStatistics(t *testing.T) {
	l := laws{engine: own(), rate: func(m moment) float64 { return 1e9 * (1 + 0.2*m.noise("file")) }}
	r := analysed(t, smaller(t, "gold-standard"), 3, l)
	table := tableOf(t, r, "statistics")
	names := map[string]bool{}
	for i := range table.Rows {
		names[table.Cells[i][0].Estimate.Name] = true
	}
	assert.Len(t, names, len(table.Rows))
	sum := summaryOf(t, r, table.Cells[0][0].Case, "gold", "write")
	mean, _ := findEstimate(sum.Estimates, "mean")
	assert.Equal(t, mean, *cellOf(t, table, "average", "write").Estimate)
}

// A figure over the bytes of files says why an empty volume has none.
func TestTablesOfEmptyVolumes(t *testing.T) {
	p := planOf(t, `schema = 1
title = "x"
[image]
format = "UDSB"
size = "1 GB"
[files.few]
sizes = ["1 MB"]
[[protocol]]
steps = [{ do = "create" }, { do = "measure", phase = "empty" }, { do = "attach" }, { do = "write" }, { do = "detach" }, { do = "measure", phase = "full" }]
[[table]]
name = "space"
title = "Space"
columns = [{ title = "empty", overhead = { phase = "empty" } }, { title = "full", overhead = { phase = "full" } }]
rows = [{ title = "bundle", where = { format = "UDSB" } }]
`)
	r := analysed(t, p, 3, laws{engine: own(), rate: func(moment) float64 { return 1e9 }, disk: func(moment) result.DiskUse { return result.DiskUse{Allocated: 2e6} }})
	table := tableOf(t, r, "space")
	assert.Contains(t, cellOf(t, table, "bundle", "empty").Why, "no files were on the volume")
	assert.InDelta(t, 2, cellOf(t, table, "bundle", "full").Estimate.Value, 1e-9)
}

// What the source measured and the plan does not, stands in the table and says so.
func TestTablesOfWhatIsNotMeasured(t *testing.T) {
	r := analysed(t, smaller(t, "performance-2024"), 1, laws{engine: own(), rate: func(moment) float64 { return 1e9 }})
	table := tableOf(t, r, "rates")
	vm := table.Cells[len(table.Rows)-1]
	assert.Equal(t, "virtual machine, FileVault", table.Rows[len(table.Rows)-1].Title)
	assert.Nil(t, vm[0].Estimate)
	assert.Equal(t, "this plan does not measure it", vm[0].Why)
	assert.Equal(t, "5.9 GB/s", vm[0].Published.Text)
	assert.Nil(t, vm[2].Published)
	assert.Nil(t, vm[3].Published, "3.2 GB/s is the disk's own")
	native := table.Cells[0][0]
	assert.NotNil(t, native.Estimate)
	assert.NotEqual(t, "5.9 GB/s", native.Published.Text)
}

// The rounds of an outcome are rounds, also where it is that of two steps of each.
func TestRoundsOfAnOutcomeOfSeveralSteps(t *testing.T) {
	p := planOf(t, `schema = 1
title = "Checks"
[image]
format = "UDSB"
size = "1 GB"
[files.few]
sizes = ["1 MB"]
[[protocol]]
steps = [
  { do = "create" }, { do = "attach" }, { do = "write" }, { do = "detach" },
  { do = "check", what = "container" }, { do = "check" },
]
[[table]]
name = "checks"
title = "Checks"
columns = [{ title = "checked", outcome = { do = "check" } }]
rows = [{ title = "bundle", where = { format = "UDSB" } }]
`)
	cell := cellOf(t, tableOf(t, analysed(t, p, 3, laws{engine: own(), rate: func(moment) float64 { return 1e9 }}), "checks"), "bundle", "checked")
	assert.Equal(t, &result.TableOutcome{Do: "check", Text: "ok", OK: 6}, cell.Outcome)
	assert.Equal(t, 3, cell.Rounds)
}
