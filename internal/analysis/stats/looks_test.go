package stats_test

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/analysis/stats"
)

func TestLooks(t *testing.T) {
	assert.Equal(t, []int{1}, stats.Looks(0))
	assert.Equal(t, []int{3}, stats.Looks(3))
	assert.Equal(t, []int{5}, stats.Looks(5))
	assert.Equal(t, []int{5, 6}, stats.Looks(6))
	assert.Equal(t, []int{5, 9, 17, 30}, stats.Looks(30))
	for last := 6; last <= 10000; last++ {
		looks := stats.Looks(last)
		ok := looks[0] == 5 && looks[len(looks)-1] == last
		for i := range looks[1:] {
			ok = ok && looks[i] < looks[i+1] && looks[i+1] <= 2*looks[i]+1
		}
		if !ok { // an assertion for each of so many would take most of the time
			require.Fail(t, "the looks do not ascend to the last by factors of at most 2", "%d: %v", last, looks)
		}
	}
	assert.InDelta(t, 0.9875, stats.LookLevel(0.95, 4), 1e-12)
	assert.Equal(t, 0.95, stats.LookLevel(0.95, 0))
}

// stopped is how often the interval holds the mean at which a sample of standard
// deviation 1 was stopped because it is narrower than ± half, or at the last look.
func stopped(t *testing.T, runs int, half float64, looks []int, level float64) float64 {
	critical := map[int]float64{}
	for _, n := range looks {
		critical[n] = stats.StudentQuantile((1+level)/2, float64(n-1))
	}
	return coverage(t, runs, 0, func(rng *rand.Rand) (stats.Interval, error) {
		var sum, squares float64
		for n := 1; ; n++ {
			x := rng.NormFloat64()
			sum, squares = sum+x, squares+x*x
			if critical[n] == 0 {
				continue
			}
			m := sum / float64(n)
			wide := critical[n] * math.Sqrt((squares-sum*m)/float64(n-1)/float64(n))
			if wide <= half || n == slices.Max(looks) {
				return stats.Interval{Low: m - wide, High: m + wide}, nil
			}
		}
	})
}

// The level is kept however wide an interval is asked for, where looking after every
// round at the nominal level does not keep it.
func TestLooksKeepTheLevelUnderTheStoppingRule(t *testing.T) {
	runs := 4000
	if os.Getenv("DMGBENCH_LONG") != "" {
		runs = 200_000
	}
	noise := 3 * math.Sqrt(0.95*0.05/float64(runs))
	var every []int
	for n := 3; n <= 30; n++ {
		every = append(every, n)
	}
	naive := 1.0
	for _, half := range []float64{0.3, 0.4, 0.5, 0.7, 1, 1.5, 3} {
		for _, last := range []int{6, 10, 30, 100} {
			looks := stats.Looks(last)
			got := stopped(t, runs, half, looks, stats.LookLevel(0.95, len(looks)))
			assert.GreaterOrEqual(t, got, 0.95-noise, "± %g, at most %d", half, last)
		}
		naive = min(naive, stopped(t, runs, half, every, 0.95))
	}
	assert.Less(t, naive, 0.92, "what the looks are good against")
}
