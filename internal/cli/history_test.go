package cli

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dmgbench/internal/report/reporttest"
	"dmgbench/internal/result"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestHistoryOfManyRuns lists real results whose order on disk is not that of time.
func TestHistoryOfManyRuns(t *testing.T) {
	const runs = 60
	_, r := reporttest.Sample()
	dir := t.TempDir()
	for i := range runs {
		r.Run = fmt.Sprintf("r%03d", i)
		r.Sessions[0].Started = time.Date(2026, 1, 1, 0, (i*37)%runs, 0, 0, time.UTC)
		b, err := r.MarshalIndent()
		require.NoError(t, err)
		require.NoError(t, os.Mkdir(filepath.Join(dir, r.Run), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, r.Run, result.ResultFile), b, 0o644))
	}
	got, lost, err := pastRuns(dir, (&app{}).glanced)
	require.NoError(t, err)
	assert.Empty(t, lost)
	require.Len(t, got, runs)
	for i := range got[1:] {
		assert.True(t, got[i].Started.After(got[i+1].Started))
	}
	assert.NotNil(t, got[0].Headline)
	assert.Positive(t, got[0].Cases[result.Done])

	assert.Len(t, prunable(got, 10), runs-10)
	got[59].Baseline, got[58].Status, got[57].Pooled = true, result.Unfinished, 2
	assert.Equal(t, got[10:57], prunable(got, 10))
}

func TestHistoryIsHarmless(t *testing.T) {
	_, r := reporttest.Hostile()
	p := newPastRun(r)
	p.Dir, p.Title = "=cmd|' /C calc'!A0", "a\x1b[31m,\"b\"\nc"
	var out strings.Builder
	require.NoError(t, historyCSV(&out, []pastRun{p}))
	rows, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 2)
	assert.Equal(t, "'"+p.Dir, rows[1][0])
	assert.Contains(t, rows[1], p.Title)
	out.Reset()
	require.NoError(t, historyText(&out, []pastRun{p}, 80))
	assert.NotContains(t, out.String(), "\x1b")
	page, err := os.ReadFile("../../docs/metrics.md")
	require.NoError(t, err)
	for _, c := range historyColumns {
		assert.Contains(t, string(page), "**`"+c.name+"`**")
	}
}

func TestSince(t *testing.T) {
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"2026-01-31": time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC), "2026-01-31T10:00:00+02:00": time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC),
		"36h": now.Add(-36 * time.Hour), "30d": now.AddDate(0, 0, -30), "2w": now.AddDate(0, 0, -14),
	} {
		got, err := sinceWhen(text, now)
		require.NoError(t, err, text)
		assert.True(t, want.Equal(got), text)
	}
	for _, text := range []string{"", "-3d", "0d", "d", "tomorrow", "99999999999999w"} {
		_, err := sinceWhen(text, now)
		assert.Error(t, err, text)
	}
}

// TestReadBelow finds every run whatever the order in which they are read, and tells what it left.
func TestReadBelow(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir()) // a Mac's lies below a link
	require.NoError(t, err)
	var want []string
	for i := range 40 {
		path := filepath.Join(dir, fmt.Sprintf("%02d", i), "run")
		require.NoError(t, os.MkdirAll(path, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(path, result.JournalFile), nil, 0o644))
		want = append(want, path)
	}
	require.NoError(t, os.Symlink(want[3], filepath.Join(dir, "link")))
	linked := filepath.Join(t.TempDir(), "runs")
	require.NoError(t, os.Symlink(dir, linked))
	for _, at := range []string{dir, linked} {
		got, lost, err := readBelow(at, func(path string) (string, error) {
			if path == want[7] {
				return "", errors.New("torn")
			}
			return path, nil
		})
		require.NoError(t, err)
		assert.Equal(t, slices.Delete(slices.Clone(want), 7, 8), got)
		assert.Equal(t, []string{"07/run: torn", "link: a link to a run, and links are not followed"}, lost)
	}
	_, _, err = readBelow(filepath.Join(want[0], result.JournalFile), func(string) (int, error) { return 0, nil })
	assert.ErrorContains(t, err, "not a folder")
}
