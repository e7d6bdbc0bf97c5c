package main

import (
	"bytes"
	"compress/zlib"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestImageIsTheSameEverywhere pins the bytes of the test image: figures of different machines are about the same data.
func TestImageIsTheSameEverywhere(t *testing.T) {
	var image, longer, other bytes.Buffer
	require.NoError(t, writeTestImage(&image, 12<<20, 1))
	require.NoError(t, writeTestImage(&longer, 12<<20+imageBlock, 1))
	require.NoError(t, writeTestImage(&other, 1<<20, 2))
	assert.Equal(t, "50aa14a7cd968942", fmt.Sprintf("%.8x", sha256.Sum256(image.Bytes())))
	assert.True(t, bytes.HasPrefix(longer.Bytes(), image.Bytes()), "a longer image starts like a shorter one")
	assert.NotEqual(t, image.Bytes()[:1<<20], other.Bytes())

	var small bytes.Buffer
	z := zlib.NewWriter(&small)
	_, err := z.Write(image.Bytes())
	require.NoError(t, err)
	require.NoError(t, z.Close())
	assert.InDelta(t, 0.4, float64(small.Len())/float64(image.Len()), 0.2, "it compresses as volumes do")
}

// script makes an executable shell script in dir.
func script(t *testing.T, dir, name, body string) string {
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700))
	return path
}

// runFormats compares two scripts as our hdiutil and as fstool, no other tool being installed.
func runFormats(t *testing.T, hdiutil, fstool string, args ...string) (report, error) {
	dir, tools := t.TempDir(), t.TempDir()
	ours := script(t, tools, "hdiutil", hdiutil)
	if fstool != "" {
		script(t, tools, "fstool", fstool)
	}
	for _, name := range []string{"cmp", "cp", "head"} {
		require.NoError(t, os.Symlink("/usr/bin/"+name, filepath.Join(tools, name)))
	}
	t.Setenv("PATH", tools)
	args = append([]string{"--dir", dir, "--size", "1 MiB", "--encode", "1 MiB", "--hdiutil", ours}, args...)
	r, err := compareFormats(t.Context(), args, &bytes.Buffer{})
	left, e := os.ReadDir(dir)
	require.NoError(t, e)
	assert.Empty(t, left, "everything is removed")
	return r, err
}

func TestFormatsComparesInstalledTools(t *testing.T) {
	r, err := runFormats(t, `exec cp "$2" "$6"`, `exec cp "$2" "$3"`)
	require.NoError(t, err)
	require.Len(t, r.rows, 4+2+8)
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
	assert.Equal(t, 3+8, missing)
	assert.Len(t, r.costs, 1+3*2)
}

// TestRatePaidForInSizeMeetsNoAim has two tools that make zeros of whatever they get; fstool's are half as many.
func TestRatePaidForInSizeMeetsNoAim(t *testing.T) {
	image := filepath.Join(t.TempDir(), "zeros")
	require.NoError(t, os.WriteFile(image, make([]byte, 1<<20), 0o600))
	r, err := runFormats(t, `exec head -c 1048576 /dev/zero > "$6"`,
		`n=1048576; if [ $# -gt 3 ]; then n=524288; fi; exec head -c $n /dev/zero > "$3"`, "--parts", "encode", "--image", image)
	require.NoError(t, err)
	require.Len(t, r.rows, 2)
	for _, row := range r.rows {
		assert.InDelta(t, 2, row.sizeRatio, 1e-9, row.op)
		assert.Equal(t, verdictLarger, row.verdict)
		assert.Contains(t, strings.Join(row.notes, "\n"), "size: ")
	}
}

func TestWrongOutputIsAnError(t *testing.T) {
	_, err := runFormats(t, `exec cp "$2" "$6"`, `head -c 1000000 "$2" > "$3"`, "--parts", "decode")
	assert.ErrorContains(t, err, "checking the output of fstool")
	_, err = runFormats(t, `echo no disk >&2; exit 1`, "", "--parts", "decode")
	assert.ErrorContains(t, err, "running hdiutil")
	assert.ErrorContains(t, err, "no disk")
}

func TestParseOpenSSL(t *testing.T) {
	v, err := parseOpenSSL("+H:512\n+F:25:AES-256-CBC:1064956696.77\n")
	require.NoError(t, err)
	assert.InDelta(t, 1064956696.77, v, 1e-3)
	for _, bad := range []string{"", "+F", "+F:25:AES-256-CBC:fast", "+F:25:AES-256-CBC:0.00", "AES-256-CBC 12k"} {
		_, err := parseOpenSSL(bad)
		assert.Error(t, err, bad)
	}
}

func TestCompareCipher(t *testing.T) {
	for _, names := range [][2]string{{"vaes-1024", "generic"}, {"generic", "avx-1024"}} {
		_, err := runCipher(names[0], names[1], cipherJob{bits: 256, unit: 512}, 0.001)
		require.Error(t, err, names)
	}
	tools := t.TempDir()
	script(t, tools, "openssl", `if [ "$8" != 1 ]; then exit 1; fi; echo '+F:25:X:1000000000'`)
	t.Setenv("PATH", tools)
	b := &formatBench{pairs: 1}
	require.NoError(t, b.compareCipher(t.Context(), cipherJob{bits: 256, unit: 4096, decrypt: true}))
	for _, row := range b.report.rows {
		assert.Positive(t, row.subjectValue)
		assert.InDelta(t, 1e9, row.baselineValue, 1)
	}
}
