package container

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"dmgbench/internal/hostio"
)

// bundleEntries are the names that tools put into a bundle.
var bundleEntries = []string{"Info.plist", "Info.bckup", "token", "lock", "bands", "mapped"}

// ErrPartlyRemoved is returned by Remove when the host failed in the middle of
// a bundle: what is left of it is no container any more.
var ErrPartlyRemoved = errors.New("container is partly removed")

// Remove deletes a container, even a half-made or damaged one. It refuses one
// that is open for writing ([ErrInUse]), a link, and a folder with anything in
// it that does not belong to a sparse bundle. A missing container is
// fs.ErrNotExist. Unless it wraps [ErrPartlyRemoved], an error means that
// nothing was deleted.
func Remove(dir *hostio.Dir, name string) error {
	fi, err := dir.Lstat(name)
	if err != nil {
		return err
	}
	if fi.IsDir() {
		return removeBundle(dir, name)
	}
	f, err := dir.Open(name, hostio.OpenOptions{Write: true})
	if err != nil {
		return err
	}
	defer f.Close()
	if err := inUse(f); err != nil {
		return err
	}
	return dir.Remove(name)
}

func inUse(f *hostio.File) error {
	err := f.TryLock()
	if errors.Is(err, hostio.ErrLocked) {
		return fmt.Errorf("removing %q: %w", f.Path(), ErrInUse)
	}
	return lockless(err)
}

func removeBundle(dir *hostio.Dir, name string) error {
	b, err := dir.Sub(name)
	if err != nil {
		return err
	}
	defer b.Close()
	if err := onlyBundle(b); err != nil {
		return fmt.Errorf("removing %q: %w", filepath.Join(dir.Path(), name), err)
	}
	for _, lock := range []string{"token", "lock"} {
		f, err := b.Open(lock, hostio.OpenOptions{Write: true})
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		defer f.Close()
		if err := inUse(f); err != nil {
			return err
		}
	}
	if err := dir.RemoveAll(name); err != nil {
		return fmt.Errorf("%w: %w", ErrPartlyRemoved, err)
	}
	return nil
}

// onlyBundle makes sure that a folder holds nothing that does not belong to a sparse bundle.
func onlyBundle(b *hostio.Dir) error {
	list, err := b.ReadDir(".")
	if err != nil {
		return err
	}
	for _, e := range list {
		if name := attributed(e.Name()); !slices.Contains(bundleEntries, name) && !isTemporary(name) {
			return fmt.Errorf("it holds %q, which is no part of a sparse bundle: %w", e.Name(), fs.ErrInvalid)
		}
	}
	return nil
}

// Removable says, before there is something to put in its place, whether Remove would refuse what has this name for what it
// is: a link, or a folder that holds other things than a sparse bundle. That it is in use is not looked at.
func Removable(dir *hostio.Dir, name string) error {
	fi, err := dir.Lstat(name)
	switch {
	case err != nil:
		return err
	case fi.Mode().IsRegular():
		return nil
	case !fi.IsDir():
		return hostio.ErrNotRegular
	}
	b, err := dir.Sub(name)
	if err != nil {
		return err
	}
	defer b.Close()
	return onlyBundle(b)
}

// attributed is the file that "._token" has the extended attributes of: macOS keeps them in such files (AppleDouble)
// where the file system has no place for them, as on exFAT, and many programs' files there have one. Other names are
// their own.
func attributed(name string) string { return strings.TrimPrefix(name, "._") }

// isTemporary knows what an interrupted atomic write of one of our files may
// leave.
func isTemporary(name string) bool {
	rest, ok := strings.CutPrefix(name, ".")
	base, _, tmp := strings.Cut(rest, ".tmp-")
	return ok && tmp && slices.Contains(bundleEntries, base)
}
