package cli

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/runner"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/host"
)

// letGo is a clock on whose third sleep somebody lets go of a lock.
type letGo struct {
	*clock.Virtual
	sleeps int
	let    func()
}

func (c *letGo) Sleep(ctx context.Context, d time.Duration) error {
	if c.sleeps++; c.sleeps == 3 {
		c.let()
	}
	return c.Virtual.Sleep(ctx, d)
}

func TestTheLockOfMeasuringIsWaitedFor(t *testing.T) {
	state := t.TempDir()
	held, err := host.Lock(state)
	require.NoError(t, err)
	defer held()
	var said []string
	say := func(text string) { said = append(said, text) }
	c := runner.Config{StateDir: state, Clock: clock.NewVirtual(time.Unix(0, 0))}
	_, err = lockHost(t.Context(), c, say)
	require.ErrorIs(t, err, host.ErrBusy, "the wait has an end")
	c.Clock = &letGo{Virtual: clock.NewVirtual(time.Unix(0, 0)), let: held}
	release, err := lockHost(t.Context(), c, say)
	require.NoError(t, err)
	release()
	require.Len(t, said, 2)
	assert.Contains(t, said[1], "another measuring run: waiting up to 2s for it to end")
}
