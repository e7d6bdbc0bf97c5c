package attach

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"dmgbench/internal/system/hostio"
)

// unknownUser owns, inside a user namespace, what belongs to users that it does
// not know, such as root outside.
const unknownUser = 65534

// makePrivate makes a folder of the runtime folder, and refuses one that another
// user could replace or change: where others can write to a folder of its path,
// the next one must belong to this user, without rights for others, and be
// protected by the sticky bit. Missing folders get the mode 0700. It returns the
// path without links.
func makePrivate(path string) (string, error) {
	at, shared := "/", false
	for _, name := range strings.Split(strings.Trim(filepath.Clean(path), "/"), "/") {
		next := filepath.Join(at, name)
		fi, err := os.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) {
			if err = os.Mkdir(next, 0o700); err == nil || errors.Is(err, fs.ErrExist) {
				fi, err = os.Lstat(next)
			}
		}
		if err != nil {
			return "", fmt.Errorf("making the runtime folder: %w", err)
		}
		uid, mode := hostio.StatOf(fi).UID, fi.Mode()
		own := uid == os.Geteuid()
		trusted := own || uid == 0 || uid == unknownUser
		if !trusted || shared && (!own || mode.Perm()&0o077 != 0 && mode&fs.ModeSymlink == 0) {
			return "", unsafeFolder(next)
		}
		if mode&fs.ModeSymlink != 0 {
			rest := strings.TrimPrefix(filepath.Clean(path), next)
			real, err := filepath.EvalSymlinks(next)
			if err != nil {
				return "", fmt.Errorf("making the runtime folder: %w", err)
			}
			return makePrivate(real + rest)
		}
		shared = mode.Perm()&0o022 != 0
		if shared && mode&fs.ModeSticky == 0 {
			return "", unsafeFolder(next)
		}
		at = next
	}
	return at, nil
}

// unsafeFolder is the error of a folder of the runtime folder's path that others
// could replace or change.
func unsafeFolder(path string) error {
	return fmt.Errorf("using the runtime folder: %q does not belong to this user alone: %w; set XDG_RUNTIME_DIR or "+
		"DMGBENCH_RUNTIME_DIR to a folder of your own with mode 0700", path, fs.ErrPermission)
}
