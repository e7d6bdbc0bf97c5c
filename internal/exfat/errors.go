package exfat

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// Errors that callers branch on. Errors about names also wrap fs.ErrNotExist, fs.ErrExist or fs.ErrInvalid.
var (
	// ErrNoSpace: the volume has not enough free clusters.
	ErrNoSpace = errors.New("volume is full")
	// ErrNotExFAT: neither boot region describes an exFAT volume.
	ErrNotExFAT = errors.New("not an exFAT volume")
	// ErrCorrupt: metadata contradicts itself; Check reports the details.
	ErrCorrupt = errors.New("damaged exFAT volume")
	// ErrUnsupported: the volume is legal but of a kind that this package does not handle.
	ErrUnsupported = errors.New("unsupported kind of exFAT volume")
	// ErrReadOnly: the volume was mounted read-only.
	ErrReadOnly = errors.New("volume is mounted read-only")
	// ErrBusy: a file is open.
	ErrBusy = errors.New("file is open")
	// ErrNotEmpty: a directory to be removed has entries.
	ErrNotEmpty = errors.New("directory is not empty")
	// ErrIsDir and ErrNotDir: a path names a directory, or something else than one.
	ErrIsDir  = errors.New("is a directory")
	ErrNotDir = errors.New("is not a directory")
	// ErrName: exFAT forbids a name.
	ErrName = errors.New("name is not allowed on exFAT")
	// ErrFATTooSmall: a volume cannot grow because its FAT was not made for that many clusters; see
	// FormatOptions.MaxSize.
	ErrFATTooSmall = errors.New("the file allocation table is too small")
	// ErrShrinkUsed: a volume cannot shrink because clusters beyond the new end are in use.
	ErrShrinkUsed = errors.New("clusters beyond the new end are in use")
	// ErrClosed: the file or the volume was closed before.
	ErrClosed = fs.ErrClosed
)

// annotate adds to an error what was being done; deferred, it covers all returns of a function.
func annotate(err *error, format string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), *err)
	}
}

// structural reports whether err is about the contents of the device, rather than about a device that failed: only the
// former becomes a finding, or a reason to use a copy.
func structural(err error) bool {
	for _, kind := range []error{ErrNotExFAT, ErrCorrupt, ErrUnsupported, io.ErrUnexpectedEOF} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
