package analysis

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/result"
)

// drawn is a run of four cases whose session is a factor of its own, in common
// and for each case by itself, with noise between rounds.
func drawn(rng *rand.Rand, run string, shared, own, noise, effect float64) *result.Result {
	r := &result.Result{Run: run, Rounds: 3, Sessions: []result.Session{{Index: 1, Host: result.Host{OSVersion: run[:1]}}}}
	session := shared * rng.NormFloat64()
	for i := range 4 {
		c := result.Case{ID: fmt.Sprint(i), Status: result.Done, Target: result.Target{Kind: "image"}}
		mine := own * rng.NormFloat64()
		for round := range 3 {
			ns := int64(1e9 * math.Exp(session+mine+noise*rng.NormFloat64()) / effect)
			c.Rounds = append(c.Rounds, result.CaseRound{Round: round + 1, Status: result.Done})
			c.Steps = append(c.Steps, result.Step{Do: "write", Round: round + 1, Session: 1, DurationNS: ns, Samples: []result.Sample{{Bytes: 1e9, DurationNS: ns}}})
		}
		r.Cases = append(r.Cases, c)
	}
	return r
}

// Whatever sessions differ by, a comparison of two samples of one machine finds a
// change in at most 5 of 100, and its intervals hold the truth in 95 of 100.
func TestCompareFalseAlarms(t *testing.T) {
	times, spreads := 50, []float64{0, 0.1}
	if os.Getenv("DMGBENCH_LONG") != "" {
		times, spreads = 4000, []float64{0, 0.01, 0.03, 0.1}
	}
	for _, sides := range [][2]int{{3, 3}, {5, 5}, {2, 2}, {5, 1}, {3, 6}} {
		for _, spread := range spreads {
			rng := rand.New(rand.NewPCG(uint64(times), uint64(1000*spread)))
			alarms, exits, covered, rows, power := 0, 0, 0, 0, 0
			for range times {
				var null, slower []*result.Result
				for i := range sides[0] {
					null = append(null, drawn(rng, fmt.Sprintf("a%d", i), spread, spread/3, 0.02, 1))
				}
				slower = append(slower, null...)
				for i := range sides[1] {
					null = append(null, drawn(rng, fmt.Sprintf("b%d", i), spread, spread/3, 0.02, 1))
					slower = append(slower, drawn(rng, fmt.Sprintf("b%d", i), spread, spread/3, 0.02, 0.8))
				}
				c, err := Compare(null, CompareOptions{By: []string{"os_version"}})
				require.NoError(t, err)
				alarm := false
				for _, r := range c.Rows {
					alarm = alarm || r.Status == RowChanged
					rows++
					if r.CI.Low <= 1 && 1 <= r.CI.High {
						covered++
					}
				}
				if alarm {
					alarms++
				}
				if c.Regression {
					exits++
				}
				if c, err = Compare(slower, CompareOptions{By: []string{"os_version"}}); err == nil && c.Regression {
					power++
				}
			}
			n := float64(times)
			t.Logf("%d against %d sessions that differ by %2.0f %%: false changes %.1f %%, exit 5 %.2f %%, coverage %.1f %%; 20 %% slower found in %.0f %%",
				sides[0], sides[1], 100*spread, 100*float64(alarms)/n, 100*float64(exits)/n, 100*float64(covered)/float64(rows), 100*float64(power)/n)
			bound := 0.05 + 3*math.Sqrt(0.05*0.95/n)
			assert.LessOrEqual(t, float64(alarms)/n, bound)
			assert.LessOrEqual(t, float64(exits)/n, bound)
			// Rows of one comparison share their sessions, and count as one draw each for the error of the study.
			assert.GreaterOrEqual(t, float64(covered)/float64(rows), 0.95-3*math.Sqrt(0.05*0.95/n))
		}
	}
}
