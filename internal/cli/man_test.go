package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestManPages: each command has a page with its flags, no line of text is taken for
// a request, and groff, where there is one, has nothing to complain about.
func TestManPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "man")
	code, out, errs := call(t, nil, "man", dir)
	require.Zero(t, code, errs)
	assert.Empty(t, out)
	request := regexp.MustCompile(`^\.(\\" |TH |SH |TP$|B |BR |nf$|fi$)`)
	pages := map[string]string{}
	for _, name := range names(t, dir) {
		page, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		pages[name] = string(page)
	}
	for _, row := range commandRows {
		name := "dmgbench-" + strings.ReplaceAll(row.path, " ", "-")
		if row.path == "man" {
			assert.NotContains(t, pages, name+".1")
			continue
		}
		assert.Contains(t, pages, name+".1")
		if row.group != "" {
			assert.Contains(t, pages["dmgbench.1"], ".BR "+strings.ReplaceAll(name, "-", "\\-")+" (1)\n")
		}
	}
	assert.Contains(t, pages["dmgbench-run.1"], "\n      \\-\\-rounds N ")
	assert.Contains(t, pages["dmgbench-history-prune.1"], ".SH \"EXIT STATUS\"\n  0  ")
	assert.Contains(t, pages["dmgbench-history-prune.1"], ".BR dmgbench\\-history (1)\n")
	for name, page := range pages {
		for line := range strings.Lines(page) {
			if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
				assert.Regexp(t, request, strings.TrimRight(line, "\n"), name)
			}
		}
		assert.Contains(t, page, "\n.SH \"EXIT STATUS\"\n", name)
		groff, err := exec.LookPath("groff")
		if err != nil {
			continue
		}
		cmd := exec.Command(groff, "-man", "-ww", "-Tutf8", "-K", "utf8")
		cmd.Stdin = strings.NewReader(page)
		var complaints strings.Builder
		cmd.Stderr = &complaints
		require.NoError(t, cmd.Run(), name)
		assert.Empty(t, complaints.String(), name)
	}
}

// names lists a folder.
func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, f := range list {
		out = append(out, f.Name())
	}
	return out
}
