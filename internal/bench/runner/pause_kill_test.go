package runner_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
)

// mounting is an engine whose attach changes the container that it finds again, as mounting a file system does, and then does something.
type mounting struct {
	engine.Engine
	then func()
}

func (e mounting) Open(ctx context.Context, dir *hostio.Dir, name string, s engine.Spec) (engine.Container, error) {
	con, err := e.Engine.Open(ctx, dir, name, s)
	return mountable{con, filepath.Join(dir.Path(), name), e.then}, err
}

type mountable struct {
	engine.Container
	path string
	then func()
}

func (c mountable) Attach(ctx context.Context, o engine.AttachOptions) (engine.Attachment, error) {
	att, err := c.Container.Attach(ctx, o)
	if err == nil {
		later := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
		err = os.Chtimes(c.path, later, later)
	}
	c.then()
	return att, err
}

// toTheEnd resumes a run that pauses twice, or more often where a case was begun anew.
func toTheEnd(t *testing.T, c runner.Config) {
	t.Helper()
	for range 4 {
		out, err := resumed(t.Context(), t, c)
		require.NoError(t, err)
		if out.Status == runner.StatusPaused {
			continue
		}
		require.Equal(t, runner.StatusDone, out.Status)
		for _, cs := range fold(t, c.Out).Cases {
			assert.Equal(t, result.Done, cs.Status, cs.Reason)
		}
		nothingLeft(t, c)
		return
	}
	require.Fail(t, "the run comes to no end")
}

// Whoever interrupts a resume while it attaches what the pause left loses what was done before the pause, and no case.
func TestInterruptingAResumeThatAttachesFailsNoCase(t *testing.T) {
	c, _ := atPause(t)
	ctx, cancel := context.WithCancel(t.Context())
	again := c
	again.Engine = mounting{c.Engine, cancel}
	out, err := resumed(ctx, t, again)
	require.NoError(t, err)
	require.Equal(t, runner.StatusInterrupted, out.Status)
	toTheEnd(t, c)
}

// Whoever kills it there loses what was done before the pause, and no case: the container was changed by nobody but the run.
func TestKillingAResumeThatAttachesFailsNoCase(t *testing.T) {
	c, _ := atPause(t)
	again := c
	again.Engine = mounting{c.Engine, func() { panic("killed") }}
	assert.PanicsWithValue(t, "killed", func() { _, _ = resumed(t.Context(), t, again) })
	toTheEnd(t, c)
}
