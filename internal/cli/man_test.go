package cli

import (
	"io"
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
	a := newApp(strings.NewReader(""), io.Discard, io.Discard, nil)
	root := a.newRootCommand()
	request := regexp.MustCompile(`^\.(\\" |TH |SH |TP$|B |BR |PP$|nf$|fi$)`)
	pages := map[string]string{}
	require.NoError(t, eachManPage(root, func(name, page string) error { pages[name] = page; return nil }))
	for _, c := range root.Commands() {
		if !c.Hidden && c.Name() != "completion" && c.Name() != "help" {
			assert.Contains(t, pages, "dmgbench-"+c.Name()+".1")
			assert.Contains(t, pages["dmgbench.1"], ".BR dmgbench\\-"+c.Name()+" (1)")
		}
	}
	assert.Contains(t, pages["dmgbench-run.1"], ".B \\-\\-rounds")
	assert.Contains(t, pages["dmgbench-history-prune.1"], ".SH \"EXIT STATUS\"\n.TP\n.B 0\n")
	assert.NotContains(t, pages, "dmgbench-man.1")
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

func TestManWritesThePages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "man")
	code, out, errs := call(t, nil, "man", dir)
	require.Zero(t, code, errs)
	assert.Empty(t, out)
	assert.FileExists(t, filepath.Join(dir, "dmgbench-plans-copy.1"))
}
