package runner_test

import (
	"fmt"
	"strings"
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

// A run that ends by itself is announced with the least and the most that it may do.
func TestDryRunOfAutoRoundsNamesBothEnds(t *testing.T) {
	p, problems := plan.Parse("waits.toml", []byte(waitingPlan+"rounds = \"auto\"\n"))
	require.Empty(t, problems.Errors(), "%v", problems)
	auto, err := runner.AutoRounds(p)
	require.NoError(t, err)
	most := auto.Looks[len(auto.Looks)-1]
	var said strings.Builder
	require.NoError(t, runner.DryRun(&said, p, 1_000_000))
	assert.Contains(t, said.String(), "at least: 2 cases × 5 rounds, 10.0 MB written, 10.0 MB read")
	assert.Contains(t, said.String(), fmt.Sprintf("at most: %d rounds, %d.0 MB written", most, 2*most))
}
