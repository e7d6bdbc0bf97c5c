package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPruneAsks deletes at a terminal what was listed, and only after a yes.
func TestPruneAsks(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	runs := filepath.Join(dir, "runs")
	env := stateEnv(t)
	require.Zero(t, Main(t.Context(), bytes.NewReader(nil), io.Discard, io.Discard, []string{"run", planFile(t, watched), "--out", filepath.Join(runs, "old")}, env))
	for _, test := range []struct {
		typed string
		code  int
		stays bool
	}{{"n\n", exitUsage, true}, {"\n", exitUsage, true}, {"y\n", 0, false}} {
		s := newScreen(t, 200)
		s.when("Delete 1 run folder? [y/N] ", func() { s.types(test.typed) })
		var out bytes.Buffer
		code := Main(t.Context(), s.tty, &out, s.tty, []string{"history", "prune", "--keep", "0", runs}, env)
		text := s.close()
		assert.Equal(t, test.code, code, text)
		assert.Contains(t, text, filepath.Join(runs, "old"))
		_, err := os.Stat(filepath.Join(runs, "old", "plan.toml"))
		assert.Equal(t, test.stays, err == nil)
		if !test.stays {
			assert.Equal(t, filepath.Join(runs, "old")+"\n", out.String())
		}
	}
}
