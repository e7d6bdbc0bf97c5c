package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCommandLine(t *testing.T) {
	for _, args := range [][]string{
		{"--pairs", "6"}, {"--sizes", "5"}, {"--sizes", "100 B"}, {"--sizes", "2 GiB"},
		{"--workers", "0"}, {"--workers", "x"},
		{"--sizes", "2 MB"}, {"extra"},
	} {
		var stdout, stderr bytes.Buffer
		assert.Error(t, run(t.Context(), args, &stdout, &stderr), args)
		assert.Empty(t, stdout.String())
	}
	assert.ErrorIs(t, run(t.Context(), []string{"-h"}, &bytes.Buffer{}, &bytes.Buffer{}), flag.ErrHelp)
}

func TestMissingFio(t *testing.T) {
	var stdout, stderr bytes.Buffer
	err := run(t.Context(), []string{"--fio", filepath.Join(t.TempDir(), "fio")}, &stdout, &stderr)
	assert.ErrorContains(t, err, "apt-get install fio")
	assert.Empty(t, stdout.String())
}

// fakeFio answers --version, so that an interruption is tested without fio.
func fakeFio(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "fio")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\necho fio-3\n"), 0o700))
	return path
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	dir := t.TempDir()
	err := run(ctx, []string{"--fio", fakeFio(t), "--dir", dir, "--sizes", "64 KiB"}, &stdout, &stderr)
	assert.ErrorIs(t, err, context.Canceled)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestFioComparesAndRemovesItsFiles(t *testing.T) {
	if os.Getenv("DMGBENCH_LONG") == "" {
		t.Skip("long: set DMGBENCH_LONG=1 (make test-long)")
	}
	if _, err := exec.LookPath("fio"); err != nil {
		t.Skip("fio is not installed")
	}
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	err := run(t.Context(), []string{"--dir", dir, "--pairs", "7", "--sizes", "64 KiB", "--megabytes", "1", "--buffered"},
		&stdout, &stderr)
	require.NoError(t, err)
	assert.Equal(t, 2*2*2*2*7, strings.Count(stdout.String(), "\nBenchmark"), "twice a round: two sides, operations, numbers of workers")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}
