package cli

import (
	"encoding/csv"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"dmgbench/internal/report/reporttest"
	"dmgbench/internal/result"
	"dmgbench/internal/result/export"
	"dmgbench/internal/result/runfolders"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPrunableKeepsTheNewest(t *testing.T) {
	list := make([]runfolders.Run, 60)
	for i := range list {
		list[i] = runfolders.Run{Run: fmt.Sprint(i), Plan: "p", Status: result.Done}
	}
	assert.Equal(t, list[10:], runfolders.Prunable(list, 10))
	list[59].Baseline, list[58].Status, list[57].Pooled = true, result.Unfinished, 2
	assert.Equal(t, list[10:57], runfolders.Prunable(list, 10))
}

func TestHistoryIsHarmless(t *testing.T) {
	_, r := reporttest.Hostile()
	p := runfolders.Run{Plan: r.Plan.Name, Status: r.Status, Engine: r.Sessions[0].Engine.Title, Machine: r.Sessions[0].Host.CPU}
	p.Dir, p.Title = "=cmd|' /C calc'!A0", "a\x1b[31m,\"b\"\nc"
	var out strings.Builder
	require.NoError(t, historyCSV(&out, []runfolders.Run{p}))
	rows, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 2)
	assert.Equal(t, "'"+p.Dir, rows[1][0])
	assert.Contains(t, rows[1], p.Title)
	out.Reset()
	require.NoError(t, printTable(&out, [][]string{historyRow(p)}, 80, 4))
	assert.NotContains(t, out.String(), "\x1b")
	page, err := os.ReadFile("../../docs/metrics.md")
	require.NoError(t, err)
	for _, c := range export.ParseColumns[runfolders.Run](historyColumns)["history"] {
		assert.Contains(t, string(page), "**`"+c.Name+"`**")
	}
}

func TestSince(t *testing.T) {
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"2026-01-31": time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC), "2026-01-31T10:00:00+02:00": time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC),
		"36h": now.Add(-36 * time.Hour), "30d": now.AddDate(0, 0, -30), "2w": now.AddDate(0, 0, -14),
	} {
		got, err := parseSince(text, now)
		require.NoError(t, err, text)
		assert.True(t, want.Equal(got), text)
	}
	for _, text := range []string{"", "-3d", "0d", "d", "tomorrow", "99999999999999w"} {
		_, err := parseSince(text, now)
		assert.Error(t, err, text)
	}
}

// A row has words for what a run is, and the lines of a list are no longer than the terminal.
func TestHistoryRows(t *testing.T) {
	done := runfolders.Run{Dir: strings.Repeat("d", 60), Plan: "p", Status: result.Done, Cases: map[string]int{result.Done: 2},
		Headline: &runfolders.Headline{Case: "baseline=true", Op: "write", Phase: "new", Value: 2e6, Unit: "B/s", Native: true}}
	trees := runfolders.Run{Dir: "x", Plan: "trees", Status: result.Done, Cases: map[string]int{result.Done: 1},
		Quantity: &runfolders.Headline{Case: "format=UDSB", Op: "tree", Phase: "create", Value: 250, Unit: "1/s"}}
	killed := runfolders.Run{Dir: "k", Path: "runs/k", Plan: "p", Status: result.Unfinished, End: result.Lost, RoundsDone: 19, RoundsOf: 24}
	paused := killed
	paused.End = result.Paused
	assert.Equal(t, []string{"done", "write new 2.00 MB/s, native folder"}, historyRow(done)[3:5])
	assert.Equal(t, "tree create 250 /s, format=UDSB", historyRow(trees)[4])
	assert.Equal(t, []string{"interrupted", "to continue: dmgbench resume runs/k", "19 of 24 done"}, historyRow(killed)[3:6])
	assert.Equal(t, result.Paused, historyRow(paused)[3])
	for _, width := range []int{40, 80, 200} {
		var out strings.Builder
		require.NoError(t, printTable(&out, [][]string{historyRow(done), historyRow(trees), historyRow(killed)}, width, 4))
		for line := range strings.Lines(out.String()) {
			assert.LessOrEqual(t, utf8.RuneCountInString(line), width+1, line)
		}
		assert.Contains(t, out.String(), "to continue: dmgbench resume runs/k")
	}
	var out strings.Builder
	require.NoError(t, printTable(&out, [][]string{historyRow(done), historyRow(trees)}, 0, 4))
	_, second, _ := strings.Cut(out.String(), "\n")
	assert.Less(t, len(second), 120, "a long name makes no other line long")
}
