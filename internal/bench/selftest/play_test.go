package selftest

import (
	"os"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"dmgbench/internal/analysis"
	"dmgbench/internal/bench/engine/simulated"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// The heap of a simulated run is small, and collecting it takes a share of the tests' time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

const tiny = `
schema = 1
title = "Tiny"
[image]
size = "100 GB"
filesystem_preference = ["exFAT"]
[run]
rounds = 2
canary = true
[matrix]
format = ["UDRW", "UDSB"]
[files.few]
sizes = ["2 MB", "2000 MB"]
sets = 3
[[protocol]]
steps = [
  { do = "create" }, { do = "attach" }, { do = "write", phase = "new" },
  { do = "remount" }, { do = "read", phase = "new" },
]
`

func TestPlayIsDeterministicAndLeavesNothing(t *testing.T) {
	x, err := newExam(t.Context(), Options{})
	require.NoError(t, err)
	defer x.close()
	m, err := simulated.Parse("write = 5 GB/s\nread = 6 GB/s\nlatency = 200 us\nfile_noise = 3%\nmount_noise = 1%")
	require.NoError(t, err)
	p, problems := plan.Parse("tiny", []byte(tiny))
	require.Nil(t, problems)
	play := func(seed uint64) *result.Result {
		r, err := x.measure(t.Context(), p, m, seed, 1)
		require.NoError(t, err)
		require.NoError(t, analysis.Analyze(p, r, analysis.Options{}))
		return r
	}
	a, b := play(1), play(1)
	a.Run, b.Run = "", "" // drawn by chance
	require.Equal(t, a, b)
	require.NotEqual(t, a.Summaries, play(2).Summaries)
	left, err := os.ReadDir(x.dir)
	require.NoError(t, err)
	require.Empty(t, left)
}
