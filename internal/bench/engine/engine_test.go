package engine

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A shell gets back the path that was quoted, and no path is an option.
func TestShellQuote(t *testing.T) {
	for path, want := range map[string]string{
		"runs/quick-20260101T120000Z": "runs/quick-20260101T120000Z", "": "''", "my run": "'my run'", "~": "'~'", "a\nb": "'a\nb'",
		"it's $HOME": `'it'\''s $HOME'`, "-rf": "./-rf", "- x": "'./- x'", "größe": "'größe'", "*": "'*'",
	} {
		got := ShellQuote(path)
		assert.Equal(t, want, got)
		out, err := exec.Command("sh", "-c", "printf %s "+got).Output()
		require.NoError(t, err)
		if path == "" || path[0] != '-' {
			assert.Equal(t, path, string(out))
		}
	}
}
