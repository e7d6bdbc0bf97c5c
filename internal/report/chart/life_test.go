package chart

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/result"
)

// living is one sparse bundle: filled, measured, half deleted, filled again, measured after a detach.
func living() (*plan.Plan, *result.Result) {
	p, r := lawful(1, 4)
	c := &r.Cases[0]
	c.Target.BandSizeUsed = 8e6
	use := func(allocated int64, bands int, free int64, attached bool) *result.DiskUse {
		return &result.DiskUse{Allocated: allocated, Bands: bands, VolumeFree: free, Attached: attached}
	}
	c.Steps = []result.Step{
		{Index: 0, Do: "measure", Phase: "created", Round: 1, Disk: use(1e6, 1, -1, false)},
		{Index: 1, Do: "write", Phase: "new", Round: 1, Live: 60e6},
		{Index: 2, Do: "measure", Phase: "full", Round: 1, Live: 60e6, Disk: use(62e6, 8, 40e6, true)},
		{Index: 3, Do: "delete", Phase: "half", Round: 1, Live: 30e6},
		{Index: 4, Do: "write", Phase: "again", Cycle: 2, Round: 1, Live: 90e6},
		{Index: 5, Do: "detach", Phase: "again", Round: 1, Live: 90e6},
		{Index: 6, Do: "measure", Phase: "end", Round: 1, Live: 90e6, Disk: use(91e6, 12, -1, false)},
	}
	return p, r
}

// One picture has size, live files, bands and free space; a step shows once, and only what it knows.
func TestLifeCycleHasAllFour(t *testing.T) {
	p, r := living()
	c := chartOf(t, p, r, "life-case-1")
	assert.Equal(t, []string{"created", "full", "delete half", "end"}, c.X.Categories, "a write that sizes are taken after is not a step of its own")
	by := map[string]report.Series{}
	for _, s := range c.Series {
		if s.Role != "gap" {
			by[s.Name] = s
		}
	}
	assert.Len(t, role(c, "gap"), 2, "size and bands were not taken after the deletion; of the free space there is one point")
	assert.Equal(t, []any{1e6, 62e6, nil, 91e6}, heights(by["size on disk"]))
	assert.Equal(t, []any{0.0, 60e6, 30e6, 90e6}, heights(by["live files"]))
	assert.Equal(t, []any{nil, 40e6, nil, nil}, heights(by["free on the volume"]))
	assert.Equal(t, []any{8e6, 64e6, nil, 96e6}, heights(by["bands"]), "drawn as what they can hold")
	require.Len(t, c.Table.Columns, 5)
	assert.Equal(t, []string{"end", "91.0 MB", "90.0 MB", "", "12"}, texts(c.Table.Rows[3]))
	svg := newEngine(t).draw(t, c, 900, "LIGHT")
	assert.Contains(t, svg, ">12</text>", "the number of bands stands beside its mark")
}

// A case whose sizes were taken once has no life to draw, and a directory beside images no container.
func TestLifeCycleNeedsTwoSizes(t *testing.T) {
	p, r := living()
	r.Cases[0].Steps[2].Disk, r.Cases[0].Steps[6].Disk = nil, nil
	assert.Negative(t, index(NewView(p, r).Charts, "life-case-1"))
	p, r = makers["sample"]()
	charts := NewView(p, r).Charts
	assert.GreaterOrEqual(t, index(charts, "life-case-4"), 0)
	assert.Negative(t, index(charts, "life-case-5"), "the native directory")
}

// A cycle of steps without a phase is called by its number alone.
func TestCycled(t *testing.T) {
	assert.Equal(t, "used · cycle 1200", report.PhaseName("used", 1200))
	assert.Equal(t, "cycle 2", report.PhaseName("", 2))
	assert.Equal(t, "used", report.PhaseName("used", 0))
	assert.Empty(t, report.PhaseName("", 0))
}

// heights are the values of a line, nil for a gap.
func heights(s report.Series) (out []any) {
	for _, m := range s.Marks {
		out = append(out, known(m.Y))
	}
	return out
}
