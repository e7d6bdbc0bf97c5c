package files_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/container/files"
	"dmgbench/internal/system/hostio"
)

func place(t *testing.T) *hostio.Dir {
	d, err := hostio.OpenDir(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

func write(t *testing.T, d *hostio.Dir, name string, data []byte) {
	require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(d.Path(), name)), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(d.Path(), name), data, 0o640))
}

// bundle looks like an encrypted one: nothing in it is readable as anything.
func bundle(t *testing.T, d *hostio.Dir) {
	write(t, d, "b.sparsebundle/Info.plist", []byte("?"))
	write(t, d, "b.sparsebundle/token", []byte("encrcdsa"))
	write(t, d, "b.sparsebundle/bands/0", bytes.Repeat([]byte{1}, 1<<20))
	write(t, d, "b.sparsebundle/bands/a", bytes.Repeat([]byte{2}, 1<<19))
	write(t, d, "b.sparsebundle/bands/b", bytes.Repeat([]byte{3}, 1<<18))
	write(t, d, "b.sparsebundle/mapped/a", []byte("m"))
}

func TestBundle(t *testing.T) {
	d := place(t)
	bundle(t, d)
	u, err := files.UsageOf(t.Context(), d, "b.sparsebundle", 1<<20, 11<<20+1<<18)
	require.NoError(t, err)
	assert.Equal(t, 3, u.Bands)
	assert.Equal(t, 2, u.BandsFull, "the last band is full at its own length")
	assert.EqualValues(t, 1<<20+1<<19+1<<18+10, u.Apparent)
	assert.False(t, u.Sparse)
	require.NoError(t, files.Evict(t.Context(), d, "b.sparsebundle"))
	id, err := files.Identity(d, "b.sparsebundle")
	require.NoError(t, err)

	other := place(t)
	require.NoError(t, files.Copy(t.Context(), d, "b.sparsebundle", other, "c.sparsebundle"))
	again, err := files.UsageOf(t.Context(), other, "c.sparsebundle", 1<<20, 11<<20+1<<18)
	require.NoError(t, err)
	assert.Equal(t, u.Apparent, again.Apparent)
	data, err := os.ReadFile(filepath.Join(other.Path(), "c.sparsebundle/bands/a"))
	require.NoError(t, err)
	assert.Equal(t, bytes.Repeat([]byte{2}, 1<<19), data)
	twin, err := files.Identity(other, "c.sparsebundle")
	require.NoError(t, err)
	assert.NotEqual(t, id, twin)
	require.ErrorIs(t, files.Copy(t.Context(), d, "b.sparsebundle", other, "c.sparsebundle"), fs.ErrExist)

	now, err := files.Identity(d, "b.sparsebundle")
	require.NoError(t, err)
	assert.Equal(t, id, now)
	require.NoError(t, os.Remove(filepath.Join(d.Path(), "b.sparsebundle/token")))
	now, err = files.Identity(d, "b.sparsebundle")
	require.NoError(t, err)
	assert.NotEqual(t, id, now)
}

func TestSparseCopyStaysSparse(t *testing.T) {
	d := place(t)
	f, err := os.Create(filepath.Join(d.Path(), "x.dmg"))
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("in the middle"), 5<<20)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(9<<20+1))
	require.NoError(t, f.Close())
	require.NoError(t, files.Copy(t.Context(), d, "x.dmg", d, "y.dmg"))
	a, err := os.ReadFile(filepath.Join(d.Path(), "x.dmg"))
	require.NoError(t, err)
	b, err := os.ReadFile(filepath.Join(d.Path(), "y.dmg"))
	require.NoError(t, err)
	assert.True(t, bytes.Equal(a, b))
	u, err := files.UsageOf(t.Context(), d, "y.dmg", 0, 0)
	require.NoError(t, err)
	assert.True(t, u.Sparse)
	assert.EqualValues(t, 9<<20+1, u.Apparent)
}

func TestRefused(t *testing.T) {
	d := place(t)
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(d.Path(), "link")))
	_, err := files.Identity(d, "link")
	require.ErrorIs(t, err, hostio.ErrNotRegular)
	_, err = files.Identity(d, "missing")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, files.Copy(t.Context(), d, "link", d, "y"), hostio.ErrNotRegular)
	bundle(t, d)
	require.NoError(t, os.Symlink("0", filepath.Join(d.Path(), "b.sparsebundle/bands/c")))
	require.ErrorIs(t, files.Copy(t.Context(), d, "b.sparsebundle", d, "c"), hostio.ErrNotRegular)
	assert.NoDirExists(t, filepath.Join(d.Path(), "c"), "a copy that failed is gone")
	require.NoError(t, os.MkdirAll(filepath.Join(d.Path(), "folder/in"), 0o755))
	require.NoError(t, os.Symlink("in", filepath.Join(d.Path(), "folder/link")))
	require.NoError(t, files.Evict(t.Context(), d, "folder"), "a native folder may have links")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = files.UsageOf(ctx, d, "b.sparsebundle", 0, 0)
	require.ErrorIs(t, err, context.Canceled)
}

func TestXattr(t *testing.T) {
	d := place(t)
	write(t, d, "x.dmg", []byte("x"))
	if _, err := files.Xattr(d, "x.dmg", "set", "user.test", "value"); err != nil {
		t.Skipf("no extended attributes here: %v", err)
	}
	all, err := files.Xattr(d, "x.dmg", "list", "", "")
	require.NoError(t, err)
	assert.Equal(t, "value", all["user.test"])
	_, err = files.Xattr(d, "x.dmg", "remove", "user.test", "")
	require.NoError(t, err)
	_, err = files.Xattr(d, "x.dmg", "set", "com.example.mark", "1") // a name of a Mac
	require.NoError(t, err)
	_, err = files.Xattr(d, "x.dmg", "remove", "com.example.mark", "")
	require.NoError(t, err)
	_, err = files.Xattr(d, "x.dmg", "polish", "user.test", "")
	require.True(t, errors.Is(err, errors.ErrUnsupported))
}
