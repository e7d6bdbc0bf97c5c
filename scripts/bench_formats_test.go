package scripts_test

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

// benchFormats compares two scripts as our hdiutil and as fstool, no other tool being installed.
func benchFormats(t *testing.T, hdiutil, fstool string) (lines, missing string, err error) {
	dir, tools, image := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "image")
	require.NoError(t, os.WriteFile(image, make([]byte, 1<<20), 0o600))
	for name, body := range map[string]string{"hdiutil": hdiutil, "fstool": fstool} {
		if body != "" {
			require.NoError(t, os.WriteFile(filepath.Join(tools, name), []byte("#!/bin/sh\n"+body+"\n"), 0o700))
		}
	}
	for _, name := range []string{"awk", "bash", "cat", "cmp", "cp", "dirname", "getconf", "head", "mktemp", "mv", "rm", "sed", "sh", "sysctl", "tail",
		"uname", "wc"} {
		if path, err := exec.LookPath(name); err == nil {
			require.NoError(t, os.Symlink(path, filepath.Join(tools, name)))
		}
	}
	c := exec.CommandContext(t.Context(), "bash", "bench-formats.sh", "--dir", dir, "--size", "1", "--encode", "1", "--hdiutil",
		filepath.Join(tools, "hdiutil"), "--image", image, "--pairs", "7")
	c.Env = append(os.Environ(), "PATH="+tools)
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	left, e := os.ReadDir(dir)
	require.NoError(t, e)
	assert.Empty(t, left, "everything is removed")
	return string(out), stderr.String(), err
}

func TestBenchFormatsComparesInstalledTools(t *testing.T) {
	t.Parallel()
	lines, missing, err := benchFormats(t, `exec cp "$2" "$6"`, `exec cp "$2" "$3"`)
	require.NoError(t, err, missing)
	for _, op := range []string{"Decode/format=UDZO", "Encode/format=UDZO", "Encode/format=ULFO"} {
		for _, tool := range []string{"hdiutil", "fstool"} {
			assert.Len(t, regexp.MustCompile("Benchmark"+op+"/by="+tool+" 1 .* s/op").FindAllString(lines, -1), 2*7, "%s %s", op, tool)
		}
		assert.Len(t, regexp.MustCompile("Benchmark"+op+"/by=fstool 1 .* time-of-hdiutil").FindAllString(lines, -1), 7, "%s", op)
	}
	assert.Equal(t, 3, strings.Count(missing, "is not installed"))
	assert.Equal(t, 3*2*2*7, strings.Count(lines, " 1048576 made-B"))
}

func TestBenchFormatsChecksTheOutput(t *testing.T) {
	t.Parallel()
	_, text, err := benchFormats(t, `exec cp "$2" "$6"`, `head -c 1000000 "$2" > "$3"`)
	assert.Error(t, err)
	assert.Contains(t, text, "the output of fstool is wrong")
	_, text, err = benchFormats(t, `echo no disk >&2; exit 1`, "")
	assert.Error(t, err)
	assert.Contains(t, text, "running hdiutil: no disk")
}

func TestBenchFormatsRefusesFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--pairs", "6"}, {"--size", "2", "--encode", "4"}, {"--size"}, {"extra"}, {"--nonsense", "1"}} {
		assert.Error(t, exec.CommandContext(t.Context(), "bash", append([]string{"bench-formats.sh"}, args...)...).Run(), args)
	}
}
