package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/result"
)

// victim is a folder of somebody else; unharmed checks that nothing in it was changed.
type victim struct {
	t    *testing.T
	dir  string
	had  []string
	text string
}

func newVictim(t *testing.T) *victim {
	t.Helper()
	v := &victim{t: t, dir: t.TempDir(), text: "precious"}
	require.NoError(t, os.WriteFile(filepath.Join(v.dir, "precious"), []byte(v.text), 0o644))
	require.NoError(t, os.Mkdir(filepath.Join(v.dir, "case01-round1.dmg"), 0o755))
	v.had = names(t, v.dir)
	return v
}

func (v *victim) unharmed() {
	v.t.Helper()
	assert.Equal(v.t, v.had, names(v.t, v.dir))
	text, err := os.ReadFile(filepath.Join(v.dir, "precious"))
	require.NoError(v.t, err)
	assert.Equal(v.t, v.text, string(text))
}

// foreignJournals: a journal that was made to name what is somebody else's is refused as a whole.
func foreignJournals(t *testing.T, bin string) {
	w := interrupted(t, bin)
	good := regexp.MustCompile(`,"crc32c":"[0-9a-f]{8}"`).ReplaceAllString(w.journal(), "") // or the checksums would tell
	v := newVictim(t)
	container := `"container":"case`
	require.Contains(t, good, container)
	for name, edit := range map[string]struct {
		old, new, says, hint string
	}{
		"container elsewhere": {container, `"container":"../../` + filepath.Base(v.dir) + `/case`, "not a plain file name", "start a new run"},
		"absolute container":  {container, `"container":"` + v.dir + `/case`, "not a plain file name", "start a new run"},
		"hidden container":    {container, `"container":".dmgbench-run`, "not a plain file name", "start a new run"},
		"run id elsewhere":    {`"run":{"id":"`, `"run":{"id":"../`, "not a plain file name", "start a new run"},
		"another run's":       {`"run":{"id":"2`, `"run":{"id":"3`, "marked for another run|place \"\" is not known any more", ""},
		"from the future":     {`{"schema":1,"seq":2,`, `{"schema":2,"seq":2,`, "schema 2, this program knows 1", "another version of dmgbench"},
		"unknown case":        {`"case_start":{"case":"`, `"case_start":{"case":"x`, "not one of the run's", ""},
	} {
		t.Run(name, func(t *testing.T) {
			bad := strings.Replace(good, edit.old, edit.new, 1)
			require.NotEqual(t, good, bad)
			file := filepath.Join(w.out, result.JournalFile)
			require.NoError(t, os.WriteFile(file, []byte(bad), 0o644))
			for _, args := range [][]string{{"resume", w.out}, {"resume", w.out, "--on", v.dir}, {"clean"}} {
				e := w.run(args...)
				if args[0] == "resume" {
					assert.Equal(t, 1, e.code, e.err)
					assert.Regexp(t, edit.says, e.err)
					assert.Contains(t, e.err, edit.hint)
				}
				v.unharmed()
			}
			assert.Equal(t, bad, w.journal(), "a refused journal was changed")
			require.NoError(t, os.WriteFile(file, []byte(good), 0o644))
		})
	}
	// The registry was told by the last clean what is gone; the place has to be named again at most.
	e := w.run("resume", w.out, "--on", w.place)
	require.Zero(t, e.code, e.err)
	w.complete()
}

// foreignPlaces: a registry that was made to name other folders deletes nothing but what is marked.
func foreignPlaces(t *testing.T, bin string) {
	w := interrupted(t, bin)
	entries := names(t, filepath.Join(w.home, "state", "runs"))
	require.Len(t, entries, 1)
	id := strings.TrimSuffix(entries[0], ".json")
	file := filepath.Join(w.home, "state", "runs", entries[0])
	good, err := os.ReadFile(file)
	require.NoError(t, err)
	for name, make := range map[string]func(own string) error{
		"no marker": func(own string) error {
			return os.CopyFS(own, os.DirFS(newVictim(t).dir))
		},
		"marker of another run": func(own string) error {
			if err := os.CopyFS(own, os.DirFS(newVictim(t).dir)); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(own, ".dmgbench-run"), []byte(`{"run":"20200101T000000Z-aaaaaa"}`), 0o600)
		},
		"marker is no marker": func(own string) error {
			if err := os.Mkdir(own, 0o755); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(own, ".dmgbench-run"), []byte("mine"), 0o600)
		},
		"a file":   func(own string) error { return os.WriteFile(own, []byte("precious"), 0o600) },
		"a link":   func(own string) error { return os.Symlink(newVictim(t).dir, own) },
		"a device": func(own string) error { return os.Symlink("/dev/zero", own) },
	} {
		t.Run(name, func(t *testing.T) {
			at := t.TempDir()
			own := filepath.Join(at, "dmgbench-"+id)
			require.NoError(t, make(own))
			before := names(t, at)
			inside, _ := os.ReadDir(own)
			var e map[string]any
			require.NoError(t, json.Unmarshal(good, &e))
			e["places"] = map[string]string{"": at}
			text, err := json.Marshal(e)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, text, 0o600))
			for _, args := range [][]string{{"clean"}, {"resume", w.out}} {
				got := w.run(args...)
				assert.Equal(t, 1, got.code, got.out+got.err)
				assert.Regexp(t, "reading its marker|belongs to run|not a folder", got.err)
			}
			assert.Equal(t, before, names(t, at))
			after, _ := os.ReadDir(own)
			assert.Len(t, after, len(inside))
		})
	}
	require.NoError(t, os.WriteFile(file, good, 0o600))
	e := w.run("resume", w.out)
	require.Zero(t, e.code, e.err)
	w.complete()
}
