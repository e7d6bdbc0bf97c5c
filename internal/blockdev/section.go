package blockdev

import (
	"errors"
	"io"
)

// section is a window on a device, such as a partition.
type section struct {
	dev     Device
	off, n  int64
	evicter Evicter // nil when the device has none
	padder  Padder  // likewise
}

var (
	_ Device   = (*section)(nil)
	_ Evicter  = (*section)(nil)
	_ Padder   = (*section)(nil)
	_ Geometry = (*section)(nil)
	_ Phaser   = (*section)(nil)
)

// Section returns the n bytes at off of dev as a device of its own. Discard, Flush and the optional interfaces are
// passed on: Evict and WritePadded report errors.ErrUnsupported when dev cannot, PreferredExtent is 0 when dev has no
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
