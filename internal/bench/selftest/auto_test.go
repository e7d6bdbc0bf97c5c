package selftest

import (
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/result"
)

// Whole runs on the truth device: the interval at which rounds = "auto" ended holds
// the rate of the law at least as often as it says.
func TestAutoRoundsKeepTheirCoverage(t *testing.T) {
	runs := 12
	if os.Getenv("DMGBENCH_LONG") != "" {
		runs = 3000
	}
	x, err := newExam(t.Context(), Options{})
	require.NoError(t, err)
	defer x.close()
	m := law("write = 5 GB/s; read = 5 GB/s; mount_noise = 5%")
	for _, precision := range []string{"5", "10"} {
		own := autoDesign(precision, "")
		own.Formats, own.Sizes = fourFormats[:2], []int64{2e9}
		var held share
		early, rounds := 0, 0
		for _, r := range x.play(trial{design: own, law: m, runs: runs}) {
			for _, kind := range own.Formats {
				held.add(holds(estimate(r, kind, "aggregate").CI, 5e9))
			}
			if last := r.Auto.Decisions[len(r.Auto.Decisions)-1]; last.Stop == result.StopPrecise {
				early++
			}
			rounds += r.Rounds
		}
		require.NoError(t, x.err)
		t.Logf("± %s %%: coverage %s %%, %d of %d runs precise enough, %.1f rounds", precision, held,
			early, runs, float64(rounds)/float64(runs))
		assert.GreaterOrEqual(t, held.rate()/100, 0.95-3*math.Sqrt(0.95*0.05/float64(held.n)))
		assert.Greater(t, early, runs/2, "the rule has to be what ends runs here")
	}
}
