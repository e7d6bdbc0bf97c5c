package result

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A folder that a run left which was killed before its first record is taken
// over; as soon as there is anything else in it, or a record, it is left as it is.
func TestCreateRunTakesOverOnlyWhatNeverBegan(t *testing.T) {
	put := func(name, text string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
		}
	}
	drop := func(name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, name))) }
	}
	for name, c := range map[string]struct {
		change []func(*testing.T, string)
		taken  bool
	}{
		"journal without a record": {nil, true},
		"a torn first record":      {[]func(*testing.T, string){put(JournalFile, `{"schema":1,"se`)}, true},
		"the plan already there":   {[]func(*testing.T, string){put(PlanFile, "schema = 1\n"), put(tempPrefix(PlanFile)+"X", "")}, true},
		"the marker alone":         {[]func(*testing.T, string){drop(JournalFile)}, true},
		"the marker half made":     {[]func(*testing.T, string){drop(JournalFile), put(markerFile, "")}, true},
		"a file of somebody":       {[]func(*testing.T, string){put("mine.txt", "x")}, false},
		"a result":                 {[]func(*testing.T, string){put(ResultFile, "{}")}, false},
		"no marker":                {[]func(*testing.T, string){drop(markerFile)}, false},
		"a plan without journal":   {[]func(*testing.T, string){put(PlanFile, "schema = 1\n"), drop(JournalFile)}, false},
		"a damaged journal":        {[]func(*testing.T, string){put(JournalFile, "x\ny\n")}, false},
		"a journal that is a link": {[]func(*testing.T, string){drop(JournalFile), func(t *testing.T, dir string) {
			require.NoError(t, os.Symlink(markerFile, filepath.Join(dir, JournalFile)))
		}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newRun(t)
			for _, change := range c.change {
				change(t, dir)
			}
			before := names(t, dir)
			d, err := CreateRun(dir, "r2")
			if !c.taken {
				require.ErrorIs(t, err, ErrNotEmpty)
				require.Equal(t, before, names(t, dir))
				return
			}
			require.NoError(t, err)
			require.NoError(t, d.Close())
			require.Equal(t, []string{markerFile, JournalFile}, names(t, dir))
			text, err := os.ReadFile(filepath.Join(dir, markerFile))
			require.NoError(t, err)
			require.Equal(t, "r2\n", string(text))
		})
	}
}

// One that is about to begin is left alone.
func TestCreateRunLeavesALockedJournalAlone(t *testing.T) {
	dir := t.TempDir()
	d, err := CreateRun(dir, "r1")
	require.NoError(t, err)
	defer d.Close()
	_, err = CreateRun(dir, "r2")
	require.ErrorIs(t, err, ErrBusy)
	require.Equal(t, []string{markerFile, JournalFile}, names(t, dir))
}
