package runner_test

import (
	"context"
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/runner"
	"dmgbench/internal/system/clock"
)

func TestRetryWhileLocked(t *testing.T) {
	c := clock.NewVirtual(time.Unix(0, 0))
	held := errors.New("held")
	n := 0
	var said []string
	say := func(text string) { said = append(said, text) }
	freedAt := func(at int) func() error {
		n = 0
		return func() error {
			if n++; n < at {
				return held
			}
			return nil
		}
	}
	require.NoError(t, runner.RetryWhileLocked(t.Context(), c, held, say, freedAt(4)))
	assert.Equal(t, 300*time.Millisecond, c.Now())
	assert.Equal(t, []string{"held: waiting up to 2s for it to end"}, said, "once")
	require.ErrorIs(t, runner.RetryWhileLocked(t.Context(), c, held, say, freedAt(1000)), held)
	assert.Equal(t, 21, n)
	require.ErrorIs(t, runner.RetryWhileLocked(t.Context(), nil, held, say, freedAt(2)), held, "without a clock nothing is waited for")
	require.ErrorIs(t, runner.RetryWhileLocked(t.Context(), c, held, nil, func() error { n = 0; return fs.ErrNotExist }), fs.ErrNotExist)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, runner.RetryWhileLocked(ctx, c, held, say, freedAt(1000)), context.Canceled)
}
