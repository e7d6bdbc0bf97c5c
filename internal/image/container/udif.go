package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/container/udif"
	"dmgbench/internal/system/hostio"
)

// UDIFImage is implemented by UDIF images. The result gives access to their
// tables and checksums until the image is closed.
type UDIFImage interface{ UDIF() *udif.Image }

// udifImage is an open UDIF image, which is read-only.
type udifImage struct {
	fileDevice
	im *udif.Image
}

func init() { drivers[UDIF] = driver{open: openUDIF} }

// openUDIF opens the image in f, which stays the caller's after an error.
func openUDIF(f store, _ probeResult, _ OpenOptions) (Image, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	im, err := udif.Open(f, size, udif.Options{})
	switch {
	case errors.Is(err, udif.ErrUnsupported), errors.Is(err, udif.ErrSegmented):
		return nil, &UnsupportedError{Path: f.Path(), Found: err.Error(), Doing: "opening"}
	case errors.Is(err, udif.ErrCorrupt), errors.Is(err, udif.ErrNotUDIF):
		return nil, fmt.Errorf("opening %q: %w: %w", f.Path(), ErrCorrupt, err)
	case err != nil:
		return nil, fmt.Errorf("opening %q: %w", f.Path(), err)
	}
	u := &udifImage{fileDevice: fileDevice{f: f}, im: im}
	u.path, u.opts.ReadOnly, u.size, u.layout = f.Path(), true, im.Size(), u
	return u, nil
}

// UDIF implements [UDIFImage].
func (u *udifImage) UDIF() *udif.Image { return u.im }

// holes implements holeMapper.
func (u *udifImage) holes() udif.Map { return u.im }

// Format implements [Image].
func (u *udifImage) Format() string { return string(u.im.Format()) }

// readAt implements layout.
func (u *udifImage) readAt(p []byte, off int64) (int, error) {
	n, err := u.im.ReadAt(p, off)
	if n == len(p) {
		return n, nil
	}
	if errors.Is(err, udif.ErrCorrupt) {
		err = fmt.Errorf("reading %q: %w: %w", u.path, ErrData, err)
	}
	return n, err
}

// eachPlace implements layout by the whole file, since all callers that evict
// want to read without cache. The decoded chunks that the image keeps stay.
func (u *udifImage) eachPlace(_, _ int64, do func(f bandFile, at, n int64) error) error {
	size, err := u.f.Size()
	if err != nil {
		return err
	}
	return do(u.f, 0, size)
}

// close implements layout.
func (u *udifImage) close() error { return errors.Join(u.im.Close(), u.f.Close()) }

// The device calls none of these for a read-only image.

func (u *udifImage) writeAt([]byte, int64, int) (int, error) { return 0, ErrReadOnly }
func (u *udifImage) discard(int64, int64) error              { return ErrReadOnly }
func (u *udifImage) resize(int64) error                      { return ErrReadOnly }
func (u *udifImage) flush() error                            { return nil }

// UDIFSpec describes an image for CreateUDIF.
type UDIFSpec struct {
	Format   string                  // UDRO, UDCO, UDZO, UDBZ, ULFO, ULMO or UFBI
	Level    int                     // of compression, as in package codec; 0 is Apple's choice
	Workers  int                     // chunks compressed at once; 0 is as many as there are processors
	Progress func(done, total int64) // bytes of the device, if set; called from one goroutine
	// Encryption encrypts the whole file, with tables and trailer.
	Encryption Encryption
}

// CreateUDIF writes the content of dev as a read-only image and flushes it;
// when it fails it leaves no image. name must not exist. No other call may
// write to dev meanwhile. Space that the source marks as free stays free.
func CreateUDIF(ctx context.Context, dir *hostio.Dir, name string, dev blockdev.Device, s UDIFSpec) error {
	o := udif.WriteOptions{Format: udif.Format(s.Format), Level: s.Level, Workers: s.Workers,
		Progress: s.Progress, Map: MapOf(dev)}
	path := filepath.Join(dir.Path(), name)
	if err := s.Encryption.check(s.Format, 0); err != nil {
		return fmt.Errorf("creating %q: %w", path, err)
	}
	return s.Encryption.createFile(dir, name, 0, func(f store) error {
		_, err := udif.Write(ctx, io.NewOffsetWriter(f, 0), readerAt(func(p []byte, off int64) (int, error) {
			n, err := dev.ReadAt(p, off)
			if n == len(p) && errors.Is(err, io.EOF) {
				err = nil // the read was complete
			}
			return n, err
		}), dev.Size(), o)
		if err != nil {
			return fmt.Errorf("writing %q: %w", path, err)
		}
		return nil
	})
}
