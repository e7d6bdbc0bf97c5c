package container

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"

	"dmgbench/internal/blockdev"
	"dmgbench/internal/hostio"
)

// Open opens the container name inside dir. dir must stay open as long as the
// image: it is where Flush looks whether the container is still there.
func Open(dir *hostio.Dir, name string, o OpenOptions) (Image, error) {
	k, err := probe(dir, name)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir.Path(), name)
	if k.refused != "" {
		return nil, &UnsupportedError{Path: path, Found: k.refused, Doing: "opening", Foreign: k.foreign}
	}
	if k.format != UDSB {
		return openFile(dir, name, k, o)
	}
	if !o.ReadOnly {
		if err := unchangeableBundle(path, k); err != nil {
			return nil, err
		}
	}
	return openBundle(dir, name, k, o)
}

// unchangeableBundle is the error for bundles that are only read: other backing stores, and somebody's Time Machine.
func unchangeableBundle(path string, k kind) error {
	found := ""
	switch {
	case strings.HasSuffix(strings.ToLower(path), ".backupbundle"):
		found = "backup bundle"
	case k.info.version != 1:
		found = fmt.Sprintf("sparse bundle of backing-store version %d", k.info.version)
	default:
		return nil
	}
	return &UnsupportedError{Path: path, Found: found, Doing: "opening for writing"}
}

// openFile opens a container of one file.
func openFile(dir *hostio.Dir, name string, k kind, o OpenOptions) (Image, error) {
	if !o.ReadOnly {
		if err := unchangeable(filepath.Join(dir.Path(), name), k); err != nil {
			return nil, err
		}
	}
	f, err := openStore(dir, name, o)
	if err != nil {
		return nil, err
	}
	if k, err = again(f, k); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if k.encrypted != "" {
		return openEncrypted(f, k, o)
	}
	return openContent(f, k, o)
}

// again looks at a raw image under the lock, if there is one: who was there between the first look and the lock may have
// changed its size. The others say in the file what they are.
func again(f *hostStore, before kind) (kind, error) {
	size, err := f.Size()
	if err != nil || before.format != UDRW || size == before.size {
		return before, err
	}
	k, err := probeFile(f.File)
	if err == nil && k.format != UDRW {
		err = fmt.Errorf("opening %q: %w", f.Path(), hostio.ErrReplaced)
	}
	return k, err
}

// unchangeable is the error for contents of files that are only read.
func unchangeable(path string, k kind) error {
	if k.format == udifFamily {
		return &UnsupportedError{Path: path, Found: "UDIF image, which is read-only", Doing: "opening for writing"}
	}
	return nil
}

// openContent opens the layout in f and takes f over.
func openContent(f store, k kind, o OpenOptions) (Image, error) {
	switch k.format {
	case UDRW:
		return &raw{path: f.Path(), opts: o, f: f, size: k.size}, nil
	case udifFamily:
		img, err := openUDIF(f)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return img, nil
	}
	img, err := openMapped(f, k.format, o)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return img, nil
}

// openMapped opens the layout in f, which stays the caller's after an error.
func openMapped(f store, format string, o OpenOptions) (*mapped, error) {
	open := openUDSP
	if format == ASIF {
		open = openASIF
	}
	img, err := open(f, o)
	if what, ok := errors.AsType[*unknownError](err); ok {
		return nil, &UnsupportedError{Path: f.Path(), Found: what.what, Doing: "opening"}
	}
	return img, err
}

// lock takes the writer's lock and gives it our name.
func lock(f *hostio.File) error {
	err := f.TryLock()
	if errors.Is(err, hostio.ErrLocked) {
		return fmt.Errorf("opening %q for writing: %w", f.Path(), ErrInUse)
	}
	return lockless(err)
}

// lockless lets an attempt to lock pass where the host has no such locks: nobody else has taken one either.
func lockless(err error) error {
	if errors.Is(err, hostio.ErrUnsupported) {
		return nil
	}
	return err
}

// hold keeps writers away from a file that is read. Where the host has no such
// locks, nobody has taken one either.
func hold(f *hostio.File) error {
	if err := f.TryLockShared(); errors.Is(err, hostio.ErrLocked) {
		return fmt.Errorf("holding %q for reading: %w", f.Path(), ErrInUse)
	}
	return nil
}

// gate lets calls through while an image is open: many transfers at once,
// alone what changes the shape (Resize, Close). It is held shared, never for
// others' data.
type gate struct {
	sync.RWMutex
	closed bool
}

// clip limits a read to the device; the second result says that it was cut.
func clip(p []byte, off, size int64) ([]byte, bool, error) {
	if off < 0 {
		return nil, false, blockdev.CheckRange(off, 0, size)
	}
	if off >= size {
		return nil, len(p) > 0, nil
	}
	if int64(len(p)) > size-off {
		return p[:size-off], true, nil
	}
	return p, false, nil
}

// eof gives a cut read its error.
func eof(cut bool, n int, err error) (int, error) {
	if err == nil && cut {
		err = io.EOF
	}
	return n, err
}
