package hostio

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ChownTree lets a file, or a folder with all that is in it, belong to a user
// and a group: for a program that root runs on behalf of somebody, so that they
// can work with what it made. It leaves all as it is where the folder of path
// is not the user's, changes only what belongs to root, follows no link, and
// leaves out what has several names or is on another file system, as the user
// may have put those there. A missing path is not an error.
func ChownTree(path string, uid, gid int) error {
	fail := func(err error) error { return fmt.Errorf("giving %q to user %d: %w", path, uid, bare(err)) }
	abs, err := filepath.Abs(path)
	if err != nil {
		return fail(err)
	}
	above, err := os.OpenRoot(filepath.Dir(abs))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fail(err)
	}
	defer above.Close()
	in, err := above.Stat(".")
	if err != nil {
		return fail(err)
	}
	if owner, ok := Owner(in); !ok || owner != uid {
		return nil
	}
	top, err := above.Lstat(filepath.Base(abs))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fail(err)
	case top.Mode()&fs.ModeSymlink != 0:
		return nil // walking begins behind a link
	}
	var device uint64
	err = fs.WalkDir(above.FS(), filepath.Base(abs), func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := above.Lstat(name)
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return errors.ErrUnsupported
		}
		switch {
		case os.SameFile(info, top):
			device = uint64(st.Dev) //nolint:unconvert // a signed number on darwin
		case uint64(st.Dev) != device:
			if info.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if st.Uid != 0 || !info.IsDir() && (!info.Mode().IsRegular() || st.Nlink > 1) {
			return nil
		}
		return above.Lchown(name, uid, gid)
	})
	if err != nil {
		return fail(err)
	}
	return nil
}

// Owner is the user whom a file or folder belongs to.
func Owner(fi fs.FileInfo) (uid int, ok bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}
