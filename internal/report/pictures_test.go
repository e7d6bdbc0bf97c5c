package report_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"dmgbench/internal/report"
)

// TestPictures saves the pages of two pictures of docs, which no run of a user makes, for scripts/pictures.sh.
func TestPictures(t *testing.T) {
	dir := os.Getenv("DMGBENCH_PICTURES")
	if dir == "" {
		t.Skip("only scripts/pictures.sh needs the pages")
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "history.html"), []byte(report.Made(t)["history over versions"]), 0o600))
	w := newWorld(t)
	page := w.hostile()[0].path
	w.fine(t)
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "hostile.html"), text, 0o600))
}
