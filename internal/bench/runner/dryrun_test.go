package runner_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/runner"
	"dmgbench/internal/plan"
)

const waitingPlan = `schema = 1
title = "Waits twice"
[image]
size = "8 MB"
[matrix]
format = ["UDRW", "UDSB"]
[files.few]
sizes = ["1 MB"]
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "settle", at_least = "2 s" },
  { do = "write" },
  { do = "remount", times = 3, settle = "1 s" },
  { do = "read" },
]
[run]
baseline = false
`

// The waiting of every round is counted, for as many rounds as there are at least.
func TestEstimateCost(t *testing.T) {
	for rounds, want := range map[string]runner.Cost{
		"rounds = 2":      {Cases: 2, Rounds: 2, Written: 4e6, Read: 4e6, Rate: 1e6, Transfer: 8e9, Waiting: 20e9},
		`rounds = "auto"`: {Cases: 2, Rounds: 5, Written: 10e6, Read: 10e6, Rate: 1e6, Transfer: 20e9, Waiting: 50e9},
	} {
		p, problems := plan.Parse("waits.toml", []byte(waitingPlan+rounds+"\n"))
		require.Empty(t, problems.Errors(), "%v", problems)
		c := runner.EstimateCost(p, 1_000_000)
		assert.Equal(t, want, c)
		assert.Equal(t, c.Transfer.Std()+c.Waiting.Std(), c.Total())
		assert.Equal(t, map[int]time.Duration{2: 28 * time.Second, 5: 70 * time.Second}[c.Rounds], c.Total())
	}
}
