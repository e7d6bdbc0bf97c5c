package runfolders

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"dmgbench/internal/analysis"
	"dmgbench/internal/report/reporttest"
	"dmgbench/internal/result"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The order of time is not that on disk.
func TestListIsNewestFirst(t *testing.T) {
	const runs = 16
	_, r := reporttest.Sample()
	dir := t.TempDir()
	for i := range runs {
		r.Run = fmt.Sprintf("r%03d", i)
		r.Sessions[0].Started = time.Date(2026, 1, 1, 0, (i*5)%runs, 0, 0, time.UTC)
		b, err := r.MarshalIndent()
		require.NoError(t, err)
		require.NoError(t, os.Mkdir(filepath.Join(dir, r.Run), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, r.Run, result.ResultFile), b, 0o644))
	}
	got, unread, err := (&Reader{}).List(dir, false)
	require.NoError(t, err)
	assert.Empty(t, unread)
	require.Len(t, got, runs)
	for i := range got[1:] {
		assert.True(t, got[i].Started.After(got[i+1].Started))
	}
	assert.NotNil(t, got[0].Headline)
	assert.Positive(t, got[0].Cases[result.Done])
}

// Every run is found in the order of the paths, whatever the order in which they are read.
func TestWalk(t *testing.T) {
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
		got, unread, err := walk(&Reader{}, at, func(_ *Reader, _, path string) (string, error) {
			if path == want[7] {
				return "", errors.New("torn")
			}
			return path, nil
		})
		require.NoError(t, err)
		assert.Equal(t, slices.Delete(slices.Clone(want), 7, 8), got)
		assert.Equal(t, []string{"07/run: torn", "link: a link to a run, and links are not followed"}, unread)
	}
	_, _, err = walk(&Reader{}, filepath.Join(want[0], result.JournalFile), func(*Reader, string, string) (int, error) { return 0, nil })
	assert.ErrorContains(t, err, "not a folder")
}

// Histories and ledgers judge several runs together by the plan in their folders.
func TestInFullReadsThePlan(t *testing.T) {
	dir := makeRun(t, filepath.Join(t.TempDir(), "run"), planText, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	p, r, err := (&Reader{}).inFull(map[string]string{"run": dir})(analysis.HistoryRun{Name: "run"})
	require.NoError(t, err)
	require.NotNil(t, p)
	assert.Equal(t, r.Plan.Digest, p.Digest())
	assert.NotEmpty(t, r.Cases[0].Steps)
	_, _, err = (&Reader{}).inFull(nil)(analysis.HistoryRun{Name: "run"})
	assert.Error(t, err)
}
