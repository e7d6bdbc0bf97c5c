package container

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"dmgbench/internal/image"
	"dmgbench/internal/image/container/crypt"
	"dmgbench/internal/image/container/files"
	"dmgbench/internal/system/hostio"
)

// driver is how the package makes, identifies and opens images of one format.
type driver struct {
	// create makes an image, nil if the format is only opened
	create func(dir *hostio.Dir, name string, s Spec) error
	// magic: first bytes of a file of the format, "" if [ends.identify]
	// identifies it otherwise
	magic string
	// open opens contents of the format in f, nil for folders and for formats
	// with chunks; f stays the caller's after an error
	open func(f store, c probeResult, o OpenOptions) (Image, error)
	// chunks reads the map of a format with chunks, nil for others
	chunks func(s syncStore, readOnly bool) (chunkMap, error)
}

// drivers is the registry, by format. The file of each format adds its own, so
// that a new format is a row in package image and one file here.
var drivers = map[string]driver{}

// Create makes a container and flushes it. name must not exist; it is used as
// given, [Extension] is the usual ending. UDRW is allocated in full on the
// host; a sparse bundle has no bands at first. When Create fails it deletes
// what it made.
func Create(dir *hostio.Dir, name string, s Spec) error {
	path := filepath.Join(dir.Path(), name)
	create := drivers[s.Format].create
	if create == nil {
		return &UnsupportedError{Path: path, Found: fmt.Sprintf("format %.20q", s.Format), Doing: "creating"}
	}
	err := image.Spec{Format: s.Format, Size: s.Size, BandSize: s.BandSize}.Validate()
	if err == nil {
		err = s.Encryption.check(s.Format, s.Size)
	}
	if err != nil {
		return fmt.Errorf("creating %q: %w", path, err)
	}
	f, _ := image.FormatNamed(s.Format)
	s.BandSize = f.BandSize(s.BandSize)
	return create(dir, name, s)
}

// createFile makes a container of one file, encrypted if e requires that. write
// fills it with a content of length bytes, all of them unless the content is
// sparse: other blocks of an encrypted file are damage.
func (e Encryption) createFile(dir *hostio.Dir, name string, length int64, write func(f store) error) error {
	o := hostio.OpenOptions{Write: true, Create: true, Exclusive: true, Cache: hostio.CacheDirect}
	var h *crypt.Header
	var c *crypt.Cipher
	if !e.none() {
		var err error
		if h, c, err = e.newHeader(length); err != nil {
			return err
		}
		defer c.Wipe()
		o.Perm = encryptedPerm
	}
	f, err := dir.Open(name, o)
	if err != nil {
		return err
	}
	s := store(&hostStore{File: f})
	if h != nil {
		content := newEncryptedStore(s, h, newEncrypter(c))
		content.size.Store(0) // write lengthens it
		s = content
		_, err = f.WriteAt(h.Marshal(), 0)
	}
	if err == nil {
		err = write(s)
	}
	if err == nil {
		_, err = s.Sync(hostio.SyncFull)
	}
	if err = cmp.Or(err, f.Close()); err == nil {
		err = dir.Sync()
	}
	if err != nil {
		return errors.Join(err, dir.Remove(name))
	}
	return nil
}

// fill gives n bytes from off space on the host that reads as zeros: by
// preallocation, or on a host without by writing.
func fill(f store, off, n int64) error {
	err := f.Allocate(off, n)
	if !errors.Is(err, hostio.ErrUnsupported) {
		return err
	}
	const call = 8 << 20
	zero, err := hostio.AlignedBuffer(call)
	if err != nil {
		return err
	}
	defer zero.Free()
	return inParallel(4, ceil(n, call), func(i int64) error {
		at := i * call
		_, err := f.WriteAt(zero.Bytes()[:min(call, n-at)], off+at)
		return err
	})
}

func init() { drivers[UDSB] = driver{create: createBundle} }

// createBundle makes a bundle without bands. The property lists are written
// last: Open refuses a folder without them, such as an interrupted Create
// leaves.
func createBundle(dir *hostio.Dir, name string, s Spec) (err error) {
	var token []byte
	perm := fs.FileMode(0o644)
	if !s.Encryption.none() {
		h, cipher, err := s.Encryption.newHeader(0)
		if err != nil {
			return err
		}
		cipher.Wipe()
		token, perm = h.Marshal(), encryptedPerm
	}
	if err := dir.Mkdir(name); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, dir.RemoveAll(name))
		}
	}()
	b, err := dir.Sub(name)
	if err != nil {
		return err
	}
	defer b.Close()
	if err := b.Mkdir("bands"); err != nil {
		return err
	}
	list := info{Version: 1, BandSize: s.BandSize, Size: s.Size}.encode()
	for _, file := range []struct {
		name string
		data []byte
	}{{"token", token}, {"lock", nil}, {"Info.bckup", list}, {"Info.plist", list}} {
		if err := b.WriteFileAtomic(file.name, file.data, perm); err != nil {
			return err
		}
	}
	return dir.Sync()
}

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
