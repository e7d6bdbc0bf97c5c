package selftest

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"dmgbench/internal/engine/simulated"
	"dmgbench/internal/plan"
)

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
	s, err := newStage()
	require.NoError(t, err)
	defer s.close()
	m, err := simulated.Parse("write = 5 GB/s\nread = 6 GB/s\nlatency = 200 us\nfile_noise = 3%\nmount_noise = 1%")
	require.NoError(t, err)
	p, problems := plan.Parse("tiny", []byte(tiny))
	require.Nil(t, problems)
	a, err := s.play(t.Context(), p, m, 1, 1)
	require.NoError(t, err)
	b, err := s.play(t.Context(), p, m, 1, 1)
	require.NoError(t, err)
	a.Run, b.Run = "", "" // drawn by chance
	require.Equal(t, a, b)
	other, err := s.play(t.Context(), p, m, 2, 1)
	require.NoError(t, err)
	require.NotEqual(t, a.Summaries, other.Summaries)
	left, err := os.ReadDir(s.dir)
	require.NoError(t, err)
	require.Empty(t, left)
}
