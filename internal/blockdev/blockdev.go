// Package blockdev declares the block device that disk image containers implement and that partition tables and file
// systems use, and a view of a part of a device ([Section]).
//
// It knows no files, formats or caches. Code that needs more than [Device] asserts the type to [Evicter], [Geometry] or
// [Phaser].
package blockdev

import (
	"errors"
	"fmt"
	"io"
)

// ErrOutOfRange is wrapped by every error about an offset or a length outside the device.
var ErrOutOfRange = errors.New("range lies outside the device")

// Device is a block device. Offsets and lengths are in bytes; ReadAt and WriteAt accept any alignment (multiples
// of 4096 are the fast ones), and all methods are safe for concurrent use. A read or write that would leave the
// device is an error wrapping [ErrOutOfRange], except that ReadAt at or across the end may return io.EOF with what
// there was.
type Device interface {
	io.ReaderAt
	io.WriterAt
	// Discard frees the range, which reads as zeros afterwards.
	Discard(off, n int64) error
	// Flush makes everything durable that was written before the call, including data that a concurrent Flush is
	// writing back. After a failure it may succeed again only if no data was lost: callers write their metadata again
	// after an error, but not their data.
	Flush() error
	// Size is the length of the device in bytes.
	Size() int64
}

// Evicter is implemented by devices that can drop the host's cache of a range, in bytes.
type Evicter interface {
	Evict(off, n int64) error
}

// Padder is implemented by devices that write zeros after data in the same call.
type Padder interface {
	// WritePadded writes p at off and pad zeros (fewer than 4096) after it, and returns how many bytes of p are
	// written. It returns errors.ErrUnsupported, before writing, where two calls of WriteAt are needed.
	WritePadded(p []byte, off int64, pad int) (int, error)
}

// Geometry is implemented by devices with extents, such as the bands of a sparse bundle, on which concurrent writers
// should keep apart.
type Geometry interface {
	// PreferredExtent is the length of an extent in bytes, 0 for a device without extents.
	PreferredExtent() int64
}

// Phaser is implemented by sections: the extents of [Geometry] are counted from the start of the whole device.
// ExtentPhase is the offset of the section's byte 0 within its extent, in bytes.
type Phaser interface {
	ExtentPhase() int64
}

// CheckRange returns an error wrapping [ErrOutOfRange] unless n bytes at off are within a device of size bytes.
func CheckRange(off, n, size int64) error {
	if off < 0 || n < 0 || off > size || n > size-off {
		return fmt.Errorf("addressing %d bytes at %d of a device of %d: %w", n, off, size, ErrOutOfRange)
	}
	return nil
}
