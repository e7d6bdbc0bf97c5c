package main

import (
	"bytes"
	"compress/zlib"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFormatsCommandLine(t *testing.T) {
	for _, args := range [][]string{
		{"--pairs", "6"}, {"--size", "100 kB"}, {"--size", "2 MiB", "--encode", "4 MiB"}, {"--size", "x"}, {"--memory", ""},
		{"--levels", "0"}, {"--levels", "1,x"}, {"--parts", "decode,sleep"}, {"--format", "csv"}, {"extra"}, {"--nonsense"},
	} {
		var out, status bytes.Buffer
		assert.Equal(t, 2, run(t.Context(), append([]string{"formats"}, args...), &out, &status), "%q: %s", args, &status)
		assert.Empty(t, out.String())
	}
	assert.Zero(t, run(t.Context(), []string{"formats", "-h"}, &bytes.Buffer{}, &bytes.Buffer{}))
}

// TestImageIsTheSameEverywhere holds the test image to its bytes: figures of different machines are about the same data.
func TestImageIsTheSameEverywhere(t *testing.T) {
	var image, longer, other bytes.Buffer
	require.NoError(t, makeImage(&image, 12<<20, 1))
	require.NoError(t, makeImage(&longer, 12<<20+makerBlock, 1))
	require.NoError(t, makeImage(&other, 1<<20, 2))
	assert.Equal(t, "50aa14a7cd968942", fmt.Sprintf("%.8x", sha256.Sum256(image.Bytes())))
	assert.True(t, bytes.HasPrefix(longer.Bytes(), image.Bytes()), "a longer image begins like a shorter one")
	assert.NotEqual(t, image.Bytes()[:1<<20], other.Bytes())

	var small bytes.Buffer
	z := zlib.NewWriter(&small)
	_, err := z.Write(image.Bytes())
	require.NoError(t, err)
	require.NoError(t, z.Close())
	assert.InDelta(t, 0.4, float64(small.Len())/float64(image.Len()), 0.2, "it compresses as volumes do")
}

// fake makes a program that copies: the arguments at these places are input and output.
func fake(t *testing.T, name, in, out string) string {
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\nexec cp \"$"+in+"\" \"$"+out+"\"\n"), 0o700))
	return path
}

func formatsReport(t *testing.T, args ...string) (int, report, string) {
	dir := t.TempDir()
	args = append([]string{"formats", "--dir", dir, "--size", "1 MiB", "--encode", "1 MiB", "--memory", "1 MiB,2 MiB", "--format", "json",
		"--qemu-img", "/nowhere/qemu-img", "--7zz", "/nowhere/7zz", "--openssl", "/nowhere/openssl"}, args...)
	var out, status bytes.Buffer
	code := run(t.Context(), args, &out, &status)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left, "everything is removed")
	var r report
	if code == 0 {
		require.NoError(t, json.Unmarshal(out.Bytes(), &r))
	}
	return code, r, status.String()
}

func TestFormatsWithToolsThatCopy(t *testing.T) {
	code, r, said := formatsReport(t, "--hdiutil", fake(t, "hdiutil", "2", "6"), "--fstool", fake(t, "fstool", "2", "3"),
		"--parts", "decode,encode,memory,aes", "--levels", "1,6")
	require.Zero(t, code, said)
	require.Len(t, r.Rows, 3+3+8)
	missing := 0
	for _, row := range r.Rows {
		if row.Missing != "" {
			missing++
			assert.Contains(t, row.Missing, "not measured: "+row.Baseline+" is not installed")
			continue
		}
		assert.Equal(t, "fstool", row.Baseline)
		assert.Positive(t, row.Ratio.Median)
		assert.Equal(t, 7, row.Ratio.Pairs)
		assert.Positive(t, row.Aim)
	}
	assert.Equal(t, 2+8, missing)
	require.Len(t, r.Tables, 2)
	assert.Len(t, r.Tables[0].Rows, 2*4)
	assert.Len(t, r.Tables[1].Rows, 2*2)
	var text bytes.Buffer
	require.NoError(t, r.text(&text))
	assert.Contains(t, text.String(), "not measured: 7zz is not installed")
	assert.Contains(t, text.String(), r.Tables[1].Title)
}

// TestSizeStandsWithTheRate has two tools that compress: what is paid for in size meets no aim.
func TestSizeStandsWithTheRate(t *testing.T) {
	image := filepath.Join(t.TempDir(), "zeros")
	require.NoError(t, os.WriteFile(image, make([]byte, 1<<20), 0o600))
	// Both make zeros of whatever they are given; when fstool compresses, half as many.
	script := func(name, body string) string {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o700))
		return path
	}
	ours := script("hdiutil", "exec head -c 1048576 /dev/zero > \"$6\"\n")
	smaller := script("fstool", "n=1048576; if [ $# -gt 3 ]; then n=524288; fi; exec head -c $n /dev/zero > \"$3\"\n")
	code, r, said := formatsReport(t, "--hdiutil", ours, "--fstool", smaller, "--parts", "encode", "--image", image)
	require.Zero(t, code, said)
	require.Len(t, r.Rows, 2)
	for _, row := range r.Rows {
		assert.InDelta(t, 2, row.SizeRatio, 1e-9, row.Op)
		assert.Equal(t, verdictLarger, row.Verdict)
		assert.Contains(t, strings.Join(row.Warnings, "\n"), "size: ")
	}
	var text bytes.Buffer
	require.NoError(t, r.text(&text))
	assert.Regexp(t, `ratio +size ratio +interval`, text.String())
	assert.Contains(t, text.String(), "2.000")
}

// TestWrongOutputIsNoRecord has a converter that is fast because it leaves something out.
func TestWrongOutputIsNoRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fstool")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\nhead -c 1000000 \"$2\" > \"$3\"\n"), 0o700))
	code, _, said := formatsReport(t, "--hdiutil", fake(t, "hdiutil", "2", "6"), "--fstool", path, "--parts", "decode")
	assert.Equal(t, 1, code)
	assert.Contains(t, said, "checking what fstool made")

	code, _, said = formatsReport(t, "--hdiutil", "/bin/false", "--parts", "decode")
	assert.Equal(t, 1, code)
	assert.Contains(t, said, "running false")
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

func TestCipherTurnsOfEveryImplementation(t *testing.T) {
	for _, subject := range []cipherSubject{{"vaes-1024", "generic"}, {"generic", "avx-1024"}} {
		l, err := cipherTurns(subject, cipherJob{bits: 256, unit: 512}, 0.001)
		require.Error(t, err, "%v", l)
	}
	b := &formatBench{formatSetup: &formatSetup{pairs: minPairs}, turnTime: 0.001}
	b.openssl = filepath.Join(t.TempDir(), "openssl")
	require.NoError(t, os.WriteFile(b.openssl, []byte("#!/bin/sh\nif [ \"$8\" != 1 ]; then exit 1; fi\necho '+F:25:X:1000000000'\n"), 0o700))
	require.NoError(t, b.cipher(t.Context(), b.openssl, cipherJob{bits: 256, unit: 4096, decrypt: true}))
	for _, row := range b.report.Rows {
		assert.Positive(t, row.SubjectValue)
		assert.InDelta(t, 1e9, row.BaselineValue, 1)
	}
}

func TestCodecTable(t *testing.T) {
	b := &formatBench{formatSetup: &formatSetup{encodeSize: 1 << 20, seed: 1}, turnTime: 0.001}
	require.NoError(t, b.codecs(t.Context()))
	var names []string
	for _, row := range b.report.Tables[0].Rows {
		names = append(names, row[0])
		assert.True(t, strings.HasSuffix(row[3], "%"))
	}
	assert.Equal(t, []string{"adc", "zlib, level 1", "zlib, level 6", "zlib, level 9", "bzip2", "lzfse", "lzma"}, names)
}

func TestChunkKeeper(t *testing.T) {
	k := &chunkKeeper{every: 2}
	p := make([]byte, 5*codecChunk/2)
	for i := range p {
		p[i] = byte(i / codecChunk)
	}
	for len(p) > 0 {
		n := min(len(p), 700_000)
		_, _ = k.Write(p[:n])
		p = p[n:]
	}
	require.Len(t, k.chunks, 2)
	assert.Equal(t, bytes.Repeat([]byte{0}, codecChunk), k.chunks[0])
	assert.Equal(t, bytes.Repeat([]byte{2}, codecChunk/2), k.chunks[1])
}
