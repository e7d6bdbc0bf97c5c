package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPlansNewAsks answers some questions, takes what others offer, and is not asked for what a flag gives.
func TestPlansNewAsks(t *testing.T) {
	s := newScreen(t, 80)
	s.types("Typed\n\nAES-256\n\n\n1 MB\n2\n")
	file := filepath.Join(t.TempDir(), "asked.toml")
	var out bytes.Buffer
	code := Main(t.Context(), s.tty, &out, s.tty, []string{"plans", "new", file, "--rounds", "1"}, stateEnv(t))
	text := s.close()
	require.Zero(t, code, text)
	assert.Equal(t, file+"\n", out.String())
	assert.NotContains(t, text, "Number of rounds")
	assert.Contains(t, text, "Sizes of the files, or gold")
	made, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, line := range []string{`title  = "Typed"`, `format     = ["UDRW", "UDSB"]`, `encryption = ["AES-256"]`, `sizes = ["1 MB"]`, `sets  = 2`, `rounds   = 1`} {
		assert.Contains(t, string(made), "\n"+line+"\n")
	}

	s = newScreen(t, 80)
	s.types("\x04")
	file += "2"
	assert.Equal(t, exitUsage, Main(t.Context(), s.tty, &out, s.tty, []string{"plans", "new", file}, stateEnv(t)))
	assert.True(t, strings.Contains(s.close(), "the answers ended"))
	assert.NoFileExists(t, file)
}
