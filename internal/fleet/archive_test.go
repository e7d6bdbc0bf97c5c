package fleet

import (
	"archive/tar"
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// runFolder makes a folder with the files of a run and others.
func runFolder(t testing.TB) string {
	dir := t.TempDir()
	for _, name := range append(slices.Collect(maps.Keys(runFiles)), "image.dmg", "passphrase") {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("content of "+name), 0o600))
	}
	return dir
}

func packed(t testing.TB, dir string) []byte {
	var b bytes.Buffer
	require.NoError(t, Pack(&b, dir))
	return b.Bytes()
}

// files are the names and contents of the files in a folder.
func files(t testing.TB, dir string) map[string]string {
	all := map[string]string{}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		require.True(t, e.Type().IsRegular(), e.Name())
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		all[e.Name()] = string(data)
	}
	return all
}

func TestPack(t *testing.T) {
	from := runFolder(t)
	to := filepath.Join(t.TempDir(), "run")
	archive := packed(t, from)
	assert.Equal(t, archive, packed(t, from), "the same folder gives the same archive")
	require.NoError(t, Unpack(bytes.NewReader(archive), to))
	want := files(t, from)
	delete(want, "image.dmg")
	delete(want, "passphrase")
	assert.Equal(t, want, files(t, to))

	require.ErrorIs(t, Unpack(bytes.NewReader(archive), to), os.ErrExist, "a folder is not overwritten")
	require.NoError(t, os.Remove(filepath.Join(from, "journal.jsonl")))
	to = filepath.Join(t.TempDir(), "run")
	require.NoError(t, Unpack(bytes.NewReader(packed(t, from)), to))
	assert.NotContains(t, files(t, to), "journal.jsonl")
}

func TestPackRefusesLinks(t *testing.T) {
	from := runFolder(t)
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	for name, replace := range map[string]func(string) error{
		"a link":   func(path string) error { return os.Symlink(secret, path) },
		"a folder": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		path := filepath.Join(from, "plan.toml")
		require.NoError(t, os.Remove(path))
		require.NoError(t, replace(path))
		var b bytes.Buffer
		require.ErrorContains(t, Pack(&b, from), `"plan.toml" is no regular file`, name)
	}
}

// entry is a file of a hostile archive.
type entry struct {
	header  tar.Header
	content string
}

func hostile(t testing.TB, entries ...entry) []byte {
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	require.NoError(t, err)
	w := tar.NewWriter(z)
	for _, e := range entries {
		if e.header.Size == 0 {
			e.header.Size = int64(len(e.content))
		}
		require.NoError(t, w.WriteHeader(&e.header))
		_, err = w.Write([]byte(e.content))
		require.NoError(t, err)
	}
	_ = w.Close() // of an entry that has less content than its header says
	require.NoError(t, z.Close())
	return b.Bytes()
}

func TestUnpackRefuses(t *testing.T) {
	plan := entry{tar.Header{Name: "plan.toml", Mode: 0o644}, "x"}
	for name, c := range map[string]struct {
		archive []byte
		want    string
	}{
		"another name":     {hostile(t, entry{tar.Header{Name: "run.sh", Mode: 0o755}, "x"}), `unexpected file "run.sh"`},
		"a path upward":    {hostile(t, entry{tar.Header{Name: "../plan.toml"}, "x"}), `unexpected file "../plan.toml"`},
		"an absolute path": {hostile(t, entry{tar.Header{Name: "/plan.toml"}, "x"}), `unexpected file "/plan.toml"`},
		"a folder":         {hostile(t, entry{header: tar.Header{Name: "plan.toml", Typeflag: tar.TypeDir}}), "unexpected file"},
		"a symbolic link":  {hostile(t, entry{header: tar.Header{Name: "plan.toml", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}}), "unexpected file"},
		"a hard link":      {hostile(t, entry{header: tar.Header{Name: "plan.toml", Typeflag: tar.TypeLink, Linkname: "journal.jsonl"}}), "unexpected file"},
		"a device":         {hostile(t, entry{header: tar.Header{Name: "plan.toml", Typeflag: tar.TypeChar}}), "unexpected file"},
		"a file twice":     {hostile(t, plan, plan), `unexpected file "plan.toml"`},
		"a large plan":     {hostile(t, entry{tar.Header{Name: "plan.toml", Size: 1<<20 + 1}, "x"}), `"plan.toml" has 1048577 bytes: want at most 1048576`},
		"a large marker":   {hostile(t, entry{tar.Header{Name: ".dmgbench-run", Size: 257}, "x"}), "want at most 256"},
		"a large journal":  {hostile(t, plan, entry{tar.Header{Name: "journal.jsonl", Size: MaxArchive + 1}, "x"}), "want at most"},
		"a journal of zeros": {hostile(t, plan, entry{tar.Header{Name: "journal.jsonl"}, string(make([]byte, 8<<20))}),
			"larger than 100 times the archive"},
		"less than it says": {hostile(t, entry{tar.Header{Name: "journal.jsonl", Size: 2 << 20}, "x"}), "unexpected EOF"},
		"cut off":           {packed(t, runFolder(t))[:40], "unexpected EOF"},
		"no archive":        {[]byte("not compressed at all"), "magic number mismatch"},
	} {
		top := t.TempDir()
		dir := filepath.Join(top, "run")
		err := Unpack(bytes.NewReader(c.archive), dir)
		if assert.ErrorContains(t, err, c.want, name) {
			assert.ErrorContains(t, err, "unpacking into", name)
		}
		entries, err := os.ReadDir(top)
		require.NoError(t, err)
		assert.Len(t, entries, 1, "%s wrote outside of its folder", name)
		for file, content := range files(t, dir) {
			assert.Contains(t, runFiles, file, name)
			assert.LessOrEqual(t, len(content), firstBytes+maxRatio*len(c.archive), name)
		}
	}
	bits := packed(t, runFolder(t))
	bits[len(bits)/2] ^= 1
	require.Error(t, Unpack(bytes.NewReader(bits), filepath.Join(t.TempDir(), "run")), "the content has a digest")
}

func FuzzUnpack(f *testing.F) {
	f.Add(packed(f, runFolder(f)))
	f.Add(hostile(f, entry{tar.Header{Name: "../plan.toml"}, "x"}))
	f.Add(hostile(f, entry{header: tar.Header{Name: "plan.toml", Typeflag: tar.TypeSymlink, Linkname: "/"}}))
	f.Add(hostile(f, entry{tar.Header{Name: "plan.toml"}, strings.Repeat("x", 1<<16)}))
	f.Fuzz(func(t *testing.T, archive []byte) {
		top := t.TempDir()
		dir := filepath.Join(top, "run")
		err := Unpack(bytes.NewReader(archive), dir)
		entries, readErr := os.ReadDir(top)
		require.NoError(t, readErr)
		require.Len(t, entries, 1)
		got := files(t, dir)
		for file := range got {
			require.Contains(t, runFiles, file)
		}
		if err != nil {
			return
		}
		second := filepath.Join(top, "second")
		require.NoError(t, Unpack(bytes.NewReader(packed(t, dir)), second))
		require.Equal(t, got, files(t, second))
	})
}
