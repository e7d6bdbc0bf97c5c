package container

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"dmgbench/internal/hostio"
)

// Open opens the container name inside dir. dir must stay open as long as the image: Flush checks
// there that the container was not replaced.
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

// checkWritableBundle refuses bundles that are opened read-only alone: those with other backing
// stores, and backups of Time Machine.
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

// checkWritableContents refuses contents of files that are opened read-only alone.
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

// probeLocked probes a raw image again when its size differs under the lock: another writer may
// have resized it between probe and lock. Other formats record their size in the file.
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
func openContents(f store, c contents, o OpenOptions) (img Image, err error) {
	switch c.format {
	case UDRW:
		return openRaw(f, c.size, o)
	case formatUDIF:
		img, err = openUDIF(f)
	default:
		img, err = openChunked(f, c.format, o)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return img, nil
}
