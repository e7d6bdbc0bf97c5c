package attach

import (
	"crypto/rand"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"dmgbench/internal/image/container"
)

// TestRuntimeFolderOfOthers: no folder is used that another user has made, or can replace or write to.
func TestRuntimeFolderOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it makes folders of other users")
	}
	shared := func(mode os.FileMode) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) { require.NoError(t, os.Chmod(dir, mode)) }
	}
	mkdir := func(name string, mode os.FileMode, uid int) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
			require.NoError(t, os.Chmod(filepath.Join(dir, name), mode))
			require.NoError(t, os.Lchown(filepath.Join(dir, name), uid, uid))
		}
	}
	link := func(uid int) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(dir, "mine")))
			require.NoError(t, os.Lchown(filepath.Join(dir, "mine"), uid, uid))
		}
	}
	type step = func(t *testing.T, dir string)
	for name, test := range map[string]struct {
		steps []step
		ok    bool
	}{
		"new":                         {nil, true},
		"new, in a sticky folder":     {[]step{shared(0o777 | fs.ModeSticky)}, true},
		"in a folder of all":          {[]step{shared(0o777)}, false},
		"in a folder of a group":      {[]step{shared(0o775)}, false},
		"ours":                        {[]step{mkdir("mine", 0o700, 0)}, true},
		"ours, for all to write":      {[]step{mkdir("mine", 0o777, 0)}, false},
		"ours, for others to read":    {[]step{shared(0o777 | fs.ModeSticky), mkdir("mine", 0o755, 0)}, false},
		"of another user":             {[]step{mkdir("mine", 0o700, 1234)}, false},
		"below one of another user":   {[]step{mkdir("mine", 0o777, 1234), mkdir("mine/attach", 0o700, 0)}, false},
		"with a subfolder of another": {[]step{mkdir("mine", 0o700, 0), mkdir("mine/attach", 0o700, 1234)}, false},
		"by a link of ours":           {[]step{link(0)}, true},
		"by a link of another user":   {[]step{shared(0o777 | fs.ModeSticky), link(1234)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, step := range test.steps {
				step(t, dir)
			}
			path, err := makePrivate(filepath.Join(dir, "mine", "attach"))
			if !test.ok {
				require.ErrorIs(t, err, fs.ErrPermission)
				require.ErrorContains(t, err, "set XDG_RUNTIME_DIR or DMGBENCH_RUNTIME_DIR")
				return
			}
			require.NoError(t, err)
			fi, err := os.Lstat(path)
			require.NoError(t, err)
			assert.Equal(t, fs.ModeDir|0o700, fi.Mode())
		})
	}
}

// TestFoldersOfTheRuntimeFolder: all that attach makes there is refused where it belongs to another user.
func TestFoldersOfTheRuntimeFolder(t *testing.T) {
	privileged(t)
	for _, name := range []string{"attach", "volumes"} {
		path := filepath.Join(RuntimeDir(), name)
		require.NoError(t, os.RemoveAll(path))
		require.NoError(t, os.Mkdir(path, 0o700))
		require.NoError(t, os.Chown(path, 1234, 1234))
		_, err := attachRequest(t.Context(), Request{Image: newImage(t, container.UDSB, "ExFAT", 8<<20)})
		require.ErrorContains(t, err, path)
		require.ErrorIs(t, err, fs.ErrPermission)
		require.NoError(t, os.Remove(path))
	}
}

// TestMountedImagesAreForgotten: of many images, some are taken for new ones again.
func TestMountedImagesAreForgotten(t *testing.T) {
	t.Setenv("DMGBENCH_RUNTIME_DIR", t.TempDir())
	for range maxSeen + 5 {
		seen, err := mountedBefore(rand.Text())
		require.NoError(t, err)
		require.False(t, seen)
	}
	seen, err := mountedBefore("last")
	require.NoError(t, err)
	require.False(t, seen)
	list, err := os.ReadDir(filepath.Join(RuntimeDir(), "seen"))
	require.NoError(t, err)
	assert.Len(t, list, maxSeen)
}

// TestVolumesOfPrivateImages: the volume of an image that others may not read is not theirs either.
func TestVolumesOfPrivateImages(t *testing.T) {
	privileged(t)
	var at unix.Stat_t
	for _, test := range []struct {
		mode os.FileMode
		want uint32
	}{{0o600, 0o700}, {0o640, 0o700}, {0o644, 0o755}} {
		path := made(t, container.UDRW, "ExFAT", 16<<20)
		require.NoError(t, os.Chmod(path, test.mode))
		a := attach(t, path)
		put(t, filepath.Join(a.MountPoint, "file"), noise(10))
		require.NoError(t, unix.Stat(a.MountPoint, &at))
		assert.Equal(t, test.want, at.Mode&0o777, "%o", test.mode)
		require.NoError(t, unix.Stat(filepath.Join(a.MountPoint, "file"), &at))
		if a.Mode == ModeFUSE {
			assert.Equal(t, test.want&0o666, at.Mode&0o777, "%o", test.mode)
		}
		detach(t, a)
	}

	t.Setenv("DMGBENCH_RUNTIME_DIR", "") // the folder for file systems with modes of their own
	root, err := makeMountRoot(true)
	require.NoError(t, err)
	require.NoError(t, unix.Stat(root, &at))
	assert.Equal(t, uint32(0o700), at.Mode&0o777, root)
	_ = os.Remove(root)
}
