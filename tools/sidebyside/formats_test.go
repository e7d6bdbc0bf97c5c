package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestImageHasTheFilesOfAFolder(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"a": "first", "b/c": "second", "empty": ""} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	var image, shorter bytes.Buffer
	require.NoError(t, writeTestImage(&image, folder, 4*imageBlock))
	require.NoError(t, writeTestImage(&shorter, folder, imageBlock+3))
	assert.Equal(t, image.Bytes()[:imageBlock+3], shorter.Bytes(), "a longer image starts like a shorter one")
	assert.Len(t, image.Bytes(), 4*imageBlock)
	assert.Equal(t, image.Bytes()[:2*imageBlock], image.Bytes()[2*imageBlock:], "the files come again")
	blocks := []string{strings.TrimRight(image.String()[:imageBlock], "\x00"), strings.TrimRight(image.String()[imageBlock:2*imageBlock], "\x00")}
	assert.ElementsMatch(t, []string{"first", "second"}, blocks)

	assert.ErrorContains(t, writeTestImage(&image, t.TempDir(), 1), "no files")
	require.NoError(t, os.Remove(filepath.Join(folder, "a")))
	require.NoError(t, os.RemoveAll(filepath.Join(folder, "b")))
	assert.ErrorContains(t, writeTestImage(&image, folder, 1), "all files are empty")
	assert.Error(t, writeTestImage(&image, filepath.Join(folder, "none"), 1))
}

// script makes an executable shell script in dir.
func script(t *testing.T, dir, name, body string) string {
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700))
	return path
}

// runFormats compares two scripts as our hdiutil and as fstool, no other tool being installed.
func runFormats(t *testing.T, hdiutil, fstool string, args ...string) (report, error) {
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
	args = append([]string{"--dir", dir, "--size", "1 MiB", "--encode", "1 MiB", "--hdiutil", ours, "--image", image}, args...)
	r, err := compareFormats(t.Context(), args, &bytes.Buffer{})
	left, e := os.ReadDir(dir)
	require.NoError(t, e)
	assert.Empty(t, left, "everything is removed")
	return r, err
}

func TestFormatsComparesInstalledTools(t *testing.T) {
	r, err := runFormats(t, `exec cp "$2" "$6"`, `exec cp "$2" "$3"`)
	require.NoError(t, err)
	require.Len(t, r.rows, 4+2)
	missing := 0
	for _, row := range r.rows {
		if row.missing != "" {
			missing++
			assert.Contains(t, row.missing, "not measured: "+row.baseline+" is not installed")
			continue
		}
		assert.Equal(t, "fstool", row.baseline)
		assert.Positive(t, row.ratio.Median)
		assert.Equal(t, 7, row.ratio.Pairs)
		assert.Positive(t, row.aim)
	}
	assert.Equal(t, 3, missing)
	assert.Len(t, r.costs, 1+3*2)
}

// TestRatePaidForInSizeMeetsNoAim has two tools that make zeros of whatever they get; fstool's are half as many.
func TestRatePaidForInSizeMeetsNoAim(t *testing.T) {
	r, err := runFormats(t, `exec head -c 1048576 /dev/zero > "$6"`,
		`n=1048576; if [ $# -gt 3 ]; then n=524288; fi; exec head -c $n /dev/zero > "$3"`)
	require.NoError(t, err)
	compressed := 0
	for _, row := range r.rows {
		if !strings.HasPrefix(row.op, "raw →") || row.missing != "" {
			continue
		}
		compressed++
		assert.InDelta(t, 2, row.sizeRatio, 1e-9, row.op)
		assert.Equal(t, verdictLarger, row.verdict)
		assert.Contains(t, strings.Join(row.notes, "\n"), "size: ")
	}
	assert.Equal(t, 2, compressed)
}

func TestWrongOutputIsAnError(t *testing.T) {
	_, err := runFormats(t, `exec cp "$2" "$6"`, `head -c 1000000 "$2" > "$3"`)
	assert.ErrorContains(t, err, "checking the output of fstool")
	_, err = runFormats(t, `echo no disk >&2; exit 1`, "")
	assert.ErrorContains(t, err, "running hdiutil")
	assert.ErrorContains(t, err, "no disk")
}
