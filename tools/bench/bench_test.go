package bench_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
)

func TestBenchPlansAreValid(t *testing.T) {
	names, err := filepath.Glob("*.toml")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		_, problems := plan.Parse(name, text)
		assert.Empty(t, problems, name)
	}
}
