package runner

import (
	"os"
	"path/filepath"
	"testing"

	"dmgbench/internal/result"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPlacesAreTriedBeforeTheRunBegins(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, checkWritable(Config{Places: []Place{{Name: "fast", Path: dir}}}))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left, "nothing stays there")

	require.NoError(t, checkWritable(Config{Places: []Place{{Path: filepath.Join(dir, "none")}}}), "a missing place is told of later")
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	err = checkWritable(Config{Places: []Place{{Name: "fast", Path: file}}})
	require.ErrorContains(t, err, `writing to place "fast": `)
	assert.NotContains(t, err.Error(), ".dmgbench-", "no name of a folder that was made up")
}

func TestActiveRunsAreTheRunsThatAProcessMeasures(t *testing.T) {
	state, folder := t.TempDir(), filepath.Join(t.TempDir(), "run")
	assert.Empty(t, ActiveRuns(state))
	d, err := result.CreateRun(folder, "20260101t000000-000000")
	require.NoError(t, err)
	require.NoError(t, writeEntry(state, entry{Run: "20260101t000000-000000", Folder: folder}))
	assert.Equal(t, []string{folder}, ActiveRuns(state))
	require.NoError(t, d.Close())
	assert.Empty(t, ActiveRuns(state), "a run that was killed holds nothing")
}
