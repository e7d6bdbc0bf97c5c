package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine/hdiutil"
	"dmgbench/scripts"
)

// The table names what differs, with the status that says so to programs, and is
// part of the file that people send. The tool here lists images and does no more.
func TestExaminingToolsThatDiffer(t *testing.T) {
	self, err := executable()
	require.NoError(t, err)
	liar := filepath.Join(t.TempDir(), "liar")
	script := "#!/bin/sh\n[ \"$2\" = info ] && exec " + self + " \"$@\"\necho 'no idea' >&2; exit 7\n"
	require.NoError(t, os.WriteFile(liar, []byte(script), 0o700))
	find, capture := executable, scripts.Capture
	t.Cleanup(func() { executable, scripts.Capture = find, capture })
	executable = func() (string, error) { return liar, nil }
	scripts.Capture = `mkdir "$1"`
	state := t.TempDir()
	t.Setenv("DMGBENCH_RUNTIME_DIR", t.TempDir())

	dir := filepath.Join(t.TempDir(), "answers")
	code, out, stderr := call(t, []string{"DMGBENCH_STATE=" + state}, "doctor", "--apple", "--capture", dir)
	assert.Equal(t, exitError, code, stderr)
	assert.Contains(t, out, "differs            hdiutil create over a file: unknown, status 7; expected:\n                   exists, status 1\n")
	assert.Contains(t, stderr, "on which figures depend differ")
	assert.Regexp(t, regexp.MustCompile(`(?m)^0 as expected, \d\d differ, \d+ not possible here$`), out)
	assert.NotContains(t, out, state, "it names no folder of the user")
	table, err := os.ReadFile(filepath.Join(dir, "table.txt"))
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(out, string(table)))
	assert.FileExists(t, dir+".zip")
	left, err := os.ReadDir(filepath.Join(state, "probes"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestObservationText(t *testing.T) {
	for _, c := range []struct {
		seen, verdict string
		needed        bool
		want          string
	}{
		{"2097152", hdiutil.AsExpected, true, "as expected        size of a band: 2097152"},
		{"8388608", hdiutil.Differs, true, "differs            size of a band: 8388608; expected: 2097152"},
		{"8388608", hdiutil.Differs, false,
			"differs            size of a band: 8388608; expected: 2097152; no figure depends\n                   on it"},
		{"format UDSB", hdiutil.NotPossible, false, "not possible here  size of a band: format UDSB"},
	} {
		o := hdiutil.Observation{Name: "size of a band", Expected: "2097152", Seen: c.seen, Verdict: c.verdict, Needed: c.needed}
		assert.Equal(t, c.want, observationText(o))
	}
}
