package runner_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/runner"
	"dmgbench/internal/result"
	"dmgbench/internal/system/clock"
)

// waitStatuses counts the statuses that are marked as waiting, by what is done next.
type waitStatuses struct {
	heard
	waiting map[string]int
	last    runner.Status
}

func (s *waitStatuses) Status(now runner.Status) {
	if s.last = now; now.Waiting {
		s.waiting[now.Do]++
	}
}

// waits is a run that waits for an hour before each step, and how often it waited.
func waits(c *runner.Config) (seen *waitStatuses, waited *int) {
	seen, waited = &waitStatuses{waiting: map[string]int{}}, new(int)
	c.Progress = seen
	c.Wait = func(context.Context) {
		if seen.last.Waiting {
			*waited++
		}
		c.Clock.(*clock.Virtual).Advance(time.Hour)
	}
	return seen, waited
}

// times are the starts and durations of all steps and samples.
func times(r *result.Result) (all [][2]int64) {
	for _, c := range r.Cases {
		for _, st := range c.Steps {
			all = append(all, [2]int64{st.StartNS, st.DurationNS})
			for _, s := range st.Samples {
				all = append(all, [2]int64{s.StartNS, s.DurationNS})
			}
		}
	}
	return all
}

// The times of a run that waits are those of one that does not, except for the time of day.
func TestNoTimeContainsTheWaiting(t *testing.T) {
	for name, limit := range map[string]string{"fixed rounds": "", "until narrow": "\nmax_time = \"15 s\""} {
		t.Run(name, func(t *testing.T) {
			fresh := func() runner.Config { return noisy(t, limit, "20%") }
			if limit == "" {
				fresh = func() runner.Config { return config(t, withCanary) }
			}
			bare := fresh()
			_, err := runner.Run(t.Context(), bare)
			require.NoError(t, err)
			c := fresh()
			seen, waited := waits(&c)
			out, err := runner.Run(t.Context(), c)
			require.NoError(t, err)
			require.Equal(t, runner.StatusDone, out.Status)
			want, got := fold(t, bare.Out), fold(t, c.Out)
			assert.Equal(t, times(want), times(got))
			assert.Equal(t, want.Auto, got.Auto)
			assert.Less(t, seen.last.ElapsedNS, int64(time.Hour), "the progress has the time of the work")
			steps := 0
			for _, one := range got.Cases {
				for _, st := range one.Steps {
					if st.Do != "canary" {
						steps++
					}
				}
			}
			assert.Equal(t, steps, *waited, "once before each step")
			if limit == "" {
				assert.Equal(t, []int{4, 4, 8}, []int{seen.waiting["settle"], seen.waiting["remount"], seen.waiting["verify"]})
			}
		})
	}
}

// An interrupt while the run waits ends it before the step, and the case is measured again.
func TestInterruptWhileWaiting(t *testing.T) {
	c := lived(t, once)
	ctx, cancel := context.WithCancel(t.Context())
	seen, waited := waits(&c)
	c.Wait = func(context.Context) {
		if *waited++; seen.last.Do == "read" {
			cancel()
		}
	}
	out, err := runner.Run(ctx, c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusInterrupted, out.Status)
	assert.Zero(t, seen.waiting["verify"])
	assert.Equal(t, 1, attempts(t, c))
	c.Wait, c.Progress = nil, nil
	toTheEnd(t, c)
	assert.Equal(t, 3, attempts(t, c))
}
