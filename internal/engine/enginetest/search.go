package enginetest

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stretchr/testify/require"

	"dmgbench/internal/engine"
)

// contains says whether any file of the container has the bytes.
func (r *rig) contains(c engine.Container, what []byte) bool {
	r.t.Helper()
	found := false
	err := filepath.WalkDir(filepath.Join(r.dir.Path(), c.Name()), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || found {
			return err
		}
		data, err := os.ReadFile(path)
		found = bytes.Contains(data, what)
		return err
	})
	require.NoError(r.t, err)
	return found
}
