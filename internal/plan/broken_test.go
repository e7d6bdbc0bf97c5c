package plan_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestBroken reads one plan for each kind of mistake and compares everything
// that is said about it.
func TestBroken(t *testing.T) {
	files, err := filepath.Glob("testdata/broken/*.toml")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 30)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".toml"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			p, problems := plan.Parse(filepath.Base(file), text)
			require.NotEmpty(t, problems.Errors(), "a broken plan has errors")
			require.Nil(t, p)
			for _, one := range problems.Items {
				assert.Positive(t, one.Line)
				assert.Positive(t, one.Column)
				assert.NotEmpty(t, one.Message)
			}
			golden := strings.TrimSuffix(file, ".toml") + ".golden"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(problems.Error()+"\n"), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.Equal(t, string(want), problems.Error()+"\n")
		})
	}
}
