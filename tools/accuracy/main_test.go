package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/selftest"
)

func TestAPartTakesNoPlaceOfThePage(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("docs", 0o755))
	require.NoError(t, os.WriteFile(filepath.Join("docs", "accuracy.md"), []byte("whole"), 0o644))
	for _, c := range []struct {
		folder, study string
		full          bool
		says          string
	}{
		{"", "drift", true, "name another folder with -o"},
		{"", "", false, "name another folder with -o"},
		{"docs", "drifting", true, `there is no study "drifting", only recovery, files,`},
	} {
		err := run(context.Background(), c.folder, c.study, selftest.Options{Full: c.full})
		assert.ErrorContains(t, err, c.says)
	}
	text, err := os.ReadFile(filepath.Join("docs", "accuracy.md"))
	require.NoError(t, err)
	assert.Equal(t, "whole", string(text))
}
