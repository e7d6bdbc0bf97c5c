package container

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"dmgbench/internal/hostio"
	"dmgbench/internal/image"
)

// Create makes a container and flushes it. name must not exist; it is used as
// given, [Extension] tells the usual ending. UDRW is allocated in full on the
// host; a sparse bundle has no bands at first. What a failed Create had made
// is deleted again.
func Create(dir *hostio.Dir, name string, s Spec) error {
	err := image.Spec{Format: s.Format, Size: s.Size, BandSize: s.BandSize}.Validate()
	if err == nil {
		err = s.Encryption.check(s.Format, s.Size)
	}
	if err != nil && !errors.Is(err, image.ErrUnknownFormat) {
		return fmt.Errorf("creating %q: %w", filepath.Join(dir.Path(), name), err)
	}
	f, _ := image.FormatNamed(s.Format)
	s.BandSize = f.BandSize(s.BandSize)
	switch s.Format {
	case UDRW:
		return createRaw(dir, name, s)
	case UDSP:
		return createUDSP(dir, name, s.Size, s.BandSize, s.Encryption)
	case ASIF:
		return createASIF(dir, name, s.Size, s.ID)
	case UDSB:
		return createBundle(dir, name, info{version: 1, bandSize: s.BandSize, size: s.Size}, s.Encryption)
	}
	return &UnsupportedError{Path: filepath.Join(dir.Path(), name), Found: fmt.Sprintf("format %.20q", s.Format),
		Doing: "creating"}
}

// createRaw writes every block of an encrypted image, as Apple's tools do: in
// such images a block that was never written is noise to others.
func createRaw(dir *hostio.Dir, name string, s Spec) error {
	return s.Encryption.createFile(dir, name, s.Size, func(f target) error { return fill(f, 0, s.Size) })
}

// createFile makes a container of one file, with permissions or, with 0, those of ordinary files.
func createFile(dir *hostio.Dir, name string, perm fs.FileMode, write func(f *hostio.File) error) error {
	f, err := dir.Open(name, hostio.OpenOptions{Write: true, Create: true, Exclusive: true, Cache: hostio.CacheDirect, Perm: perm})
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		_, err = f.Sync(hostio.SyncFull)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = dir.Sync()
	}
	if err != nil {
		return errors.Join(err, dir.Remove(name))
	}
	return nil
}

// target is what a new container is written to.
type target interface {
	Allocate(off, n int64) error
	WriteAt(p []byte, off int64) (int, error)
}

// fill gives n bytes from off host space that reads as zeros: by
// preallocation, or where there is none by writing.
func fill(f target, off, n int64) error {
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
	return inParallel(4, (n+call-1)/call, func(i int64) error {
		at := i * call
		_, err := f.WriteAt(zero.Bytes()[:min(call, n-at)], off+at)
		return err
	})
}

func createBundle(dir *hostio.Dir, name string, i info, e Encryption) error {
	token, err := e.token()
	if err != nil {
		return err
	}
	if err := dir.Mkdir(name); err != nil {
		return err
	}
	err = fillBundle(dir, name, i, token)
	if err == nil {
		err = dir.Sync()
	}
	if err != nil {
		return errors.Join(err, dir.RemoveAll(name))
	}
	return nil
}

// fillBundle writes the property lists last: without them the folder is no
// bundle, and Open refuses what an interrupted Create left.
func fillBundle(dir *hostio.Dir, name string, i info, token []byte) error {
	b, err := dir.Sub(name)
	if err != nil {
		return err
	}
	defer b.Close()
	if err := b.Mkdir("bands"); err != nil {
		return err
	}
	perm := fs.FileMode(0o644)
	if token != nil {
		perm = sealedPerm
	}
	for _, file := range []struct {
		name string
		data []byte
	}{{"token", token}, {"lock", nil}, {"Info.bckup", i.encode()}, {"Info.plist", i.encode()}} {
		if err := b.WriteFileAtomic(file.name, file.data, perm); err != nil {
			return err
		}
	}
	return nil
}
