package container

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"dmgbench/internal/system/hostio"
)

// bundleEntries are the names that tools put into a bundle.
var bundleEntries = []string{"Info.plist", "Info.bckup", "token", "lock", "bands", "mapped"}

// ErrPartlyRemoved is returned by Remove when the host failed after a part of a
// bundle was deleted: the rest is not a container.
var ErrPartlyRemoved = errors.New("container is partly removed")

// Remove deletes a container, even an incomplete or damaged one. It refuses one
// that is open for writing ([ErrInUse]), a link, and a folder with entries that
// do not belong to a sparse bundle. A missing container is fs.ErrNotExist.
// Unless the error wraps [ErrPartlyRemoved], the container is unchanged.
func Remove(dir *hostio.Dir, name string) error {
	fi, err := dir.Lstat(name)
	if err != nil {
		return err
	}
	locks := []string{name}
	if fi.IsDir() {
		if err := checkBundleEntries(dir, name); err != nil {
			return fmt.Errorf("removing %q: %w", filepath.Join(dir.Path(), name), err)
		}
		locks = []string{path.Join(name, "token"), path.Join(name, "lock")}
	}
	for _, lock := range locks {
		f, err := dir.Open(lock, hostio.OpenOptions{Write: true})
		if fi.IsDir() && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		defer f.Close()
		if err := lockError(f.TryLock(), f.Path(), "removing %q"); err != nil {
			return err
		}
	}
	if !fi.IsDir() {
		return dir.Remove(name)
	}
	if err := dir.RemoveAll(name); err != nil {
		return fmt.Errorf("%w: %w", ErrPartlyRemoved, err)
	}
	return nil
}

// checkBundleEntries returns an error for a folder with entries that do not
// belong to a sparse bundle.
func checkBundleEntries(dir *hostio.Dir, name string) error {
	list, err := dir.ReadDir(name)
	if err != nil {
		return err
	}
	for _, e := range list {
		// An interrupted atomic write of one of our files leaves ".name.tmp-…".
		isOurs := func(name string) bool {
			return appleDoubleOwner(e.Name()) == name || strings.HasPrefix(e.Name(), "."+name+".tmp-")
		}
		if !slices.ContainsFunc(bundleEntries, isOurs) {
			return fmt.Errorf("it contains %q, which does not belong to a sparse bundle: %w", e.Name(), fs.ErrInvalid)
		}
	}
	return nil
}

// CheckRemovable reports, before its replacement exists, whether Remove would
// refuse what has this name for its type: a link, or a folder with entries that
// do not belong to a sparse bundle. It does not check whether the container is
// in use.
func CheckRemovable(dir *hostio.Dir, name string) error {
	fi, err := dir.Lstat(name)
	switch {
	case err != nil:
		return err
	case fi.IsDir():
		return checkBundleEntries(dir, name)
	case !fi.Mode().IsRegular():
		return hostio.ErrNotRegular
	}
	return nil
}

// appleDoubleOwner returns the name of the file that the extended attributes in
// "._name" belong to; other names are returned unchanged. macOS writes such
// files (AppleDouble) on file systems without attributes, as exFAT.
func appleDoubleOwner(name string) string { return strings.TrimPrefix(name, "._") }
