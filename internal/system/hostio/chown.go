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
	err := chownTree(path, uid, gid)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("giving %q to user %d: %w", path, uid, bare(err))
}

func chownTree(path string, uid, gid int) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	above, err := os.OpenRoot(filepath.Dir(abs))
	if err != nil {
		return err
	}
	defer above.Close()
	in, err := above.Stat(".")
	if err != nil {
		return err
	}
	if owner, ok := Owner(in); !ok || owner != uid {
		return nil
	}
	top, err := above.Lstat(filepath.Base(abs))
	if err != nil || top.Mode()&fs.ModeSymlink != 0 {
		return err // walking begins behind a link
	}
	return fs.WalkDir(above.FS(), filepath.Base(abs), func(name string, d fs.DirEntry, err error) error {
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
		owner, known := Owner(info)
		switch st := StatOf(info); {
		case !known:
			return errors.ErrUnsupported
		case st.Dev != StatOf(top).Dev && info.IsDir():
			return fs.SkipDir
		case st.Dev != StatOf(top).Dev, owner != 0, !info.IsDir() && (!info.Mode().IsRegular() || st.Links > 1):
			return nil
		}
		return above.Lchown(name, uid, gid)
	})
}

// Owner is the user whom a file or folder belongs to.
func Owner(fi fs.FileInfo) (uid int, ok bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}
