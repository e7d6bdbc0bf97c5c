package runner_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/directory"
	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/bench/engine/simulated"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/system/clock"
)

const randomPlan = `
schema = 1
title = "Random I/O"
[image]
format = "UDSB"
size = "32 MB"
[io]
block = "4 KiB"
sync = "full"
[files.few]
sizes = ["100 kB", "200 kB"]
[run]
rounds = 1
canary = false
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "write", phase = "new" },
  { do = "random", phase = "mixed", file = "disks/one", file_size = "1 MiB", reads = "50%", amount = "400 KiB", workers = 2, flush = 10 },
  { do = "random", phase = "read", file = "disks/one", reads = "100%", amount = "40 KiB" },
  { do = "random", phase = "timed", file = "disks/one", reads = "0%", time = "20 ms", block = "64 KiB" },
  { do = "verify" },
  CONVERT
  { do = "delete", all = true },
  { do = "detach" },
]
`

const randomConvert = `
  { do = "detach" },
  { do = "convert", as = "packed", format = "UDZO" },
  { do = "attach", on = "packed" },
  { do = "random", on = "packed", phase = "packed", file = "disks/one", reads = "100%", amount = "40 KiB" },
  { do = "detach", on = "packed" },
  { do = "attach" },
`

// The file is made once, before the time of the step, counts as live, and goes with the others; the files of write
// steps are as they were.
func TestRandomStepsAccessAFileThatTheyMake(t *testing.T) {
	for name, tt := range map[string]struct {
		engine engine.Engine
		plan   string
	}{
		"in process": {inprocess.New(nil), strings.Replace(randomPlan, "CONVERT", randomConvert, 1)},
		"folder": {directory.Engine{}, strings.NewReplacer("CONVERT", "", `[image]
format = "UDSB"
size = "32 MB"`, "[target]\nkind = \"directory\"").Replace(randomPlan)},
	} {
		t.Run(name, func(t *testing.T) {
			c := config(t, tt.plan)
			c.Engine, c.Clock = tt.engine, clock.NewReal()
			out, err := runner.Run(t.Context(), c)
			require.NoError(t, err)
			cs := fold(t, c.Out).Cases[0]
			require.Equal(t, runner.StatusDone, out.Status, "%+v", cs.Rounds)
			var written int64
			for _, st := range cs.Steps {
				count := map[string]int64{}
				for _, o := range st.Operations {
					count[o.Kind] += o.Count
					if o.Kind == "write" {
						written += o.Bytes
					}
				}
				switch {
				case st.Do == "delete":
					assert.Zero(t, st.Live)
				case st.Phase == "mixed":
					assert.EqualValues(t, 100, count["read"]+count["write"])
					assert.LessOrEqual(t, count["flush"], count["write"]/10)
					assert.EqualValues(t, 300_000+1<<20, st.Live)
					assert.EqualValues(t, 1<<20, st.OperationsSpan.Prepared)
					assert.Equal(t, 2, st.Workers)
				case st.Phase == "timed":
					assert.Positive(t, count["write"])
					assert.GreaterOrEqual(t, st.DurationNS, st.OperationsSpan.DurationNS)
				case st.Do == "random":
					assert.Equal(t, map[string]int64{"read": 10}, count, st.Phase)
					assert.Zero(t, st.OperationsSpan.Prepared)
				}
				if st.Do == "random" {
					assert.NotNil(t, st.Cache)
					assert.Empty(t, st.Samples)
				}
			}
			assert.Positive(t, written)
		})
	}
}

// On the simulated device an operation takes the time of its law, without noise.
func TestRandomStepsOnTheSimulatedDevice(t *testing.T) {
	m, err := simulated.Parse("write = 400 MB/s\nread = 800 MB/s\nlatency = 100 us\nflush = 1 ms")
	require.NoError(t, err)
	c := config(t, strings.NewReplacer("CONVERT", "", `  { do = "verify" },`, "", `"20 ms"`, `"1 s"`).Replace(randomPlan))
	c.Engine, err = simulated.New(m, c.Clock, 1, 1)
	require.NoError(t, err)
	_, err = runner.Run(t.Context(), c)
	require.NoError(t, err)
	var phases []string
	for _, st := range fold(t, c.Out).Cases[0].Steps {
		if st.Do != "random" {
			continue
		}
		phases = append(phases, st.Phase)
		for _, o := range st.Operations {
			h := &o.Latency
			switch st.Phase + " " + o.Kind {
			case "read read":
				assert.InDelta(t, 105_120, h.Quantile(0.5), 500)
			case "timed write":
				assert.InDelta(t, 263_840, h.Quantile(0.99), 1200)
				assert.EqualValues(t, 3791, o.Count)
				assert.InDelta(t, time.Second, st.OperationsSpan.DurationNS, 300_000)
			case "mixed read":
				assert.Greater(t, h.Quantile(0.5), int64(200_000), "the operations of two workers wait for each other")
			}
		}
	}
	assert.Equal(t, []string{"mixed", "read", "timed"}, phases)
}
