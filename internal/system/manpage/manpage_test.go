package manpage

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWrite: no line of a help is taken for a request, hidden commands have no page, and groff, where there is one,
// has no complaint.
func TestWrite(t *testing.T) {
	run := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "a-b", Short: "do", Long: ".so /etc/passwd\n'br\n\\fBback\\e…\n\nEXIT STATUS\n  0  done", Run: run}
	root.PersistentFlags().String("deep", "", "for `all`")
	child := &cobra.Command{Use: "c-d FILE", Short: ".TH", Long: "x", Example: "  a-b c-d -x", Run: run}
	child.Flags().Bool("own", false, "alone")
	root.AddCommand(child, &cobra.Command{Use: "secret", Hidden: true, Run: run})
	root.InitDefaultCompletionCmd("completion")
	root.InitDefaultHelpCmd()
	dir := t.TempDir()
	require.NoError(t, Write(dir, root))
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, "a-b-c-d.1"), filepath.Join(dir, "a-b.1")}, files)
	pages := make([]string, len(files))
	for i, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		pages[i] = string(text)
		groff, err := exec.LookPath("groff")
		if err != nil {
			continue
		}
		out, err := exec.Command(groff, "-man", "-ww", "-Tutf8", "-K", "utf8", "-z", file).CombinedOutput()
		require.NoError(t, err)
		assert.Empty(t, string(out))
	}
	assert.Contains(t, pages[1], "\n\\&.so /etc/passwd\n\\&'br\n\\efBback\\ee...\n\n.SH \"EXIT STATUS\"\n  0  done\n")
	assert.Contains(t, pages[1], ".BR a\\-b\\-c\\-d (1)\n\\&.TH\n")
	assert.NotContains(t, strings.Join(pages, ""), "secret")
	assert.NotContains(t, strings.Join(pages, ""), "completion")
	assert.Contains(t, pages[0], ".SH OPTIONS\n.nf\n      \\-\\-own ")
	assert.Contains(t, pages[0], ".SH \"OPTIONS OF ALL COMMANDS\"\n.nf\n      \\-\\-deep all ")
	assert.Contains(t, pages[0], ".SH \"SEE ALSO\"\n.BR a\\-b (1)\n")
	assert.ErrorContains(t, Write(filepath.Join(dir, "missing"), root), `writing manual page "a-b": open `)
}
