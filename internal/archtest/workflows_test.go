package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// workflowProblem is what is wrong with a line of a workflow or of action.yml, "" if all is well. A tag can be moved to
// other code, and the text of an expression would be part of a script.
func workflowProblem(line string, inScript bool) string {
	uses := regexp.MustCompile(`^\s*(?:- )?uses: (.*)$`).FindStringSubmatch(line)
	switch {
	case inScript && strings.Contains(line, "${{"):
		return "an expression in a script: pass it by env"
	case uses != nil && uses[1] != "./" && !regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`).MatchString(uses[1]):
		return "an action without commit and version"
	}
	return ""
}

func TestWorkflowsRunPinnedActionsAndPlainScripts(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root(t), ".github/workflows/*.yml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range append(files, filepath.Join(root(t), "action.yml")) {
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		script := -1 // the indentation of the "run: |" that a line is below, or -1
		for number, line := range strings.Split(string(content), "\n") {
			indent := len(line) - len(strings.TrimLeft(line, " -"))
			if strings.TrimSpace(line) != "" && indent <= script {
				script = -1
			}
			run := strings.HasPrefix(strings.TrimLeft(line, " -"), "run:")
			if run {
				script = indent
			}
			assert.Empty(t, workflowProblem(line, run || script >= 0), "%s:%d", filepath.Base(name), number+1)
		}
	}
}

// The pages show the versions that the workflows here have.
func TestPagesShowTheActionsOfTheWorkflows(t *testing.T) {
	read := func(patterns ...string) (text string) {
		for _, pattern := range patterns {
			names, err := filepath.Glob(filepath.Join(root(t), pattern))
			require.NoError(t, err)
			for _, name := range names {
				content, err := os.ReadFile(name)
				require.NoError(t, err)
				text += string(content)
			}
		}
		return text
	}
	uses := regexp.MustCompile(`uses: ([\w.-]+/[\w./-]+)@(.*)`)
	versions := map[string]string{}
	for _, m := range uses.FindAllStringSubmatch(read(".github/workflows/*.yml", "action.yml"), -1) {
		if versions[m[1]] != "" {
			assert.Equal(t, versions[m[1]], m[2], m[1])
		}
		versions[m[1]] = m[2]
	}
	shown := uses.FindAllStringSubmatch(read("README.md", "docs/*.md"), -1)
	require.NotEmpty(t, shown)
	for _, m := range shown {
		if m[1] != "OWNER/dmgbench" {
			assert.Equal(t, versions[m[1]], m[2], m[1])
		}
	}
}

func TestWorkflowProblems(t *testing.T) {
	assert.NotEmpty(t, workflowProblem("      - uses: actions/checkout@v4", false))
	assert.NotEmpty(t, workflowProblem("        uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1", false))
	assert.NotEmpty(t, workflowProblem("  echo ${{ inputs.plan }}", true))
	assert.Empty(t, workflowProblem("  PLAN: ${{ inputs.plan }}", false))
	assert.Empty(t, workflowProblem("  - uses: anchore/sbom-action/download-syft@e22c389904149dbc22b58101806040fa8d37a610 # v0.24.0", false))
	assert.Empty(t, workflowProblem("  - uses: ./", false))
}
