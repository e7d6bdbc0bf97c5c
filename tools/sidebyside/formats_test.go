package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestImageHasTheFilesOfAFolderAgainAndAgain(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "a"), []byte("first"), 0o600))
	in := readFolder(folder)
	image := make([]byte, 4096)
	_, err := io.ReadFull(in, image)
	require.NoError(t, err)
	require.NoError(t, in.Close())
	assert.Greater(t, bytes.Count(image, []byte("first")), 1)
	_, err = readFolder(filepath.Join(folder, "none")).Read(image)
	assert.Error(t, err)
}

// script makes an executable shell script in dir.
func script(t *testing.T, dir, name, body string) string {
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700))
	return path
}

// runFormats compares two scripts as our hdiutil and as fstool, no other tool being installed.
func runFormats(t *testing.T, hdiutil, fstool string) (lines, missing string, err error) {
	dir, tools, image := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "image")
	require.NoError(t, os.WriteFile(image, make([]byte, 1<<20), 0o600))
	ours := script(t, tools, "hdiutil", hdiutil)
	if fstool != "" {
		script(t, tools, "fstool", fstool)
	}
	for _, name := range []string{"cmp", "cp", "head"} {
		require.NoError(t, os.Symlink("/usr/bin/"+name, filepath.Join(tools, name)))
	}
	t.Setenv("PATH", tools)
	var stdout, stderr bytes.Buffer
	err = run(t.Context(), []string{"formats", "--dir", dir, "--size", "1 MiB", "--encode", "1 MiB", "--hdiutil", ours, "--image", image,
		"--pairs", "7"}, &stdout, &stderr)
	left, e := os.ReadDir(dir)
	require.NoError(t, e)
	assert.Empty(t, left, "everything is removed")
	return stdout.String(), stderr.String(), err
}

func TestFormatsComparesInstalledTools(t *testing.T) {
	lines, missing, err := runFormats(t, `exec cp "$2" "$6"`, `exec cp "$2" "$3"`)
	require.NoError(t, err)
	for _, op := range []string{"Decode/format=UDZO", "Encode/format=UDZO", "Encode/format=ULFO"} {
		for _, tool := range []string{"hdiutil", "fstool"} {
			assert.Len(t, regexp.MustCompile("Benchmark"+op+"/by="+tool+" 1 .* s/op").FindAllString(lines, -1), 2*7, "%s %s", op, tool)
		}
		assert.Len(t, regexp.MustCompile("Benchmark"+op+"/by=fstool 1 .* time-of-hdiutil").FindAllString(lines, -1), 7, "%s", op)
	}
	assert.Equal(t, 3, strings.Count(missing, "is not installed"))
	assert.Equal(t, 3*2*2*7, strings.Count(lines, " 1048576 made-B"))
}

func TestWrongOutputIsAnError(t *testing.T) {
	_, _, err := runFormats(t, `exec cp "$2" "$6"`, `head -c 1000000 "$2" > "$3"`)
	assert.ErrorContains(t, err, "checking the output of fstool")
	_, _, err = runFormats(t, `echo no disk >&2; exit 1`, "")
	assert.ErrorContains(t, err, "running hdiutil")
	assert.ErrorContains(t, err, "no disk")
}
