package clock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"dmgbench/internal/system/clock"
)

func TestVirtualSleepMovesTheClock(t *testing.T) {
	epoch := time.Date(2026, 3, 23, 15, 30, 0, 0, time.UTC)
	c := clock.NewVirtual(epoch)
	require.NoError(t, c.Sleep(t.Context(), 10*time.Minute))
	c.Advance(-time.Hour)
	require.Equal(t, 10*time.Minute, c.Now())
	require.Equal(t, epoch.Add(10*time.Minute), c.Wall())
}

func TestSleepEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]clock.Clock{"real": clock.NewReal(), "virtual": clock.NewVirtual(time.Time{})} {
		require.ErrorIs(t, c.Sleep(ctx, time.Hour), context.Canceled, name)
	}
}

func TestRealClockIsMonotonic(t *testing.T) {
	c := clock.NewReal()
	last := c.Now()
	for range 1000 {
		now := c.Now()
		require.GreaterOrEqual(t, now, last)
		last = now
	}
	require.NoError(t, c.Sleep(t.Context(), time.Microsecond))
	require.Greater(t, c.Now(), last)
}
