package container

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"dmgbench/internal/image/container/files"
	"dmgbench/internal/system/hostio"
)

// Open opens the container name inside dir. dir must stay open as long as the
// image: Flush checks there that the container was not replaced.
func Open(dir *hostio.Dir, name string, o OpenOptions) (Image, error) {
	c, err := probe(dir, name)
	if err == nil {
		err = c.checkSupported("opening")
	}
	if err == nil && !o.ReadOnly {
		err = c.checkWritable()
	}
	if err != nil {
		return nil, err
	}
	if c.format == UDSB {
		return openBundle(dir, name, c, o)
	}
	return openFile(dir, name, c, o)
}

// checkWritable refuses contents that are opened read-only alone: UDIF images,
// bundles with other backing stores, and backups of Time Machine.
func (c *probeResult) checkWritable() error {
	found := ""
	switch {
	case c.format == UDIF:
		found = "UDIF image, which is read-only"
	case c.format != UDSB:
		return nil
	case strings.HasSuffix(strings.ToLower(c.path), ".backupbundle"):
		found = "backup bundle"
	case c.info.Version != 1:
		found = fmt.Sprintf("sparse bundle of backing-store version %d", c.info.Version)
	default:
		return nil
	}
	return &UnsupportedError{Path: c.path, Found: found, Doing: "opening for writing"}
}

// openFile opens a container of one file. A raw image is probed again when its
// size differs under the lock: another writer may have resized it between probe
// and lock. Other formats record their size in the file.
func openFile(dir *hostio.Dir, name string, c probeResult, o OpenOptions) (Image, error) {
	f, err := openStore(dir, name, o)
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	if err == nil && c.format == UDRW && size != c.size {
		if c, err = probeFile(f.File); err == nil && c.format != UDRW {
			err = fmt.Errorf("opening %q: %w", f.Path(), hostio.ErrReplaced)
		}
	}
	var s store = f
	if err == nil && c.encryption != "" {
		s, c, err = decryptStore(f, c, o)
		o.Passphrase, o.Keys = nil, nil
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return openContents(s, c, o)
}

// openContents opens the format in f and takes f over.
func openContents(f store, c probeResult, o OpenOptions) (img Image, err error) {
	if d := drivers[c.format]; d.chunks != nil {
		img, err = openChunked(f, c.format, o)
	} else {
		img, err = d.open(f, c, o)
	}
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
	if err == nil {
		err = c.checkSupported("measuring")
	}
	if err != nil {
		return Usage{}, err
	}
	if c.format == UDSB || c.encryption != "" {
		return files.UsageOf(context.Background(), dir, name, c.info.BandSize, c.info.Size)
	}
	img, err := openFile(dir, name, c, OpenOptions{ReadOnly: true})
	if err != nil {
		return Usage{}, err
	}
	u, err := img.Usage()
	return u, errors.Join(err, img.Close())
}
