package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
)

// --engine auto takes the first engine that works and says why the others were not; a named engine has to work itself.
func TestAutoTakesTheFirstEngineThatWorks(t *testing.T) {
	all := engineChoices
	t.Cleanup(func() { engineChoices = all })
	broken := engineChoice{"broken", func(*app, context.Context, engineConfig) (engine.Engine, error) {
		return nil, errors.New("no tool")
	}}
	a := newApp(strings.NewReader(""), io.Discard, io.Discard, nil)
	choose := func(ctx context.Context, name string) (engine.Engine, string, error) {
		return a.chooseEngine(ctx, name, engineConfig{state: t.TempDir()})
	}

	engineChoices = append([]engineChoice{broken}, all[len(all)-1], broken)
	e, why, err := choose(t.Context(), "auto")
	require.NoError(t, err)
	assert.Equal(t, "inprocess", e.Info().Name)
	assert.Equal(t, "auto: it made, attached, wrote to and detached a small image; broken did not work: no tool", why)
	e, why, err = choose(t.Context(), "inprocess")
	require.NoError(t, err)
	assert.Equal(t, "inprocess", e.Info().Name)
	assert.Equal(t, "requested with --engine inprocess", why)
	_, _, err = choose(t.Context(), "broken")
	require.ErrorContains(t, err, "no tool")
	assert.Contains(t, hint(err), "--engine inprocess")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = choose(canceled, "auto")
	assert.Equal(t, context.Canceled, err, "no other engine is tried")

	engineChoices = []engineChoice{broken, broken}
	_, _, err = choose(t.Context(), "auto")
	require.EqualError(t, err, "choosing an engine: none works here: no tool\nno tool")
}

// The program probes an engine that it chooses itself and means to use: no other one.
func TestOnlyAChosenEngineIsProbed(t *testing.T) {
	all := engineChoices
	t.Cleanup(func() { engineChoices = all })
	engineChoices = all[len(all)-1:]
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	unwritable := engineConfig{state: filepath.Join(file, "state")}
	a := newApp(strings.NewReader(""), io.Discard, io.Discard, nil)
	_, _, err := a.chooseEngine(t.Context(), "auto", unwritable)
	require.ErrorIs(t, err, syscall.ENOTDIR)
	_, _, err = a.chooseEngine(t.Context(), "inprocess", unwritable)
	require.NoError(t, err)
	_, _, err = a.chooseEngine(t.Context(), "auto", engineConfig{})
	require.NoError(t, err)
}
