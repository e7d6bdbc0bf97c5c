// Package blockdev declares the block device that disk image containers
// implement and that partition tables and file systems use, and a view of a
// part of a device ([Section]).
//
// It knows no files, formats or caches. Code that needs more than [Device]
// asserts the type to [Evicter], [Geometry] or [Phaser].
package blockdev

import (
	"errors"
	"fmt"
	"io"
)

// ErrOutOfRange is wrapped by every error about an offset or a length outside
// the device.
var ErrOutOfRange = errors.New("range lies outside the device")

// Device is a block device. Offsets and lengths are in bytes; ReadAt and
// WriteAt accept any alignment (multiples of 4096 are the fast ones), and all
// methods are safe for concurrent use. A read or write that would leave the
// device is an error wrapping [ErrOutOfRange], except that ReadAt at or across
// the end may return io.EOF with what there was.
type Device interface {
	io.ReaderAt
	io.WriterAt
	// Discard frees the range, which reads as zeros afterwards.
	Discard(off, n int64) error
	// Flush makes everything durable that was written before the call,
	// including data that a concurrent Flush is writing back. After a failure
	// it may succeed again only if no data was lost: callers write their
	// metadata again after an error, but not their data.
	Flush() error
	// Size is the length of the device in bytes.
	Size() int64
}

// Evicter is implemented by devices that can drop the host's cache of a range,
// in bytes.
type Evicter interface {
	Evict(off, n int64) error
}

// Padder is implemented by devices that write zeros after data in the same
// call.
type Padder interface {
	// WritePadded writes p at off and pad zeros (fewer than 4096) after it, and
	// returns how many bytes of p are written. It returns
	// errors.ErrUnsupported, before writing, where two calls of WriteAt are
	// needed.
	WritePadded(p []byte, off int64, pad int) (int, error)
}

// Geometry is implemented by devices with extents, such as the bands of a
// sparse bundle, on which concurrent writers should keep apart.
type Geometry interface {
	// PreferredExtent is the length of an extent in bytes, 0 for a device
	// without extents.
	PreferredExtent() int64
}

// Phaser is implemented by sections: the extents of [Geometry] are counted from
// the start of the whole device. ExtentPhase is the offset of the section's
// byte 0 within its extent, in bytes.
type Phaser interface {
	ExtentPhase() int64
}

// CheckRange returns an error wrapping [ErrOutOfRange] unless n bytes at off
// are within a device of size bytes.
func CheckRange(off, n, size int64) error {
	if off < 0 || n < 0 || off > size || n > size-off {
		return fmt.Errorf("addressing %d bytes at %d of a device of %d: %w", n, off, size, ErrOutOfRange)
	}
	return nil
}

// ReadOnly offers a reader of size bytes as a device. Everything that would
// change it is errors.ErrUnsupported.
func ReadOnly(r io.ReaderAt, size int64) Device { return readOnly{r, size} }

type readOnly struct {
	io.ReaderAt
	size int64
}

func (d readOnly) Size() int64                        { return d.size }
func (d readOnly) Flush() error                       { return nil }
func (d readOnly) Discard(int64, int64) error         { return errors.ErrUnsupported }
func (d readOnly) WriteAt([]byte, int64) (int, error) { return 0, errors.ErrUnsupported }

// section is a window on a device, such as a partition.
type section struct {
	dev     Device
	off, n  int64
	evicter Evicter // nil when the device has none
	padder  Padder  // likewise
}

// Section returns the n bytes at off of dev as a device of its own. Discard,
// Flush and the optional interfaces are passed on: Evict and WritePadded report
// errors.ErrUnsupported when dev cannot, PreferredExtent is 0 when dev has no
// extents. The error wraps [ErrOutOfRange] for a range outside dev.
func Section(dev Device, off, n int64) (Device, error) {
	if err := CheckRange(off, n, dev.Size()); err != nil {
		return nil, err
	}
	if s, ok := dev.(*section); ok {
		dev, off = s.dev, off+s.off // one level of indirection, however deep the nesting
	}
	s := &section{dev: dev, off: off, n: n}
	s.evicter, _ = dev.(Evicter)
	s.padder, _ = dev.(Padder)
	return s, nil
}

func (s *section) Size() int64 { return s.n }

func (s *section) Flush() error { return s.dev.Flush() }

func (s *section) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off > s.n {
		return 0, CheckRange(off, int64(len(p)), s.n)
	}
	if int64(len(p)) <= s.n-off {
		return s.dev.ReadAt(p, s.off+off)
	}
	n, err := s.dev.ReadAt(p[:s.n-off], s.off+off)
	if err == nil {
		err = io.EOF
	}
	return n, err
}

func (s *section) WriteAt(p []byte, off int64) (int, error) {
	if err := CheckRange(off, int64(len(p)), s.n); err != nil {
		return 0, err
	}
	return s.dev.WriteAt(p, s.off+off)
}

func (s *section) WritePadded(p []byte, off int64, pad int) (int, error) {
	if s.padder == nil {
		return 0, errors.ErrUnsupported
	}
	if err := CheckRange(off, int64(len(p))+int64(pad), s.n); err != nil {
		return 0, err
	}
	return s.padder.WritePadded(p, s.off+off, pad)
}

func (s *section) Discard(off, n int64) error {
	if err := CheckRange(off, n, s.n); err != nil {
		return err
	}
	return s.dev.Discard(s.off+off, n)
}

func (s *section) Evict(off, n int64) error {
	if s.evicter == nil {
		return errors.ErrUnsupported
	}
	if err := CheckRange(off, n, s.n); err != nil {
		return err
	}
	return s.evicter.Evict(s.off+off, n)
}

func (s *section) PreferredExtent() int64 {
	if g, ok := s.dev.(Geometry); ok {
		return g.PreferredExtent()
	}
	return 0
}

func (s *section) ExtentPhase() int64 {
	extent := s.PreferredExtent()
	if extent <= 0 {
		return 0
	}
	var outer int64
	if p, ok := s.dev.(Phaser); ok {
		outer = p.ExtentPhase()
	}
	return (s.off + outer) % extent
}
