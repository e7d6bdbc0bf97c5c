package cli

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/hostio"
	"dmgbench/internal/runner"
)

const (
	// mountsFolder, in the state folder, has a folder of mount points for each engine, and next to it a file that
	// the engine's process keeps locked.
	mountsFolder = "mounts"
	lockSuffix   = ".lock"
)

// openStateFolder opens a folder in the state folder. It is made if necessary, for this user alone.
func openStateFolder(state, name string) (*hostio.Dir, error) {
	dir := filepath.Join(state, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making a folder in the state folder: %w", err)
	}
	return hostio.OpenDir(dir)
}

// makeMountFolder makes a locked folder for mount points. remove deletes it, unless a file is left in it, and
// releases the lock.
func makeMountFolder(state string) (path string, remove func() error, err error) {
	root, err := openStateFolder(state, mountsFolder)
	if err != nil {
		return "", nil, err
	}
	name := make([]byte, 8)
	_, _ = rand.Read(name) // never fails
	id := hex.EncodeToString(name)
	lock, err := root.Open(id+lockSuffix, hostio.OpenOptions{Write: true, Create: true, Exclusive: true})
	if err == nil {
		if err = lock.TryLock(); err == nil || errors.Is(err, hostio.ErrUnsupported) {
			err = os.Mkdir(filepath.Join(root.Path(), id), 0o700)
		}
		if err != nil {
			err = errors.Join(err, lock.Close(), root.Remove(id+lockSuffix))
		}
	}
	if err != nil {
		return "", nil, fmt.Errorf("making a folder for mount points: %w", errors.Join(err, root.Close()))
	}
	return filepath.Join(root.Path(), id), func() error {
		return errors.Join(removeMountFolder(root, id), lock.Close(), root.Close())
	}, nil
}

// removeMountFolder removes the empty mount points of a folder, the folder and its lock. It keeps what is not
// empty: that may be a mounted volume.
func removeMountFolder(root *hostio.Dir, id string) error {
	list, err := root.ReadDir(id)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing mount points: %w", err)
	}
	var names []string
	for _, f := range list {
		names = append(names, filepath.Join(id, f.Name()))
	}
	for _, name := range append(names, id, id+lockSuffix) {
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing mount points: %w", err)
		}
	}
	return nil
}

// cleanMountFolders detaches the images of killed engines and removes their mount points.
func (a *app) cleanMountFolders(ctx context.Context, state string, w io.Writer) error {
	if !exists(filepath.Join(state, mountsFolder)) {
		return nil
	}
	root, err := openStateFolder(state, mountsFolder)
	if err != nil {
		return err
	}
	defer root.Close()
	list, err := root.ReadDir(".")
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range list {
		if id, isLock := strings.CutSuffix(f.Name(), lockSuffix); isLock {
			errs = append(errs, a.cleanMountFolder(ctx, root, id, w))
		}
	}
	return errors.Join(errs...)
}

// cleanMountFolder leaves folders alone whose lock is held.
func (a *app) cleanMountFolder(ctx context.Context, root *hostio.Dir, id string, w io.Writer) error {
	lock, err := root.Open(id+lockSuffix, hostio.OpenOptions{Write: true})
	if errors.Is(err, fs.ErrNotExist) { // its engine has just ended
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	err = runner.RetryWhileLocked(ctx, a.clock, hostio.ErrLocked, nil, lock.TryLock)
	switch {
	case errors.Is(err, hostio.ErrLocked):
		return nil
	case err != nil && !errors.Is(err, hostio.ErrUnsupported):
		return err
	}
	names, err := a.detachBelow(ctx, filepath.Join(root.Path(), id))
	for _, name := range names {
		fmt.Fprintf(w, "detached %s\n", name)
	}
	if err != nil {
		return err
	}
	if err := removeMountFolder(root, id); err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, "removed the mount points of an engine that was killed")
	return err
}

// sudoCaller is the user who called sudo, if this process is root by sudo.
func (a *app) sudoCaller() (uid, gid int, ok bool) {
	if os.Geteuid() != 0 {
		return 0, 0, false
	}
	u, err1 := strconv.ParseUint(a.env["SUDO_UID"], 10, 31)
	g, err2 := strconv.ParseUint(a.env["SUDO_GID"], 10, 31)
	return int(u), int(g), err1 == nil && err2 == nil && u != 0
}

// chownAtExit gives a path that the command is about to make to the user who called sudo, with the folders that are
// made above it. [hostio.ChownTree] leaves files in folders of others alone. Without this, later commands without
// sudo could neither read nor delete the files.
func (a *app) chownAtExit(path string) {
	uid, gid, ok := a.sudoCaller()
	if !ok || path == "" {
		return
	}
	top, err := filepath.Abs(path)
	if err != nil {
		return
	}
	for above := filepath.Dir(top); above != top; above = filepath.Dir(top) {
		if _, err := os.Stat(above); err == nil {
			break
		}
		top = above
	}
	if slices.Contains(a.chowned, top) {
		return
	}
	a.chowned = append(a.chowned, top)
	a.atExit = append(a.atExit, func() error { return hostio.ChownTree(top, uid, gid) })
}
