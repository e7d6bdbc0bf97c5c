package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/selftest"
)

func TestWriteAccuracy(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, writeAccuracy(t.Context(), folder, selftest.Options{Seed: 1, Only: []string{"drift"}}))
	text, err := os.ReadFile(filepath.Join(folder, "accuracy.md"))
	require.NoError(t, err)
	assert.Contains(t, string(text), "drift")
	assert.FileExists(t, filepath.Join(folder, "accuracy-power.svg"))

	assert.ErrorContains(t, writeAccuracy(t.Context(), folder, selftest.Options{Only: []string{"drifting"}}),
		`there is no study "drifting", only recovery, files,`)
	assert.Error(t, writeAccuracy(t.Context(), filepath.Join(folder, "none"), selftest.Options{Only: []string{"drift"}}))
}
