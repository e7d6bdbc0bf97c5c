package runner_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/plan"
	"dmgbench/internal/system/units"
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

// The waiting of every round is counted, for as many rounds as there are at least,
// and the work is the transfer and some time for each step.
func TestEstimateCost(t *testing.T) {
	for rounds, want := range map[string]runner.Cost{
		"rounds = 2":      {Cases: 2, Rounds: 2, Written: 4e6, Read: 4e6, Rate: 1e6, Waiting: 20e9},
		`rounds = "auto"`: {Cases: 2, Rounds: 5, Written: 10e6, Read: 10e6, Rate: 1e6, Waiting: 50e9},
	} {
		p, problems := plan.Parse("waits.toml", []byte(waitingPlan+"canary = false\n"+rounds+"\n"))
		require.Empty(t, problems.Errors(), "%v", problems)
		c := runner.EstimateCost(p, nil, 1_000_000)
		transfer := units.Duration(c.Written+c.Read) * 1000
		assert.Greater(t, c.Work, transfer)
		assert.Less(t, c.Work, transfer+transfer/4)
		assert.Equal(t, c.Work.Std()+c.Waiting.Std(), c.Total())
		c.Work = 0
		assert.Equal(t, want, c)
	}
}

// Every kind of step that takes long is in the estimate, at any rate of the disk:
// small files, random blocks, conversions, manifests, encryption and the canary.
func TestEstimateCostCountsEveryKindOfWork(t *testing.T) {
	const most = units.Rate(1e12) // bytes take no time
	work := func(text string) time.Duration {
		p, problems := plan.Parse("work.toml", []byte(text))
		require.Empty(t, problems.Errors(), "%v", problems)
		return runner.EstimateCost(p, inprocess.New(nil), most).Total()
	}
	with := func(image, steps, run string) time.Duration {
		return work("schema = 1\ntitle = \"Work\"\n[image]\nsize = \"256 MB\"\nformat = \"UDRW\"\n" + image +
			"\n[files.few]\nsizes = [\"20 MB\"]\n[files.many]\ntree = { files = 10000, folders = 10, sizes = [\"1 kB\"] }\n" +
			"[[protocol]]\nsteps = [ { do = \"create\" }, { do = \"attach\" }, { do = \"write\", files = \"few\" }, " +
			steps + " ]\n[run]\nrounds = 1\nbaseline = false\n" + run)
	}
	least := with("", `{ do = "detach" }`, "canary = false")
	for name, x := range map[string]struct {
		image, steps, run string
		more              time.Duration
	}{
		"encryption":    {`encryption = "AES-256"`, `{ do = "detach" }`, "canary = false", 400 * time.Millisecond},
		"a tree":        {"", `{ do = "tree", action = "create", files = "many" }, { do = "detach" }`, "canary = false", time.Second},
		"random blocks": {"", `{ do = "random", file = "f", file_size = "8 MB", block = "4 KiB", reads = "50%", amount = "40 MB" }, { do = "detach" }`, "canary = false", 900 * time.Millisecond},
		"a time":        {"", `{ do = "random", file = "f", file_size = "8 MB", block = "4 KiB", reads = "50%", time = "7 s" }, { do = "detach" }`, "canary = false", 7 * time.Second},
		"a conversion":  {"", `{ do = "detach" }, { do = "convert", as = "c", format = "ULMO" }`, "canary = false", 5 * time.Second},
		"its attaching": {"", `{ do = "detach" }, { do = "convert", as = "c", format = "UDBZ" }, { do = "attach", on = "c" }`, "canary = false", 5 * time.Second},
		"settling":      {"", `{ do = "settle", at_least = "3 s", until_stable = true }, { do = "detach" }`, "canary = false", 6 * time.Second},
		"cycles":        {"", `{ do = "detach" }, { do = "repeat", times = 100, steps = [ { do = "attach" }, { do = "detach" } ] }`, "canary = false", time.Second},
		"the canary":    {"", `{ do = "detach" }`, "canary = true", 5 * time.Millisecond},
	} {
		got := with(x.image, x.steps, x.run) - least
		assert.GreaterOrEqual(t, got, x.more, name)
		assert.LessOrEqual(t, got, 3*x.more, name)
	}
}

// What the engine cannot measure takes no time.
func TestEstimateCostLeavesOutWhatIsSkipped(t *testing.T) {
	text := strings.Replace(waitingPlan, `format = ["UDRW", "UDSB"]`, "format = [\"UDRW\", \"ASIF\"]\nencryption = [\"AES-256\"]", 1)
	p, problems := plan.Parse("waits.toml", []byte(text+"rounds = 2\n"))
	require.Empty(t, problems.Errors(), "%v", problems)
	all, measured := runner.EstimateCost(p, nil, 1e6), runner.EstimateCost(p, inprocess.New(nil), 1e6)
	assert.Equal(t, []int{2, 1}, []int{all.Cases, measured.Cases})
	assert.Equal(t, all.Waiting, 2*measured.Waiting)
	assert.Equal(t, all.Written, 2*measured.Written)
}

// A run that ends by itself is announced with the least and the most that it may do.
func TestDryRunOfAutoRoundsNamesBothEnds(t *testing.T) {
	p, problems := plan.Parse("waits.toml", []byte(waitingPlan+"rounds = \"auto\"\n"))
	require.Empty(t, problems.Errors(), "%v", problems)
	auto, err := runner.AutoRounds(p)
	require.NoError(t, err)
	most := auto.Looks[len(auto.Looks)-1]
	var said strings.Builder
	require.NoError(t, runner.DryRun(&said, p, nil, 1_000_000))
	assert.Contains(t, said.String(), "at least: 2 cases × 5 rounds, 10.0 MB written, 10.0 MB read")
	assert.Contains(t, said.String(), fmt.Sprintf("at most: %d rounds, %d.0 MB written", most, 2*most))
}
