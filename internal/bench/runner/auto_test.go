package runner_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/analysis"
	"dmgbench/internal/bench/engine/simulated"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/clock"
)

const untilNarrow = `
schema = 1
title = "Until narrow"
[image]
size = "10 GB"
filesystem_preference = ["exFAT"]
[run]
rounds = "auto"
baseline = false
canary = false
[matrix]
format = ["UDRW", "UDSB"]
[files.one]
sizes = ["1 GB"]
sets = 1
[[protocol]]
steps = [{ do = "create" }, { do = "attach" }, { do = "write", phase = "new" }]
`

// noisy is a run of the plan on the truth device whose mounts scatter so much.
func noisy(t *testing.T, more, noise string) runner.Config {
	t.Helper()
	c := config(t, strings.Replace(untilNarrow, `rounds = "auto"`, `rounds = "auto"`+more, 1))
	m, err := simulated.Parse("write = 1 GB/s\nread = 1 GB/s\nmount_noise = " + noise)
	require.NoError(t, err)
	c.Volatile = true
	c.Engine, err = simulated.New(m, c.Clock, 7, 1)
	require.NoError(t, err)
	return c
}

func TestAutoRoundsEndWhereTheyShould(t *testing.T) {
	for name, x := range map[string]struct {
		more, noise string
		rounds      int
		stop        string
		looks       []int
	}{
		"no scatter":     {"", "0%", 5, result.StopPrecise, []int{5, 9, 17, 30}},
		"some scatter":   {"", "3%", 9, result.StopPrecise, []int{5, 9, 17, 30}},
		"too much":       {"\nmax_rounds = 12", "40%", 12, result.StopRounds, []int{5, 8, 12}},
		"few rounds":     {"\nmax_rounds = 2", "40%", 2, result.StopRounds, []int{2}},
		"bytes":          {"\nmax_written = \"13 GB\"", "40%", 6, result.StopWritten, []int{5, 6}},
		"time":           {"\nmax_time = \"15 s\"", "20%", 0, result.StopTime, []int{5, 9, 17, 30}},
		"time, one only": {"\nmax_time = \"1 s\"", "20%", 1, result.StopTime, []int{5, 9, 17, 30}},
	} {
		t.Run(name, func(t *testing.T) {
			c := noisy(t, x.more, x.noise)
			out, err := runner.Run(t.Context(), c)
			require.NoError(t, err)
			require.Equal(t, runner.StatusDone, out.Status)
			r := fold(t, c.Out)
			last := r.Auto.Decisions[len(r.Auto.Decisions)-1]
			require.Equal(t, x.stop, last.Stop, last.Text)
			assert.Equal(t, x.looks, r.Auto.Looks)
			assert.Equal(t, last.Round, r.Rounds)
			if x.rounds > 0 {
				assert.Equal(t, x.rounds, r.Rounds, last.Text)
			}
			assert.Equal(t, int64(r.Rounds)*2e9, last.Written)
			if name == "time" {
				assert.LessOrEqual(t, last.ElapsedNS, int64(15e9))
				assert.Greater(t, r.Rounds, 3)
			}
			for _, cs := range r.Cases {
				assert.Equal(t, result.Done, cs.Status, cs.Reason)
			}
			require.NoError(t, analysis.Analyze(c.Plan, r, analysis.Options{}))
			wide := 0
			for _, s := range r.Summaries {
				for _, w := range s.Warnings {
					if w.Kind == "precision" {
						wide++
						assert.Contains(t, w.Text, "more rounds would narrow it")
					}
				}
			}
			if r.Rounds >= 3 {
				assert.Equal(t, len(last.Wide), wide)
				assert.Contains(t, r.Summaries[0].Estimates[0].CI.Method+" looks", "looks")
			}
		})
	}
}

func TestTooLittleForOneRound(t *testing.T) {
	_, err := runner.Run(t.Context(), noisy(t, "\nmax_written = \"1 GB\"", "1%"))
	require.ErrorContains(t, err, "planning the rounds: one writes ")
}

// Canaries write as well: two rounds just fit into max_written without them, and do not with them.
func TestCanariesCountTowardsMaxWritten(t *testing.T) {
	for canary, most := range map[string][]int{"canary = false": {2}, "canary = true": {1}} {
		p, problems := plan.Parse("until narrow", []byte(strings.Replace(untilNarrow,
			"canary = false", canary+"\nmax_written = \"4.01 GB\"", 1)))
		require.Empty(t, problems.Errors(), "%v", problems)
		auto, err := runner.AutoRounds(p)
		require.NoError(t, err)
		assert.Equal(t, most, auto.Looks, canary)
	}
}

// Whatever the moment at which a run is interrupted, resuming it comes to the
// decision that follows from its own journal, and decides nothing twice.
func TestAutoRoundsGoOnAfterAnInterrupt(t *testing.T) {
	for stop := 1; stop < 80; stop += 16 {
		c := noisy(t, "", "4%")
		ctx, cancel := context.WithCancel(t.Context())
		c.Progress = &stopper{left: stop, cancel: cancel}
		out, err := runner.Run(ctx, c)
		cancel()
		require.NoError(t, err)
		if out.Status == runner.StatusInterrupted {
			c.Progress = nil
			c.Clock.(*clock.Virtual).Advance(24 * time.Hour) // the time between sessions is nobody's
			m, err := simulated.Parse("write = 1 GB/s\nread = 1 GB/s\nmount_noise = 4%")
			require.NoError(t, err)
			c.Engine, err = simulated.New(m, c.Clock, 8, 1)
			require.NoError(t, err)
			out, err = resumed(t.Context(), t, c)
			require.NoError(t, err)
		}
		require.Equal(t, runner.StatusDone, out.Status)
		r := fold(t, c.Out)
		for i, l := range r.Auto.Decisions {
			assert.Equal(t, r.Auto.Looks[i], l.Round)
			assert.Less(t, l.ElapsedNS, int64(time.Hour))
		}
		last := r.Auto.Decisions[len(r.Auto.Decisions)-1]
		require.Equal(t, result.StopPrecise, last.Stop)
		require.Equal(t, last.Round, r.Rounds)
		_, wide, err := analysis.Widths(c.Plan, r)
		require.NoError(t, err)
		assert.Empty(t, wide, "the journal alone says that it was enough")
	}
}
