package container

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"dmgbench/internal/image/container/files"
	"dmgbench/internal/system/hostio"
)

// Open opens the container name inside dir. dir must stay open as long as the
// image: Flush checks there that the container was not replaced.
func Open(dir *hostio.Dir, name string, o OpenOptions) (Image, error) {
	c, err := probe(dir, name)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir.Path(), name)
	if c.unsupported != "" {
		return nil, c.openError(path)
	}
	if c.format != UDSB {
		return openFile(dir, name, c, o)
	}
	if !o.ReadOnly {
		if err := checkWritableBundle(path, c); err != nil {
			return nil, err
		}
	}
	return openBundle(dir, name, c, o)
}

// checkWritableBundle refuses bundles that are opened read-only alone: those
// with other backing stores, and backups of Time Machine.
func checkWritableBundle(path string, c contents) error {
	found := ""
	switch {
	case strings.HasSuffix(strings.ToLower(path), ".backupbundle"):
		found = "backup bundle"
	case c.info.version != 1:
		found = fmt.Sprintf("sparse bundle of backing-store version %d", c.info.version)
	default:
		return nil
	}
	return &UnsupportedError{Path: path, Found: found, Doing: "opening for writing"}
}

// checkWritableContents refuses contents of files that are opened read-only
// alone.
func checkWritableContents(path string, c contents) error {
	if c.format == formatUDIF {
		return &UnsupportedError{Path: path, Found: "UDIF image, which is read-only", Doing: "opening for writing"}
	}
	return nil
}

// openFile opens a container of one file.
func openFile(dir *hostio.Dir, name string, c contents, o OpenOptions) (Image, error) {
	if !o.ReadOnly {
		if err := checkWritableContents(filepath.Join(dir.Path(), name), c); err != nil {
			return nil, err
		}
	}
	f, err := openStore(dir, name, o)
	if err != nil {
		return nil, err
	}
	if c, err = probeLocked(f, c); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if c.encryption != "" {
		return openEncrypted(f, c.encryption, o)
	}
	return openContents(f, c, o)
}

// probeLocked probes a raw image again when its size differs under the lock:
// another writer may have resized it between probe and lock. Other formats
// record their size in the file.
func probeLocked(f *hostStore, before contents) (contents, error) {
	size, err := f.Size()
	if err != nil || before.format != UDRW || size == before.size {
		return before, err
	}
	c, err := probeFile(f.File)
	if err == nil && c.format != UDRW {
		err = fmt.Errorf("opening %q: %w", f.Path(), hostio.ErrReplaced)
	}
	return c, err
}

// openContents opens the format in f and takes f over.
func openContents(f store, c contents, o OpenOptions) (Image, error) {
	img, err := drivers[c.format].open(f, c, o)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return img, nil
}

// UsageOf returns the space that a container takes on the host, open or not. Of
// a sparse image that is open for writing elsewhere it counts the bands of the
// last flush. Of an encrypted one it counts none: that needs its table.
func UsageOf(dir *hostio.Dir, name string) (Usage, error) {
	c, err := probe(dir, name)
	switch {
	case err != nil:
		return Usage{}, err
	case c.unsupported != "":
		path := filepath.Join(dir.Path(), name)
		return Usage{}, &UnsupportedError{Path: path, Found: c.unsupported, Doing: "measuring"}
	case c.format == UDSB || c.encryption != "":
		return files.UsageOf(context.Background(), dir, name, c.info.bandSize, c.info.size)
	}
	img, err := openFile(dir, name, c, OpenOptions{ReadOnly: true})
	if err != nil {
		return Usage{}, err
	}
	u, err := img.Usage()
	return u, errors.Join(err, img.Close())
}
