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
	"strings"

	"dmgbench/internal/hostio"
	"dmgbench/internal/runner"
)

// mountsFolder has a folder of mount points for each engine at work, and beside
// it a file that is locked as long as the engine lives.
const (
	mountsFolder = "mounts"
	lockSuffix   = ".lock"
)

// mountFolder makes a new folder for mount points. free removes it, unless
// something is left in it, and lets go of the lock.
func mountFolder(state string) (path string, free func() error, err error) {
	root, err := openState(state, mountsFolder)
	if err != nil {
		return "", nil, err
	}
	name := make([]byte, 8)
	_, _ = rand.Read(name) // never fails
	id := hex.EncodeToString(name)
	lock, err := root.Open(id+lockSuffix, hostio.OpenOptions{Write: true, Create: true, Exclusive: true})
	if err == nil {
		if err = lock.TryLock(); errors.Is(err, hostio.ErrUnsupported) {
			err = nil
		}
		if err == nil {
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
		err := emptyMounts(root, id)
		return errors.Join(err, lock.Close(), root.Close())
	}, nil
}

// openState opens a folder in the state folder, and makes it for this user alone.
func openState(state, name string) (*hostio.Dir, error) {
	dir := filepath.Join(state, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making a folder in the state folder: %w", err)
	}
	return hostio.OpenDir(dir)
}

// emptyMounts removes the mount points, which are empty, and the folder of them
// with its lock. What is not empty stays: it may be somebody's volume.
func emptyMounts(root *hostio.Dir, id string) error {
	list, err := root.ReadDir(id)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing mount points: %w", err)
	}
	for _, f := range list {
		if err := root.Remove(filepath.Join(id, f.Name())); err != nil {
			return fmt.Errorf("removing mount points: %w", err)
		}
	}
	for _, name := range []string{id, id + lockSuffix} {
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing mount points: %w", err)
		}
	}
	return nil
}

// cleanMounts detaches what engines that were killed left mounted, and removes their mount points.
func (a *app) cleanMounts(ctx context.Context, state string, w io.Writer) error {
	if _, err := os.Stat(filepath.Join(state, mountsFolder)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	root, err := openState(state, mountsFolder)
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
		id, isLock := strings.CutSuffix(f.Name(), lockSuffix)
		if isLock {
			errs = append(errs, a.cleanMount(ctx, root, id, w))
		}
	}
	return errors.Join(errs...)
}

func (a *app) cleanMount(ctx context.Context, root *hostio.Dir, id string, w io.Writer) error {
	lock, err := root.Open(id+lockSuffix, hostio.OpenOptions{Write: true})
	if errors.Is(err, fs.ErrNotExist) { // its engine has ended meanwhile
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
	names, err := a.release(ctx, filepath.Join(root.Path(), id))
	for _, name := range names {
		fmt.Fprintf(w, "detached %s\n", name)
	}
	if err != nil {
		return err
	}
	if err := emptyMounts(root, id); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "removed the mount points of an engine that was killed\n")
	return err
}
