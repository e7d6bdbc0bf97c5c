package runner_test

import (
	"context"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/runner"
	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/hostio/hostiotest"
)

// Case-rounds that failed are told when they fail, stay failed for a plain resume, and are measured again when that is asked for.
func TestFailedRoundsAreToldAndRepeated(t *testing.T) {
	c, told := lived(t, life), &heard{}
	faults := &hostiotest.Faults{}
	faults.FailFrom(hostio.OpAllocate, "*.dmg", 1, syscall.ENOSPC)
	c.Hook, c.Progress = faults, told
	out, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusFailed, out.Status)
	n, _ := failed(t, c)
	require.NotEmpty(t, n)
	require.NotEmpty(t, told.failed)
	assert.Equal(t, result.Failed, told.failed[0].Status)
	assert.Contains(t, told.failed[0].Reason, "no space left on device")

	again := c
	again.Plan, again.Hook = nil, nil
	out, err = runner.Resume(t.Context(), c.Out, again)
	require.NoError(t, err)
	assert.True(t, out.Complete)
	assert.Contains(t, out.Message, "dmgbench resume --retry-failed ")
	assert.Equal(t, runner.StatusFailed, out.Status)

	// An interrupted repetition goes on without the flag: nobody has to remember it.
	ctx, cancel := context.WithCancel(t.Context())
	again.RetryFailed, again.Progress = true, &interrupter{cancel: cancel}
	out, err = runner.Resume(ctx, c.Out, again)
	require.NoError(t, err)
	require.Equal(t, runner.StatusInterrupted, out.Status)
	again.RetryFailed, again.Progress = false, nil
	out, err = runner.Resume(t.Context(), c.Out, again)
	require.NoError(t, err)
	assert.Equal(t, runner.StatusDone, out.Status)
	n, reasons := failed(t, c)
	assert.Empty(t, n, reasons)
	out, err = runner.Resume(t.Context(), c.Out, again)
	require.NoError(t, err)
	assert.Equal(t, "the run is complete; no work is left", out.Message)
}

// interrupter interrupts a run at its first write.
type interrupter struct {
	heard
	cancel context.CancelFunc
}

func (i *interrupter) Status(s runner.Status) {
	if s.Do == "write" {
		i.cancel()
	}
}
