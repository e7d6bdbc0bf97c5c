package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"dmgbench/internal/blockdev"
	"dmgbench/internal/container/codec"
	"dmgbench/internal/container/udif"
	"dmgbench/internal/hostio"
)

// chunkCodec brings package codec to package udif.
type chunkCodec struct{}

func (chunkCodec) Decode(id uint32, dst, src []byte) (int, error) {
	return codec.Decode(codec.ID(id), dst, src)
}

func (chunkCodec) Encode(id uint32, dst, src []byte, level int) ([]byte, error) {
	out, err := codec.Encode(codec.ID(id), dst, src, level)
	if errors.Is(err, codec.ErrIncompressible) {
		err = udif.ErrIncompressible
	}
	return out, err
}

// Tabled is implemented by images that are UDIF with tables: what stands in
// them beside the device, such as checksums, is asked of the result, which
// works until the image is closed.
type Tabled interface{ UDIF() *udif.Image }

// udifImage is an open UDIF image. Nothing changes it.
type udifImage struct {
	gate
	path string
	f    store
	im   *udif.Image
}

var (
	_ Image  = (*udifImage)(nil)
	_ Tabled = (*udifImage)(nil)
)

// openUDIF opens the image in f, which stays the caller's after an error.
func openUDIF(f store) (*udifImage, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	im, err := udif.Open(f, size, udif.Options{Codec: chunkCodec{}})
	switch {
	case errors.Is(err, udif.ErrUnsupported), errors.Is(err, udif.ErrSegmented):
		return nil, &UnsupportedError{Path: f.Path(), Found: err.Error(), Doing: "opening"}
	case errors.Is(err, udif.ErrCorrupt), errors.Is(err, udif.ErrNotUDIF):
		return nil, fmt.Errorf("opening %q: %w: %w", f.Path(), ErrCorrupt, err)
	case err != nil:
		return nil, fmt.Errorf("opening %q: %w", f.Path(), err)
	}
	return &udifImage{path: f.Path(), f: f, im: im}, nil
}

func (u *udifImage) UDIF() *udif.Image { return u.im }

func (u *udifImage) enter() error {
	u.RLock()
	if u.closed {
		u.RUnlock()
		return fmt.Errorf("using %q: %w", u.path, fs.ErrClosed)
	}
	return nil
}

func (u *udifImage) ReadAt(p []byte, off int64) (int, error) {
	if err := u.enter(); err != nil {
		return 0, err
	}
	defer u.RUnlock()
	p, cut, err := clip(p, off, u.im.Size())
	if err != nil || len(p) == 0 {
		return eof(cut, 0, err)
	}
	n, err := u.im.ReadAt(p, off)
	if n == len(p) {
		err = nil // the end of the device is said by cut
	}
	if errors.Is(err, udif.ErrCorrupt) {
		err = fmt.Errorf("reading %q: %w: %w", u.path, ErrData, err)
	}
	return eof(cut, n, err)
}

// refuse is the answer to everything that would change the image.
func (u *udifImage) refuse() error {
	if err := u.enter(); err != nil {
		return err
	}
	defer u.RUnlock()
	return fmt.Errorf("changing %q: %w", u.path, ErrReadOnly)
}

func (u *udifImage) WriteAt([]byte, int64) (int, error) { return 0, u.refuse() }
func (u *udifImage) Discard(int64, int64) error         { return u.refuse() }
func (u *udifImage) Resize(int64) error                 { return u.refuse() }

func (u *udifImage) Compact(func(off, n int64) bool) (int64, error) {
	return 0, &UnsupportedError{Path: u.path, Found: u.Format(), Doing: "compacting"}
}

// Flush has nothing to do.
func (u *udifImage) Flush() error {
	if err := u.enter(); err != nil {
		return err
	}
	u.RUnlock()
	return nil
}

// Evict drops the host's cached pages of the whole file: which of them a range
// of the device came from does not matter to whoever wants to read cold. The
// decoded chunks that the image keeps stay.
func (u *udifImage) Evict(off, n int64) error {
	if err := u.enter(); err != nil {
		return err
	}
	defer u.RUnlock()
	if err := blockdev.CheckRange(off, n, u.im.Size()); err != nil || n == 0 {
		return err
	}
	size, err := u.f.Size()
	if err != nil {
		return err
	}
	return u.f.EvictRange(0, size)
}

func (u *udifImage) Usage() (Usage, error) {
	if err := u.enter(); err != nil {
		return Usage{}, err
	}
	defer u.RUnlock()
	if err := u.f.Check(); err != nil {
		return Usage{}, err
	}
	return fileUsage(u.f)
}

func (u *udifImage) Close() error {
	u.Lock()
	defer u.Unlock()
	if u.closed {
		return fmt.Errorf("closing %q: %w", u.path, fs.ErrClosed)
	}
	u.closed = true
	return errors.Join(u.im.Close(), u.f.Close())
}

func (u *udifImage) Size() int64             { return u.im.Size() }
func (u *udifImage) Cache() hostio.CacheMode { return u.f.Cache() }
func (u *udifImage) Format() string          { return string(u.im.Format()) }
func (u *udifImage) BandSize() int64         { return 0 }

// verifyUDIF opens the image and computes its checksums.
func verifyUDIF(f store) ([]Finding, error) {
	img, err := openUDIF(f)
	if err != nil {
		return unreadable(err)
	}
	defer img.im.Close()
	return checksumFindings(img.im)
}

func checksumFindings(im *udif.Image) (list []Finding, err error) {
	r, err := im.Verify(context.Background(), udif.StreamOptions{})
	if err != nil {
		return nil, err
	}
	for _, c := range r.Checks {
		switch c.Result {
		case udif.Differs:
			list = append(list, Finding{Path: c.What, Problem: fmt.Sprintf("checksum is %x, not %x", c.Got, c.Want), Fatal: true})
		case udif.Unreadable:
			list = append(list, Finding{Path: c.What, Problem: c.Err.Error(), Fatal: true})
		case udif.Unchecked:
			list = append(list, Finding{Path: c.What, Problem: fmt.Sprintf("checksum of type %d, which is not known", c.Type)})
		}
	}
	return list, nil
}
