package main

import (
	"bytes"
	"context"
	"encoding/json"
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
		{}, {"disks"}, {"engines", "--pairs", "6"}, {"engines", "--sizes", "5"}, {"engines", "--sizes", "100 B"}, {"engines", "--sizes", "2 GiB"},
		{"engines", "--targets", "directory"}, {"engines", "--targets", "UDSB"}, {"engines", "--targets", "directory,UDZO"},
		{"engines", "--targets", "directory,UDSB,UDSB"}, {"engines", "--workers", "0"}, {"engines", "--cache", "cold"}, {"engines", "--sync", "never"},
		{"engines", "--format", "csv"}, {"engines", "--block", "x"}, {"engines", "--sets", "0"}, {"engines", "extra"}, {"engines", "--nonsense"},
		{"mounted", "--targets", "directory,UDRW-sparse"}, {"mounted", "--targets", "UDRW,UDSB"}, {"mounted", "--targets", "directory,UDSB-AES-256"},
		{"mounted", "--blocks", "1 MiB,1 MiB"}, {"mounted", "--blocks", "0"}, {"mounted", "--block", "1 MiB"}, {"mounted", "--places", "tape"},
		{"mounted", "--places", "disk,disk"}, {"engines", "--blocks", "1 MiB"}, {"fio", "--sizes", "2 MB"}, {"fio", "--sizes", "2 MiB", "--block", "3 MiB"},
	} {
		var out, status bytes.Buffer
		assert.Equal(t, 2, run(t.Context(), args, &out, &status), "%q: %s", args, &status)
		assert.Empty(t, out.String())
	}
	assert.Zero(t, run(t.Context(), []string{"engines", "-h"}, &bytes.Buffer{}, &bytes.Buffer{}))
}

// smoke runs a comparison with files so small that it measures nothing, and gives the report.
func smoke(t *testing.T, args ...string) report {
	t.Helper()
	dir := t.TempDir()
	var out, status bytes.Buffer
	args = append(args, "--dir", dir, "--pairs", "7", "--workers", "1,2", "--format", "json", "--settle", "0s", "--cache", "buffered")
	require.Zero(t, run(t.Context(), args, &out, &status), status.String())
	var r report
	require.NoError(t, json.Unmarshal(out.Bytes(), &r))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left, "everything is removed")
	for _, row := range r.Rows {
		assert.Positive(t, row.Ratio.Median)
		assert.Equal(t, 7, row.Ratio.Pairs)
	}
	return r
}

func TestEnginesSmoke(t *testing.T) {
	r := smoke(t, "engines", "--sizes", "64 KiB,5000 B", "--sync", "none", "--targets", "directory,UDRW-sparse,UDSP")
	assert.Len(t, r.Rows, 2*2*2, "workers, operations, images against the baseline")
	assert.Equal(t, "UDRW-sparse", r.Rows[0].Subject)
}

// TestMain makes the test's program the work-alike, too, and the process behind its images.
func TestMain(m *testing.M) {
	if code, is := tool(context.Background(), os.Args[1:]); is {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

func TestMountedSmoke(t *testing.T) {
	if err := mountable(); err != nil {
		t.Skip("not allowed here: ", err)
	}
	if os.Getenv("DMGBENCH_LONG") == "" {
		t.Skip("long: set DMGBENCH_LONG=1 (make test-long)")
	}
	t.Setenv("DMGBENCH_RUNTIME_DIR", t.TempDir())
	r := smoke(t, "mounted", "--sizes", "64 KiB,5000 B", "--blocks", "4 KiB,file")
	require.Len(t, r.Rows, 2*2*2*3*3, "places, workers, calls, operations, images")
	assert.Equal(t, int64(4096), r.Rows[0].Block)
	assert.Equal(t, placeDisk, r.Rows[0].Place)
	assert.Equal(t, placeMemory, r.Rows[71].Place)
	for _, row := range r.Rows[36:] {
		assert.NotContains(t, strings.Join(row.Warnings, "\n"), "cache: ")
	}
}

func TestMountedRefusesWithTheReason(t *testing.T) {
	userID = func() int { return 1000 }
	t.Cleanup(func() { userID = os.Geteuid })
	var out, status bytes.Buffer
	assert.Equal(t, 1, run(t.Context(), []string{"mounted"}, &out, &status))
	assert.Contains(t, status.String(), errCannotMount.Error())
	assert.Empty(t, out.String())
}

func TestMountedAims(t *testing.T) {
	for _, c := range []struct {
		place, subject string
		op             int
		cell           cell
		aim            float64
	}{
		{placeDisk, udrw, opWrite, cell{1, 0}, 0.9}, {placeDisk, udrw, opWrite, cell{2, 1 << 20}, 0.9}, {placeMemory, udrw, opWrite, cell{1, 0}, 0},
		{placeDisk, udsb, opWrite, cell{1, 1 << 20}, 0.5}, {placeDisk, udsb, opWrite, cell{1, 0}, 0.8}, {placeDisk, udsb, opWrite, cell{2, 1 << 20}, 0.8},
		{placeMemory, udsb, opWrite, cell{1, 1 << 20}, 0.6}, {placeMemory, udsb, opWrite, cell{2, 0}, 0.35},
		{placeDisk, udsbAES, opRewrite, cell{1, 0}, 0.69}, {placeDisk, udsbAES, opRead, cell{2, 0}, 0.83}, {placeMemory, udsbAES, opRead, cell{1, 0}, 0},
	} {
		assert.Equal(t, c.aim, mountedAim(c.place, c.subject, c.op, c.cell), "%v", c)
	}
}

func TestMissingFio(t *testing.T) {
	var out, status bytes.Buffer
	assert.Equal(t, 1, run(t.Context(), []string{"fio", "--fio", filepath.Join(t.TempDir(), "fio")}, &out, &status))
	assert.Contains(t, status.String(), "apt-get install fio")
	assert.Empty(t, out.String())
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, status bytes.Buffer
	dir := t.TempDir()
	assert.Equal(t, 130, run(ctx, []string{"engines", "--dir", dir, "--sizes", "64 KiB"}, &out, &status))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestFioSmoke(t *testing.T) {
	if os.Getenv("DMGBENCH_LONG") == "" {
		t.Skip("long: set DMGBENCH_LONG=1 (make test-long)")
	}
	if _, err := exec.LookPath("fio"); err != nil {
		t.Skip("fio is not installed")
	}
	r := smoke(t, "fio", "--sizes", "64 KiB", "--files", "1")
	assert.GreaterOrEqual(t, len(r.Rows), 2*2*2, "rate and gross cost; so little work may cost fio nothing that it can count")
}
