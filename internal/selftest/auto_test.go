package selftest

import (
	"context"
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

const autoPlan = `
schema = 1
title = "As many rounds as it takes"
[image]
size = "100 GB"
filesystem_preference = ["exFAT"]
[run]
rounds = "auto"
precision = "%s"
canary = false
baseline = false
[matrix]
format = ["UDRW", "UDSB"]
[files.one]
sizes = ["2000 MB"]
sets = 1
[[protocol]]
steps = [{ do = "create" }, { do = "attach" }, { do = "write", phase = "new" }]
`

// Whole runs on the truth device: the interval at which rounds = "auto" ended holds
// the rate of the law at least as often as it says.
func TestAutoRoundsKeepTheirCoverage(t *testing.T) {
	runs := 40
	if os.Getenv("DMGBENCH_LONG") != "" {
		runs = 3000
	}
	s, err := newStage()
	require.NoError(t, err)
	defer s.close()
	m := law("write = 5 GB/s; read = 5 GB/s; mount_noise = 5%")
	for _, precision := range []string{"5%", "10%"} {
		p, problems := plan.Parse("auto", fmt.Appendf(nil, autoPlan, precision))
		require.Nil(t, problems)
		var held, early, rounds atomic.Int64
		require.NoError(t, each(t.Context(), runs, func(ctx context.Context, i int) error {
			r, err := s.play(ctx, p, m, uint64(i), 1)
			if err != nil {
				return err
			}
			for _, kind := range []string{"UDRW", "UDSB"} {
				e, _ := estimateOf(r, kind, "write", "aggregate")
				if e.CI != nil && e.CI.Low <= 5e9 && 5e9 <= e.CI.High {
					held.Add(1)
				}
			}
			if last := r.Auto.Decisions[len(r.Auto.Decisions)-1]; last.Stop == result.StopPrecise {
				early.Add(1)
			}
			rounds.Add(int64(r.Rounds))
			return nil
		}))
		got, n := float64(held.Load())/float64(2*runs), float64(2*runs)
		t.Logf("± %s: coverage %.1f %%, %d of %d runs precise enough, %.1f rounds", precision, 100*got,
			early.Load(), runs, float64(rounds.Load())/float64(runs))
		assert.GreaterOrEqual(t, got, 0.95-3*math.Sqrt(0.95*0.05/n))
		assert.Greater(t, int(early.Load()), runs/2, "the rule has to be what ends runs here")
	}
}
