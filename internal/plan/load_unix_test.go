//go:build unix

package plan_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
)

// TestLoadPipe would hang if a plan were opened as a shell opens it.
func TestLoadPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe.toml")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	_, err := plan.Load(path)
	require.ErrorContains(t, err, "it is not a regular file")
	_, err = plan.Load("/dev/null")
	require.ErrorContains(t, err, "it is not a regular file")
}
