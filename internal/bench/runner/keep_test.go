package runner_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/runner"
)

// Images of finished cases outlive an interrupt, a resume and the rest of the
// run, and the lines that open them are all printed at the end.
func TestKeptImagesOutliveAnInterrupt(t *testing.T) {
	c := lived(t, once)
	c.Keep = true
	ctx, cancel := context.WithCancel(t.Context())
	cases := map[string]bool{}
	c.Progress = &at{when: func(s runner.Status) bool {
		cases[s.Case] = true
		return len(cases) == 2 && s.Do == "read"
	}, do: cancel}
	out, err := runner.Run(ctx, c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusInterrupted, out.Status)
	list, err := os.ReadDir(work(t, c))
	require.NoError(t, err)
	require.Len(t, list, 2, "marker and the image of the first case")
	first := list[1]
	before, err := first.Info()
	require.NoError(t, err)

	c.Plan, c.Progress, c.Keep = nil, nil, false // the journal knows
	out, err = runner.Resume(t.Context(), c.Out, c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusDone, out.Status)
	list, err = os.ReadDir(work(t, c))
	require.NoError(t, err)
	require.Len(t, list, 3)
	after, err := os.Stat(work(t, c) + "/" + first.Name())
	require.NoError(t, err)
	assert.Equal(t, before.ModTime(), after.ModTime())
	for _, f := range list[1:] {
		assert.Contains(t, strings.Join(out.Kept, "\n"), f.Name())
	}

	require.NoError(t, runner.Clean(t.Context(), c.StateDir, runner.CleanOptions{}, new(strings.Builder)))
	nothingLeft(t, c)
}

func TestKeepingNeedsSpaceForEveryImage(t *testing.T) {
	c := lived(t, once)
	c.Plan.Run.Rounds = 1 << 30
	c.Keep = true
	_, err := runner.Run(t.Context(), c)
	var unfit *runner.NotFitError
	require.ErrorAs(t, err, &unfit)
	require.NoDirExists(t, c.Out)
}
