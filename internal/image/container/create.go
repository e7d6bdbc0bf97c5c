package container

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"dmgbench/internal/image"
	"dmgbench/internal/image/container/crypt"
	"dmgbench/internal/system/hostio"
)

// driver is how the package makes, identifies and opens images of one format.
type driver struct {
	// create makes an image, nil if the format is only opened
	create func(dir *hostio.Dir, name string, s Spec) error
	// magic: first bytes of a file of the format, "" if [ends.contents]
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
		content := newEncryptedStore(s, h, c)
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
