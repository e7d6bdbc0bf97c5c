package plan_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/system/units"
)

const treePlan = `
schema = 1
title  = "trees"
[image]
format     = "UDSB"
size       = "1 GB"
filesystem = "exFAT"
[files.small]
tree = { files = 200, folders = 20, sizes = ["10 kB"] }
[files.sources]
tree = { shape = "source-tree", files = 40 }
[io]
files = "small"
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "tree", action = "create" },
  { do = "tree", action = "list" },
  { do = "tree", action = "read" },
  { do = "tree", action = "rewrite", share = "25%" },
  { do = "tree", action = "rename" },
  { do = "copy_out" },
  { do = "tree", action = "create", phase = "again" },
  { do = "tree", action = "delete" },
]
`

func TestEstimateOfTrees(t *testing.T) {
	p := mustParse(t, treePlan)
	for _, c := range p.Cases() {
		e := plan.Estimate(p, c)
		assert.Equal(t, 400, e.Files)
		assert.EqualValues(t, 2_000_000+500_000+2_000_000+2_000_000, e.BytesWritten, "create, rewrite, copy and create")
		assert.EqualValues(t, 4_000_000, e.BytesRead, "read and copy")
		slack := map[bool]units.Bytes{false: 32 << 10, true: 4 << 10}[c.Baseline]
		assert.EqualValues(t, 400*(10_000+slack), e.LivePeak, "every file with a cluster")
		assert.GreaterOrEqual(t, e.HostPeak, 400*(10_000+slack)+500_000)
		var files []int
		var bytes []units.Bytes
		for _, st := range e.Steps[2:] {
			files, bytes = append(files, st.Files), append(bytes, st.Bytes)
		}
		assert.Equal(t, []int{200, 200, 200, 50, 200, 200, 200, 200}, files)
		assert.Equal(t, []units.Bytes{2e6, 0, 2e6, 5e5, 0, 2e6, 2e6, 2e6}, bytes)
		assert.EqualValues(t, 2_000_000, e.Steps[len(e.Steps)-1].Live)
	}
}

// TestScaleOfTrees: the number of files and folders is scaled, sizes stay.
func TestScaleOfTrees(t *testing.T) {
	p := mustParse(t, treePlan)
	require.Equal(t, plan.Tree{Shape: "source-tree", Files: 40, Folders: 4, Depth: 4, Size: 3000, Spread: 5, Largest: 3e6,
		Executables: 0.004}, *p.Files[1].Tree, "folders follow files, and limit the depth")
	small, changes, err := p.Apply(plan.Overrides{Scale: 0.1})
	require.NoError(t, err)
	assert.Equal(t, []int{20, 2, 2}, []int{small.Files[0].Tree.Files, small.Files[0].Tree.Folders, small.Files[0].Tree.Depth})
	assert.Equal(t, []int{10, 1, 1}, []int{small.Files[1].Tree.Files, small.Files[1].Tree.Folders, small.Files[1].Tree.Depth})
	assert.Equal(t, []units.Bytes{10_000}, small.Files[0].Tree.Sizes)
	assert.EqualValues(t, 3000, small.Files[1].Tree.Size)
	assert.Equal(t, 200, p.Files[0].Tree.Files, "the published plan stays")
	require.Len(t, changes, 1)
	assert.Equal(t, "file and image sizes times 0.1; 20 files in the tree small, not 200, of the same sizes; "+
		"10 files in the tree sources, not 40, of the same sizes", changes[0].Text)
	large, _, err := p.Apply(plan.Overrides{Scale: 10})
	require.NoError(t, err)
	assert.Equal(t, []int{2000, 200}, []int{large.Files[0].Tree.Files, large.Files[0].Tree.Folders})
	assert.EqualValues(t, 10_000_269_312, large.Defaults.Size)
}

// TestShapesOfTrees: each can be named, with a number of files of its own.
func TestShapesOfTrees(t *testing.T) {
	for shape, want := range map[string][2]int{"source-tree": {40_000, 4000}, "photo-library": {4000, 40}, "application": {3000, 600}} {
		p := mustParse(t, `
schema = 1
title  = "shape"
[target]
kind = "directory"
[files.one]
tree = { shape = "`+shape+`" }
[[protocol]]
steps = [{ do = "create" }, { do = "attach" }, { do = "tree", action = "create" }]
`)
		tree := p.Files[0].Tree
		assert.Equal(t, want, [2]int{tree.Files, tree.Folders}, shape)
		files, size := p.Files[0].Count(1)
		assert.Equal(t, want[0], files)
		assert.Greater(t, size, units.Bytes(files)*tree.Size, "the mean is above the median")
		assert.Contains(t, p.Files[0].Prose(), "files of random size (median")
	}
}
