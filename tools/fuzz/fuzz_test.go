package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const page = "# Account\n\nprose\n\n| package | target | CPU s | executions |\n|---|---|--:|--:|\n" +
	"| `a` | `FuzzOne` | 7200 | 5 |\n| `a/b` | `FuzzTwo` | 10 | 6 |\n\nmore prose\n"

func writePage(t *testing.T, text string) *ledger {
	path := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	l, err := readLedger(path)
	require.NoError(t, err)
	return l
}

func TestLedgerAddsUp(t *testing.T) {
	l := writePage(t, page)
	assert.Equal(t, 2*time.Hour, l.rows[target{"a", "FuzzOne"}].cpu)
	require.NoError(t, l.add(target{"a/b", "FuzzTwo"}, usage{5 * time.Second, 100}))
	require.NoError(t, l.add(target{"c", "FuzzNew"}, usage{1900 * time.Millisecond, 7}))
	text, err := os.ReadFile(l.path)
	require.NoError(t, err)
	want := strings.Replace(page, "| 10 | 6 |", "| 15 | 106 |\n| `c` | `FuzzNew` | 1 | 7 |", 1)
	assert.Equal(t, want, string(text))

	read, err := readLedger(l.path)
	require.NoError(t, err)
	assert.Equal(t, 15*time.Second, read.rows[target{"a/b", "FuzzTwo"}].cpu)
}

func TestLedgerAddsFirstRow(t *testing.T) {
	l := writePage(t, "text\n\n| p | t | s | n |\n|---|---|--:|--:|\n\nend\n")
	require.NoError(t, l.add(target{"c", "FuzzNew"}, usage{time.Second, 7}))
	text, err := os.ReadFile(l.path)
	require.NoError(t, err)
	assert.Equal(t, "text\n\n| p | t | s | n |\n|---|---|--:|--:|\n| `c` | `FuzzNew` | 1 | 7 |\n\nend\n", string(text))

	l = writePage(t, "no table\n")
	assert.ErrorContains(t, l.add(target{"c", "FuzzNew"}, usage{}), "no table")
}

func TestFindTargets(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755))
	code := "package x\n\nfunc FuzzIt(f *testing.F) {}\n\nfunc fuzzNot() {}\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a", "x_test.go"), []byte(code), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a", "b", "x_test.go"), []byte(code), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a", "x.go"), []byte(code), 0o644))
	all, err := findTargets(dir, nil)
	require.NoError(t, err)
	assert.ElementsMatch(t, []target{{"a", "FuzzIt"}, {"a/b", "FuzzIt"}}, all)
	some, err := findTargets(dir, []string{"./a/b"})
	require.NoError(t, err)
	assert.Equal(t, []target{{"a/b", "FuzzIt"}}, some)
	some, err = findTargets(dir, []string{"a/FuzzIt"})
	require.NoError(t, err)
	assert.Equal(t, []target{{"a", "FuzzIt"}}, some)
}

func TestLeastCPUTimeFirst(t *testing.T) {
	l := writePage(t, page)
	targets := []target{{"a", "FuzzOne"}, {"a/b", "FuzzTwo"}, {"c", "FuzzNew"}}
	o := options{each: time.Second, total: time.Hour, aim: time.Minute}
	order := []target{}
	n, err := takeTurns(context.Background(), o, targets, l, func(_ context.Context, x target, _ time.Duration) (usage, error) {
		order = append(order, x)
		return usage{30 * time.Second, 1}, nil
	})
	require.NoError(t, err)
	assert.Equal(t, 4, n, "two turns of 30 s each for the two below a minute, none for the one above")
	assert.NotContains(t, order, target{"a", "FuzzOne"})
	assert.Equal(t, 70*time.Second, l.rows[target{"a/b", "FuzzTwo"}].cpu)
	assert.Equal(t, time.Minute, l.rows[target{"c", "FuzzNew"}].cpu)
}

func TestFailedTargetGetsNoFurtherTurn(t *testing.T) {
	l := writePage(t, page)
	targets := []target{{"a/b", "FuzzTwo"}, {"c", "FuzzNew"}}
	o := options{each: time.Second, total: time.Hour, aim: time.Minute}
	failures := 0
	n, err := takeTurns(context.Background(), o, targets, l, func(_ context.Context, x target, _ time.Duration) (usage, error) {
		if x.name == "FuzzTwo" {
			failures++
			return usage{}, errors.New("panic: boom")
		}
		return usage{cpu: 20 * time.Second}, nil
	})
	assert.Equal(t, 3, n)
	assert.Equal(t, 1, failures)
	assert.ErrorContains(t, err, "boom")
	assert.Equal(t, 10*time.Second, l.rows[target{"a/b", "FuzzTwo"}].cpu)
}

func TestFlags(t *testing.T) {
	for _, args := range [][]string{{"-each", "0s"}, {"-workers", "0"}, {"-for", "1h"}, {"-nonsense"}} {
		assert.Error(t, run(context.Background(), args, io.Discard), args)
	}
}

func TestLateEndIsNoFailure(t *testing.T) {
	const head = "fuzz: elapsed: 10s, execs: 7 (1/sec), new interesting: 0 (total: 4)\n--- FAIL: FuzzIt (10.21s)\n"
	assert.True(t, endedLate([]byte(head+"    context deadline exceeded\nFAIL\n")))
	for _, output := range []string{
		"", "PASS\n", head + "    fuzzing process hung or terminated unexpectedly: exit status 2\nFAIL\n",
		head + "    --- FAIL: FuzzIt (0.00s)\n        x_test.go:1: reading: context deadline exceeded\n    \n    Failing input written to testdata/fuzz/FuzzIt/1\nFAIL\n",
		head + "    context deadline exceeded\n    Failing input written to testdata/fuzz/FuzzIt/1\nFAIL\n",
	} {
		assert.False(t, endedLate([]byte(output)), output)
	}
}
