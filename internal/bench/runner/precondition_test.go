package runner_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/analysis"
	"dmgbench/internal/bench/engine/simulated"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/result"
)

// onLaw runs a plan on the truth device with this law.
func onLaw(t *testing.T, text, law string) runner.Config {
	t.Helper()
	c := config(t, text)
	c.Volatile = true
	m, err := simulated.Parse("write = 1 GB/s\nread = 1 GB/s\n" + law)
	require.NoError(t, err)
	c.Engine, err = simulated.New(m, c.Clock, 7, 1)
	require.NoError(t, err)
	return c
}

func TestPreconditionEndsByTheRuleOrAtALimit(t *testing.T) {
	for name, x := range map[string]struct {
		more, law string
		samples   int // 0: any
		steady    bool
		says      string
	}{
		"quiet":           {"", "", 20, true, "settled after"},
		"slow first file": {"", "first = x 5", 21, true, "settled after"},
		"full cache":      {"\nsteady_window = 30", "cliff = 4 GB x 3", 0, true, "settled after"},
		"time":            {"\nsteady_max_time = \"8 s\"\nsteady_limit = \"0.001%\"", "file_noise = 30%", 0, false, "did not settle within 8.00 s"},
		"bytes":           {"\nsteady_max_written = \"1 GB\"", "", 3, false, "allows 3 of the 20 files"},
	} {
		t.Run(name, func(t *testing.T) {
			c := onLaw(t, strings.Replace(untilNarrow, `rounds = "auto"`, "rounds = 1\nprecondition = \"steady\""+x.more, 1), x.law)
			out, err := runner.Run(t.Context(), c)
			require.NoError(t, err)
			require.Equal(t, runner.StatusDone, out.Status)
			r := fold(t, c.Out)
			require.Len(t, r.Preconditions, 1, "both cases are at one place")
			p := r.Preconditions[0]
			assert.Equal(t, x.steady, p.Steady, p.Text)
			assert.Contains(t, p.Text, x.says)
			if x.samples > 0 {
				assert.Len(t, p.Samples, x.samples)
			}
			if name == "full cache" { // 16 files fast: a window that holds both speeds does not settle
				assert.GreaterOrEqual(t, len(p.Samples), 30+15)
			}
			warned := false
			for _, w := range r.Warnings {
				warned = warned || w.Kind == "not-steady"
			}
			assert.Equal(t, !x.steady, warned)
		})
	}
}

// On a real folder the file is gone behind it, also where it is interrupted, and a
// later session settles the disk anew.
func TestPreconditionLeavesNothingAndComesBackWithEverySession(t *testing.T) {
	text := strings.Replace(small, "rounds = 2", "rounds = 2\nprecondition = \"steady\"\nsteady_window = 5\nsteady_file = \"64 kB\"\nsteady_max_written = \"640 kB\"", 1)
	c := config(t, text)
	ctx, cancel := context.WithCancel(t.Context())
	c.Progress = &stopper{left: 8, cancel: cancel}
	out, err := runner.Run(ctx, c)
	cancel()
	require.NoError(t, err)
	require.Equal(t, runner.StatusInterrupted, out.Status)
	c.Progress = nil
	out, err = resumed(t.Context(), t, c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusDone, out.Status)
	r := fold(t, c.Out)
	require.Len(t, r.Preconditions, 2)
	for i, p := range r.Preconditions {
		assert.Equal(t, i+1, p.Session)
		assert.LessOrEqual(t, len(p.Samples), 10)
	}
	left, err := filepath.Glob(filepath.Join(c.Out, "dmgbench-*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

// A rate that changes from round to round is said to be taken in a transient, one
// that only scatters is not.
func TestTransientIsSaid(t *testing.T) {
	text := strings.NewReplacer(`rounds = "auto"`, "rounds = 8", "10 GB", "1 TB", `"1 GB"`, `"100 GB"`).Replace(untilNarrow)
	for law, want := range map[string]int{"mount_noise = 3%": 0, "drift = 1000%": 2} {
		c := onLaw(t, text, law)
		_, err := runner.Run(t.Context(), c)
		require.NoError(t, err)
		r := fold(t, c.Out)
		require.NoError(t, analysis.Analyze(c.Plan, r, analysis.Options{}))
		found := 0
		for _, s := range r.Summaries {
			for _, w := range s.Warnings {
				if w.Kind == "transient" {
					found++
					assert.Contains(t, w.Text, "slower")
				}
			}
		}
		assert.Equal(t, want, found, law)
		assert.Equal(t, result.Done, r.Status)
	}
}
