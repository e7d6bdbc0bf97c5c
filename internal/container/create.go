package container

import (
	"errors"
	"fmt"
	"path/filepath"

	"dmgbench/internal/hostio"
)

// Create makes a container and flushes it. name must not exist; it is used as
// given, [Extension] tells the usual ending. UDRW is allocated in full on the
// host; a sparse bundle has no bands at first. What a failed Create had made
// is deleted again.
func Create(dir *hostio.Dir, name string, s Spec) error {
	err := checkSize(s.Size)
	if err == nil && s.Size == 0 {
		err = errors.New("size is 0")
	}
	if err == nil {
		switch s.Format {
		case UDRW:
			if s.BandSize != 0 {
				err = fmt.Errorf("band size of %d bytes: %s has no bands", s.BandSize, UDRW)
				break
			}
			return createRaw(dir, name, s.Size)
		case UDSP:
			if s.BandSize == 0 {
				s.BandSize = DefaultImageBandSize
			}
			if err = checkBandSize(s.BandSize); err == nil {
				if ceil(s.Size, s.BandSize) <= udspMaxBands {
					return createUDSP(dir, name, s.Size, s.BandSize)
				}
				err = errBadSize
			}
		case ASIF:
			if s.BandSize != 0 {
				err = fmt.Errorf("band size of %d bytes: %s has chunks of %d always", s.BandSize, ASIF, asifChunk)
				break
			}
			if s.Size <= asifMaxSize {
				return createASIF(dir, name, s.Size, s.ID)
			}
			err = errBadSize
		case UDSB:
			if s.BandSize == 0 {
				s.BandSize = DefaultBandSize
			}
			if err = checkBandSize(s.BandSize); err == nil {
				return createBundle(dir, name, info{version: 1, bandSize: s.BandSize, size: s.Size})
			}
		default:
			return &UnsupportedError{Path: filepath.Join(dir.Path(), name), Found: fmt.Sprintf("format %.20q", s.Format), Doing: "creating"}
		}
	}
	return fmt.Errorf("creating %q: %w", filepath.Join(dir.Path(), name), err)
}

func checkSize(n int64) error {
	if n < 0 || n > maxImageSize || n%SectorSize != 0 {
		return fmt.Errorf("size of %d bytes, want a multiple of %d up to %d", n, SectorSize, int64(maxImageSize))
	}
	return nil
}

func checkBandSize(n int64) error {
	if n < MinBandSize || n > MaxBandSize || n%SectorSize != 0 {
		return fmt.Errorf("band size of %d bytes, want a multiple of %d from %d to %d", n, SectorSize, MinBandSize, int64(MaxBandSize))
	}
	return nil
}

func createRaw(dir *hostio.Dir, name string, size int64) error {
	return createFile(dir, name, func(f *hostio.File) error { return fill(f, 0, size) })
}

// createFile makes a container of one file.
func createFile(dir *hostio.Dir, name string, write func(f *hostio.File) error) error {
	f, err := dir.Open(name, hostio.OpenOptions{Write: true, Create: true, Exclusive: true, Cache: hostio.CacheDirect})
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

// allocator is what fill needs of a file.
type allocator interface {
	Allocate(off, n int64) error
	WriteAt(p []byte, off int64) (int, error)
}

// fill gives n bytes from off host space that reads as zeros: by
// preallocation, or where there is none by writing.
func fill(f allocator, off, n int64) error {
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

func createBundle(dir *hostio.Dir, name string, i info) error {
	if err := dir.Mkdir(name); err != nil {
		return err
	}
	err := fillBundle(dir, name, i)
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
func fillBundle(dir *hostio.Dir, name string, i info) error {
	b, err := dir.Sub(name)
	if err != nil {
		return err
	}
	defer b.Close()
	if err := b.Mkdir("bands"); err != nil {
		return err
	}
	for _, file := range []struct {
		name string
		data []byte
	}{{"token", nil}, {"lock", nil}, {"Info.bckup", i.encode()}, {"Info.plist", i.encode()}} {
		if err := b.WriteFileAtomic(file.name, file.data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
