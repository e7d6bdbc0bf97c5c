package container

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/system/hostio"
)

// A bundle on exFAT, as macOS leaves it there: each file with attributes has a "._" beside it.
func TestBundleWithFilesOfAttributes(t *testing.T) {
	d := tempDir(t)
	put := func(name string) {
		require.NoError(t, os.WriteFile(filepath.Join(d.Path(), "b", name), []byte{0, 5, 0x16, 7}, 0o644))
	}
	require.NoError(t, Create(d, "b", Spec{Format: UDSB, Size: 4 << 20, BandSize: 1 << 20}))
	for _, name := range []string{"._token", "._Info.plist", "._Info.bckup", "._bands", "bands/._0", "bands/._3"} {
		put(name)
	}
	found, err := Verify(d, "b", OpenOptions{})
	require.NoError(t, err)
	assert.Empty(t, found)
	img, err := Open(d, "b", OpenOptions{})
	require.NoError(t, err)
	_, err = img.WriteAt([]byte("x"), 0)
	require.NoError(t, err)
	u, err := img.Usage()
	require.NoError(t, err)
	assert.Equal(t, 1, u.Bands)
	require.NoError(t, img.Close())

	for _, name := range []string{"._notes", "bands/._x", "._._token"} {
		put(name)
		found, err = Verify(d, "b", OpenOptions{})
		require.NoError(t, err)
		require.Len(t, found, 1, name)
		if filepath.Dir(name) == "." {
			require.ErrorIs(t, Remove(d, "b"), fs.ErrInvalid, name)
		}
		require.NoError(t, os.Remove(filepath.Join(d.Path(), "b", name)))
	}
	require.NoError(t, Remove(d, "b"))
	_, err = d.Lstat("b")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// Network shares on a Mac know no locks: containers on them are opened and removed all the same.
func TestWithoutLocks(t *testing.T) {
	for answer, want := range map[error]error{nil: nil, hostio.ErrUnsupported: nil, fmt.Errorf("locking: %w", hostio.ErrUnsupported): nil, syscall.EIO: syscall.EIO} {
		assert.ErrorIs(t, lockError(answer, "x", "opening %q"), want)
	}
}
