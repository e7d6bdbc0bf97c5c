package plan_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"dmgbench/internal/plan"
	"dmgbench/internal/system/units"
)

// TestDrawFixed pins draws: what a seed gives is part of what a run can repeat.
func TestDrawFixed(t *testing.T) {
	fs := plan.FileSet{Name: "random", Parts: []plan.FilePart{{Range: []units.Bytes{4_400_000, 3_000_000_000}, Count: 4, Sets: 1, Spread: "log"}}}
	assert.Equal(t, [][]units.Bytes{{890420290, 91208431, 93423627, 83265815}}, fs.Draw(1))
	fs.Parts[0].Spread = "linear"
	linear := []units.Bytes{2442328042, 1396219071, 1407236363, 1354389673}
	assert.Equal(t, [][]units.Bytes{linear}, fs.Draw(1))
	for i, size := range linear { // the same fraction of the range on the other scale
		u := float64(size-4_400_000) / (3_000_000_000 - 4_400_000)
		want := 4_400_000 * math.Pow(3_000_000_000/4_400_000.0, u)
		assert.InEpsilon(t, want, float64([]units.Bytes{890420290, 91208431, 93423627, 83265815}[i]), 1e-6)
	}
	assert.NotEqual(t, fs.Draw(1), fs.Draw(2))
	other := fs
	other.Name = "other"
	assert.NotEqual(t, fs.Draw(1), other.Draw(1))
}

// TestDrawMixture is the consistency run (methodology P-F): 80 listed and 50 random sizes.
func TestDrawMixture(t *testing.T) {
	p := mustParse(t, `
schema = 1
title  = "mixture"
[target]
kind = "directory"
[files.mixture]
parts = [
  { sizes = ["4.4 MB", "10 MB", "20 MB", "40 MB", "60 MB", "80 MB", "100 MB", "200 MB", "400 MB", "600 MB", "800 MB",
             "1000 MB", "1500 MB", "2000 MB", "2500 MB", "3.0 GB"], sets = 5 },
  { range = ["4.4 MB", "3.0 GB"], count = 50 },
]
[[protocol]]
steps = [{ do = "create" }, { do = "attach" }, { do = "write" }]
`)
	sets := p.Files[0].Draw(7)
	require.Len(t, sets, 5)
	assert.Len(t, sets[0], 66)
	assert.Len(t, sets[4], 16)
	files, _ := p.Files[0].Count(7)
	assert.Equal(t, 130, files)
	for _, size := range slices.Concat(sets...) {
		assert.True(t, size >= 4_400_000 && size <= 3_000_000_000)
	}
}

func TestDrawRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := units.Bytes(rapid.Int64Range(1, 1<<50).Draw(t, "low"))
		high := low + units.Bytes(rapid.Int64Range(0, 1<<50).Draw(t, "more"))
		fs := plan.FileSet{Name: "f", Parts: []plan.FilePart{{Range: []units.Bytes{low, high}, Count: 20, Sets: 2, Spread: rapid.SampledFrom([]string{"log", "linear"}).Draw(t, "spread")}}}
		seed := rapid.Uint64().Draw(t, "seed")
		sets := fs.Draw(seed)
		require.Equal(t, sets, fs.Draw(seed))
		for _, size := range slices.Concat(sets...) {
			require.GreaterOrEqual(t, size, low)
			require.LessOrEqual(t, size, high)
		}
	})
}

// TestDrawLogUniform: each decade of a range gets about the same number of draws.
func TestDrawLogUniform(t *testing.T) {
	fs := plan.FileSet{Name: "f", Parts: []plan.FilePart{{Range: []units.Bytes{1000, 1_000_000_000}, Count: 6000, Sets: 1, Spread: "log"}}}
	var decades [6]int
	for _, size := range fs.Draw(3)[0] {
		d := 0
		for n := size / 1000; n >= 10 && d < 5; n /= 10 {
			d++
		}
		decades[d]++
	}
	for _, n := range decades {
		assert.InDelta(t, 1000, n, 150, "5 standard deviations")
	}
}
