package hostio_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	. "dmgbench/internal/system/hostio"
	"dmgbench/internal/system/hostio/hostiotest"
)

func TestDirCannotBeLeft(t *testing.T) {
	home := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(home, "in"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(home, "out"), []byte("x"), 0o600))
	require.NoError(t, os.Symlink("..", filepath.Join(home, "in", "up")))
	d, err := OpenDir(filepath.Join(home, "in"))
	require.NoError(t, err)
	defer d.Close()
	for name, do := range map[string]func() error{
		"remove":        func() error { return d.Remove("../out") },
		"remove by up":  func() error { return d.Remove("up/out") },
		"remove all":    func() error { return d.RemoveAll("up/out") },
		"unlink by up":  func() error { return d.Unlink("up/out") },
		"rmdir by up":   func() error { return d.Rmdir("up/in") },
		"unlink folder": func() error { return d.Unlink(".") },
		"names by up":   func() error { _, err := d.Names("up"); return err },
		"size by up":    func() error { _, err := d.Size("up/out"); return err },
		"link by up":    func() error { return d.Symlink("x", "up/made") },
		"chmod a link":  func() error { return d.Chmod("up", 0o700) },
		"chmod by up":   func() error { return d.Chmod("up/out", 0o700) },
		"rename out":    func() error { return d.Rename("up", "../up") },
		"read":          func() error { _, err := d.ReadFile("../out", 10); return err },
		"sub by link":   func() error { _, err := d.Sub("up"); return err },
		"sub":           func() error { _, err := d.Sub(".."); return err },
		"mkdir":         func() error { return d.Mkdir("../made") },
		"mkdirall":      func() error { return d.MkdirAll("up/made") },
		"list":          func() error { _, err := d.ReadDir(".."); return err },
		"atomic":        func() error { return d.WriteFileAtomic("../out", nil, 0o600) },
		"atomic by up":  func() error { return d.WriteFileAtomic("up/out", nil, 0o600) },
		"open absolute": func() error { _, err := d.Open(filepath.Join(home, "out"), OpenOptions{}); return err },
	} {
		assert.Error(t, do(), name)
	}
	got, err := os.ReadFile(filepath.Join(home, "out"))
	require.NoError(t, err)
	assert.Equal(t, "x", string(got))
	names, err := os.ReadDir(home)
	require.NoError(t, err)
	assert.Len(t, names, 2)
}

func TestCallsOnNamesDoWhatTheyAreNamedAfter(t *testing.T) {
	d := tempDir(t)
	require.NoError(t, d.MkdirAll("a/b"))
	require.NoError(t, os.WriteFile(filepath.Join(d.Path(), "a/file"), []byte("four"), 0o600))
	require.NoError(t, d.Symlink("file", "a/link"))
	names, err := d.Names("a")
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"b", "file", "link"}, names)
	for name, want := range map[string]int64{"a": 0, "a/file": 4, "a/link": 4} {
		size, err := d.Size(name)
		require.NoError(t, err)
		assert.Equal(t, want, size, "%s: a link is as long as its target's name", name)
	}
	require.NoError(t, d.Chmod("a/file", 0o750))
	fi, err := d.Lstat("a/file")
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o750), fi.Mode())
	require.ErrorIs(t, d.Rmdir("a/file"), syscall.ENOTDIR)
	require.Error(t, d.Unlink("a/b"))
	require.NoError(t, d.Rename("a/file", "a/b/file"))
	require.ErrorIs(t, d.Rmdir("a/b"), syscall.ENOTEMPTY)
	require.NoError(t, d.Unlink("a/b/file"))
	require.NoError(t, d.Rmdir("a/b"))
	require.NoError(t, d.Remove("a/link"))
	require.NoError(t, d.Remove("a"))
	names, err = d.Names(".")
	require.NoError(t, err)
	assert.Empty(t, names)
}

// An error names the whole path once, and has the cause that package os found.
func TestErrorsOfFoldersNameThePath(t *testing.T) {
	d := tempDir(t)
	require.NoError(t, os.WriteFile(filepath.Join(d.Path(), "file"), nil, 0o600))
	for name, c := range map[string]struct {
		do   func() error
		want error
	}{
		"missing": {func() error { _, err := OpenDir(filepath.Join(d.Path(), "missing")); return err }, syscall.ENOENT},
		"sub":     {func() error { _, err := d.Sub("sub"); return err }, syscall.ENOENT},
		"file":    {func() error { _, err := d.Sub("file"); return err }, ErrNotRegular},
		"remove":  {func() error { return d.Remove("remove") }, syscall.ENOENT},
		"rename":  {func() error { return d.Rename("rename", "other") }, syscall.ENOENT},
		"lstat":   {func() error { _, err := d.Lstat("lstat"); return err }, syscall.ENOENT},
		"list":    {func() error { _, err := d.ReadDir("list"); return err }, syscall.ENOENT},
		"a/b":     {func() error { _, err := d.Open("a/b", OpenOptions{}); return err }, syscall.ENOENT},
		"file/b":  {func() error { _, err := d.Open("file/b", OpenOptions{}); return err }, ErrNotRegular},
		"read":    {func() error { _, err := d.ReadFile("read", 10); return err }, syscall.ENOENT},
	} {
		err := c.do()
		require.ErrorIs(t, err, c.want, name)
		assert.Equal(t, 1, strings.Count(err.Error(), filepath.Join(d.Path(), name)), err.Error())
		assert.NotRegexp(t, `\b(open|rename|remove|lstat|stat|unlink|rename)at\b`, err.Error())
	}
	require.ErrorIs(t, d.MkdirAll("file/below"), os.ErrExist)
	require.ErrorIs(t, d.Mkdir("file"), os.ErrExist)
}

func TestMkdirAllAcceptsFoldersThatExist(t *testing.T) {
	d := tempDir(t)
	for range 2 {
		require.NoError(t, d.MkdirAll("a/b"))
	}
	require.NoError(t, d.MkdirAll("a/b/c/d"))
	info, err := d.Lstat("a/b/c/d")
	require.NoError(t, err)
	assert.True(t, info.IsDir())
}

func TestWriteFileAtomicWritesIntoSubfolders(t *testing.T) {
	d := tempDir(t)
	require.NoError(t, d.MkdirAll("a/b"))
	require.NoError(t, d.WriteFileAtomic("a/b/f", []byte("text"), 0o640))
	got, err := d.ReadFile("a/b/f", 10)
	require.NoError(t, err)
	assert.Equal(t, "text", string(got))
	list, err := d.ReadDir(".")
	require.NoError(t, err)
	assert.Len(t, list, 1, "nothing beside the folder")
}

// kinds is a hook that notes what it sees.
type kinds struct{ seen []Kind }

func (k *kinds) Before(op Op) error       { k.seen = append(k.seen, op.Kind); return nil }
func (*kinds) After(_ Op, _ int, _ error) {}

func TestHooksTellFilesThatAreMadeFromFilesThatExist(t *testing.T) {
	k := &kinds{}
	d := tempDir(t, WithHook(k))
	create(t, d, "f", CacheBuffered)
	create(t, d, "f", CacheBuffered)
	_, err := d.Open("missing", OpenOptions{})
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.Equal(t, []Kind{OpCreate, OpOpen, OpOpen}, k.seen)
}

func TestDirVerifyFindsReplacement(t *testing.T) {
	home := tempDir(t)
	require.NoError(t, home.MkdirAll("a/b/c"))
	sub, err := home.Sub("a")
	require.NoError(t, err)
	defer sub.Close()
	require.NoError(t, sub.Verify(home, "a"))
	require.NoError(t, home.Rename("a", "moved"))
	assert.ErrorIs(t, sub.Verify(home, "a"), ErrReplaced, "gone")
	require.NoError(t, os.Symlink("moved", filepath.Join(home.Path(), "a")))
	assert.ErrorIs(t, sub.Verify(home, "a"), ErrReplaced, "a link to the same folder")
}

func TestWriteFileAtomicSurvivesFaults(t *testing.T) {
	for _, kind := range []Kind{OpCreate, OpWrite, OpSync, OpRename} {
		t.Run(string(kind), func(t *testing.T) {
			faults := &hostiotest.Faults{}
			d := tempDir(t, WithHook(faults))
			require.NoError(t, d.WriteFileAtomic("f", []byte("old"), 0o600))
			faults.FailNth(kind, "", 1, syscall.EIO)
			require.ErrorIs(t, d.WriteFileAtomic("f", []byte("new"), 0o600), syscall.EIO)
			got, err := d.ReadFile("f", 10)
			require.NoError(t, err)
			assert.Equal(t, "old", string(got))
			list, err := d.ReadDir(".")
			require.NoError(t, err)
			assert.Len(t, list, 1, "no temporary file is left")
			require.NoError(t, d.WriteFileAtomic("f", []byte("new"), 0o600))
			got, err = d.ReadFile("f", 10)
			require.NoError(t, err)
			assert.Equal(t, "new", string(got))
		})
	}
}

func TestReadFileRefusesMoreThanTheLimit(t *testing.T) {
	d := tempDir(t)
	require.NoError(t, d.WriteFileAtomic("f", []byte(strings.Repeat("x", 11)), 0o600))
	_, err := d.ReadFile("f", 10)
	require.ErrorIs(t, err, ErrTooLarge)
	_, err = d.ReadFile("f", 11)
	require.NoError(t, err)
	require.NoError(t, d.WriteFileAtomic("empty", nil, 0o600))
	got, err := d.ReadFile("empty", 0)
	require.NoError(t, err)
	assert.Empty(t, got)

	faults := &hostiotest.Faults{}
	failing := tempDir(t, WithHook(faults))
	require.NoError(t, failing.WriteFileAtomic("f", []byte("text"), 0o600))
	faults.FailNth(OpRead, "", 1, syscall.EIO)
	_, err = failing.ReadFile("f", 10)
	require.ErrorIs(t, err, syscall.EIO)
}

func TestRecorderReplaysEveryPrefix(t *testing.T) {
	rec := &hostiotest.Recorder{}
	d := tempDir(t, WithHook(rec))
	require.NoError(t, d.MkdirAll("a/b"))
	sub, err := d.Sub("a")
	require.NoError(t, err)
	defer sub.Close()
	f := create(t, sub, "b/f", CacheDirect)
	data := pattern(10_000, 9)
	_, err = f.WriteAt(data, 100)
	require.NoError(t, err)
	_, err = f.Sync(SyncFull)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(9_000))
	_, err = f.ReadAt(data[:10], 0)
	require.NoError(t, err)
	require.NoError(t, sub.WriteFileAtomic("g", []byte("g"), 0o600))
	require.NoError(t, sub.Rename("g", "h"))
	require.NoError(t, sub.Remove("h"))
	require.NoError(t, sub.Sync())
	ops := rec.Ops()
	for i := range len(ops) + 1 {
		dst := tempDir(t)
		require.NoError(t, rec.Replay(0, i, dst, nil), "prefix %d", i)
	}
	dst := tempDir(t)
	require.NoError(t, rec.Replay(0, len(ops), dst, nil))
	want, err := d.ReadFile("a/b/f", 1<<20)
	require.NoError(t, err)
	got, err := dst.ReadFile("a/b/f", 1<<20)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	_, err = dst.Lstat("a/h")
	assert.ErrorIs(t, err, os.ErrNotExist)
	assert.Error(t, rec.Replay(0, len(ops)+1, dst, nil))
	for _, op := range ops {
		assert.NotEqual(t, OpRead, op.Kind)
	}

	// A crash may lose a file whose creation was not flushed, and all in it.
	lossy := tempDir(t)
	require.NoError(t, rec.Replay(0, len(ops)-5, lossy, func(_ int, op Op) bool { return op.Kind != OpCreate }))
	_, err = lossy.Lstat("a/b/f")
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// countedFaults counts the writes that the faults let through.
type countedFaults struct {
	*hostiotest.Faults
	writes int
}

func (c *countedFaults) After(op Op, n int, err error) {
	if op.Kind == OpWrite && n > 0 {
		c.writes++
	}
}

func TestFaultsFollowTheirScript(t *testing.T) {
	faults := &countedFaults{Faults: &hostiotest.Faults{}}
	d := tempDir(t, WithHook(faults))
	f := create(t, d, "f", CacheBuffered)

	faults.NoSpaceAfter(10_000)
	n, err := f.WriteAt(make([]byte, 16_000), 0)
	require.ErrorIs(t, err, syscall.ENOSPC)
	assert.Equal(t, 10_000, n, "a full disk takes what fits")
	assert.Contains(t, err.Error(), f.Path())
	faults.NoSpaceAfter(-1)

	faults.FailNth(OpRead, "f", 2, syscall.EIO)
	faults.FailNth(OpRead, "other", 1, syscall.EROFS)
	_, err = f.ReadAt(make([]byte, 10), 0)
	require.NoError(t, err)
	_, err = f.ReadAt(make([]byte, 10), 0)
	require.ErrorIs(t, err, syscall.EIO)
	_, err = f.ReadAt(make([]byte, 10), 0)
	require.NoError(t, err)

	faults.FailNth(OpWrite, "", 1, syscall.EINTR)
	faults.ShortTransfers(1000)
	faults.writes = 0
	n, err = f.WriteAt(make([]byte, 5500), 0)
	require.NoError(t, err, "an interrupted call is made again")
	assert.Equal(t, 5500, n)
	assert.Equal(t, 6, faults.writes, "the retry loop went round")

	faults.FailFrom(OpSync, "", 1, syscall.EIO)
	for range 3 {
		_, err = f.Sync(SyncFsync)
		require.ErrorIs(t, err, syscall.EIO)
	}
	_, err = f.Sync(SyncNone)
	require.NoError(t, err)
}

var (
	_ io.ReaderAt = (*File)(nil)
	_ io.WriterAt = (*File)(nil)
)
