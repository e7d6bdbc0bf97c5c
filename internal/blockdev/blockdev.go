// Package blockdev declares the block device that disk image containers offer and that partition tables and file
// systems stand on, together with a view of a part of a device ([Section]) and a device in memory for tests
// ([MemDevice]).
//
// It knows nothing of files, formats or caches: the containers implement [Device], and whoever needs more than
// that asks for [Evicter], [Geometry] or [Phaser] by type assertion.
package blockdev

import (
	"errors"
	"fmt"
	"io"
)

// ErrOutOfRange is wrapped by every error about an offset or a length that does not lie within the device.
var ErrOutOfRange = errors.New("range lies outside the device")

// Device is a block device. Offsets and lengths are in bytes; ReadAt and WriteAt accept any alignment (multiples
// of 4096 are the fast ones), and all methods are safe for concurrent use. A read or write that would leave the
// device is an error wrapping [ErrOutOfRange], except that ReadAt at or across the end may return io.EOF with what
// there was.
type Device interface {
	io.ReaderAt
	io.WriterAt
	// Discard says that the range is no longer needed; it reads as zeros afterwards.
	Discard(off, n int64) error
	// Flush makes everything that was written before the call durable, even what another call of Flush is just writing
	// back. Once it has failed, it may succeed again only if nothing was lost: users write their metadata again
	// after an error, but not their data.
	Flush() error
	// Size is the length of the device in bytes.
	Size() int64
}

// Evicter is implemented by devices that can drop the host's cache of a range, in bytes.
type Evicter interface {
	Evict(off, n int64) error
}

// Padder is implemented by devices that write zeros behind data in the same call.
type Padder interface {
	// WritePadded writes p at off and behind it pad zeros, fewer than 4096, and returns how many bytes of p are written.
	// errors.ErrUnsupported, before anything is written, says that it takes two calls of WriteAt here.
	WritePadded(p []byte, off int64, pad int) (int, error)
}

// Geometry is implemented by devices on whose extents writers should keep apart, as the bands of a sparse bundle.
type Geometry interface {
	// PreferredExtent is the length of an extent in bytes; 0 means that there are none.
	PreferredExtent() int64
}

// Phaser is implemented by sections: the extents of [Geometry] are counted from the start of the whole device,
// which is ExtentPhase bytes before the section's own byte 0, modulo the extent.
type Phaser interface {
	ExtentPhase() int64
}

// CheckRange says whether n bytes at off lie within a device of the given size; the error wraps [ErrOutOfRange].
func CheckRange(off, n, size int64) error {
	if off < 0 || n < 0 || off > size || n > size-off {
		return fmt.Errorf("addressing %d bytes at %d of a device of %d: %w", n, off, size, ErrOutOfRange)
	}
	return nil
}
