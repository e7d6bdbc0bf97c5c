package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/result"
)

func TestAnInterruptBeforeTheRunSaysWhatItMeans(t *testing.T) {
	err := unlessInterrupted(fmt.Errorf("probing: %w", context.Canceled), "interrupted before the run began")
	require.EqualError(t, err, "interrupted before the run began")
	assert.Equal(t, exitInterrupted, exitStatus(err))
	require.NoError(t, unlessInterrupted(nil, "x"))
	assert.Equal(t, exitCases, exitStatus(unlessInterrupted(status(exitCases), "x")))
	other := errors.New("broken")
	assert.Equal(t, other, unlessInterrupted(other, "x"))
}

func TestRunFoldersAreNamedAsTheUserDid(t *testing.T) {
	abs, err := filepath.Abs("my runs/a")
	require.NoError(t, err)
	given := asGiven(&result.Error{Doing: "running", File: abs, Err: errors.New("x"), Hint: "go on with: dmgbench resume --keep " + abs}, "my runs/a")
	assert.Equal(t, "go on with: dmgbench resume --keep 'my runs/a'", hint(given))
	assert.Contains(t, given.Error(), `"my runs/a"`)
	assert.Equal(t, "dmgbench resume a", resumeAsGiven("dmgbench resume <run>", "a"))
}
