package runner_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/runner"
	"dmgbench/internal/result"
)

const turning = `
schema = 1
title = "Turned by hand"
[target]
kind = "directory"
[io]
cache = "buffered"
[files.few]
sizes = ["10 kB"]
sets = 1
[run]
rounds = 2
canary = false
[[manual]]
name = "mode"
values = ["slow", "fast"]
instructions = "Turn the mode to '{value}'."
[[manual]]
name = "lid"
values = ["open", "shut"]
instructions = "Make the lid {value}."
[[protocol]]
steps = [ { do = "create" }, { do = "attach" }, { do = "write", phase = "new" } ]
`

// Two axes that nobody can check: the run pauses for each one that has to be
// turned, and gets to its end.
func TestManualAxesPauseUntilEachIsTurned(t *testing.T) {
	c := config(t, turning)
	out, err := runner.Run(t.Context(), c)
	c.Plan = nil
	var asked []string
	for len(asked) < 20 && err == nil && out.Status == runner.StatusPaused {
		asked = append(asked, strings.SplitN(out.Message, ",", 2)[0])
		c.Host.OSVersion += "." // another system at every turn, as a virtual machine may have
		out, err = runner.Resume(t.Context(), c.Out, c)
	}
	require.NoError(t, err)
	require.Equal(t, runner.StatusDone, out.Status)
	assert.Equal(t, []string{
		"Turn the mode to 'slow'", "Make the lid open", "Make the lid shut",
		"Turn the mode to 'fast'", "Make the lid open", "Make the lid shut",
	}, asked)
	r := fold(t, c.Out)
	require.Len(t, r.Cases, 4)
	for _, w := range r.Warnings {
		assert.NotEqual(t, "changed", w.Kind, w.Text)
	}
	for _, cs := range r.Cases {
		assert.Equal(t, result.Done, cs.Status, cs.Reason)
	}
}

// An interrupt in between leaves open how the axes stand: they are asked for anew.
func TestManualAxesAreAskedForAnewAfterAnInterrupt(t *testing.T) {
	c := config(t, turning)
	out, err := runner.Run(t.Context(), c)
	c.Plan = nil
	for range 2 {
		require.NoError(t, err)
		require.Equal(t, runner.StatusPaused, out.Status)
		ctx, cancel := context.WithCancel(t.Context())
		c.Progress = &stopper{left: 2, cancel: cancel}
		out, err = runner.Resume(ctx, c.Out, c)
		cancel()
	}
	require.NoError(t, err)
	require.Equal(t, runner.StatusInterrupted, out.Status)
	c.Progress = nil
	out, err = runner.Resume(t.Context(), c.Out, c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusPaused, out.Status)
	require.Contains(t, out.Message, "mode to 'slow'")
}
