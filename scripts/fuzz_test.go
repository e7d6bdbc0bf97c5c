package scripts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const fuzzPage = "# Fuzzing\n\n| package | target | CPU s | executions |\n|---|---|--:|--:|\n" +
	"| `internal/a` | `FuzzDone` | 3600 | 5 |\n| `internal/a` | `FuzzGood` | 10 | 6 |\n\nmore\n"

// fakeGo builds "test programs" that print what a fuzz target prints: FuzzBad fails on an input, FuzzLate ends as targets
// end before Go 1.27 (golang/go#75804), all others pass. Each sleeps, so that few turns fit into the time.
const fakeGo = `#!/bin/sh
case "$1" in
env | list) echo none; exit ;;
esac
cat >"$4" <<'PROGRAM'
#!/bin/sh
sleep 0.2
echo "fuzz: elapsed: 1s, execs: 7 (1/sec), new interesting: 0 (total: 4)"
case "$*" in
*FuzzBad*) echo "Failing input written to testdata"; exit 1 ;;
*FuzzLate*) echo "    context deadline exceeded"; exit 1 ;;
esac
PROGRAM
chmod +x "$4"
`

// runFuzz runs the script on a module with the targets FuzzBad, FuzzDone,
// FuzzGood and FuzzLate, and returns its output, the page and the error.
func runFuzz(t *testing.T, args ...string) (output, page string, err error) {
	dir := t.TempDir()
	script, err := os.ReadFile("fuzz.sh")
	require.NoError(t, err)
	code := "package a\n"
	for _, name := range []string{"Bad", "Done", "Good", "Late"} {
		code += "func Fuzz" + name + "(f *testing.F) {}\n"
	}
	for name, text := range map[string]string{"scripts/fuzz.sh": string(script), "docs/fuzzing.md": fuzzPage, "bin/go": fakeGo,
		"internal/a/x_test.go": code, "cmd/x.go": "", "tools/x.go": ""} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	cmd := exec.Command("bash", append([]string{filepath.Join(dir, "scripts/fuzz.sh")}, args...)...)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	text, err := cmd.CombinedOutput()
	stored, readErr := os.ReadFile(filepath.Join(dir, "docs/fuzzing.md"))
	require.NoError(t, readErr)
	return string(text), string(stored), err
}

func TestFuzzGivesEachTargetOneTurn(t *testing.T) {
	t.Parallel()
	output, page, err := runFuzz(t, "1s")
	assert.ErrorContains(t, err, "exit status 1")
	assert.Contains(t, output, "fuzz: internal/a FuzzBad\n")
	assert.Contains(t, output, "fuzz: internal/a FuzzLate\n", "a failure does not end the others")
	assert.Contains(t, output, "failed: internal/a/FuzzBad")
	assert.NotContains(t, output, "failed: internal/a/FuzzBad  internal/a/FuzzLate", "a late end is no failure")
	assert.Equal(t, fuzzPage, page)

	output, _, err = runFuzz(t, "1s", "0", "internal/a/FuzzGood")
	require.NoError(t, err, output)
	assert.Equal(t, "fuzz: internal/a FuzzGood\nfuzz: 1 turns, no failure\n", output)

	_, _, err = runFuzz(t, "1s", "0", "internal/b")
	assert.Error(t, err)
}

// Two seconds, since bash counts their boundaries: "1" can end at once.
func TestFuzzAddsToTheTable(t *testing.T) {
	t.Parallel()
	output, page, err := runFuzz(t, "1s", "2", "internal")
	assert.ErrorContains(t, err, "exit status 1", "FuzzBad is among those without CPU time")
	assert.NotContains(t, output, "FuzzDone", "it has its hour")
	assert.Regexp(t, "`FuzzDone` \\| 3600 \\| 5 \\|\n\\| `internal/a` \\| `FuzzGood` \\| 10 \\| 6 \\|\n"+
		"\\| `internal/a` \\| `FuzzLate` \\| 0 \\| \\d+ \\|\n\nmore\n$", page, "the row of a new target comes last")
	assert.NotContains(t, page, "FuzzBad")

	_, page, err = runFuzz(t, "1s", "2", "internal/a/FuzzGood")
	require.NoError(t, err)
	assert.Regexp(t, "`FuzzGood` \\| 1\\d \\| \\d+ \\|\n\nmore\n$", page)
}
