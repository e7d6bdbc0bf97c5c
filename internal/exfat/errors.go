package exfat

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// Errors that callers branch on. Errors about names also wrap fs.ErrNotExist, fs.ErrExist or fs.ErrInvalid.
var (
	// ErrNoSpace says that the volume has not enough free clusters.
	ErrNoSpace = errors.New("volume is full")
	// ErrNotExFAT says that neither boot region describes an exFAT volume.
	ErrNotExFAT = errors.New("not an exFAT volume")
	// ErrCorrupt says that metadata contradicts itself; Check says what is wrong.
	ErrCorrupt = errors.New("damaged exFAT volume")
	// ErrUnsupported says that the volume is legal but of a kind this package does not handle.
	ErrUnsupported = errors.New("unsupported kind of exFAT volume")
	// ErrReadOnly says that the volume was mounted read-only.
	ErrReadOnly = errors.New("volume is mounted read-only")
	// ErrBusy says that a file is open.
	ErrBusy = errors.New("file is open")
	// ErrNotEmpty says that a directory to be removed has entries.
	ErrNotEmpty = errors.New("directory is not empty")
	// ErrIsDir and ErrNotDir say that a path names the wrong kind of thing.
	ErrIsDir  = errors.New("is a directory")
	ErrNotDir = errors.New("is not a directory")
	// ErrName says that exFAT forbids a name.
	ErrName = errors.New("name is not allowed on exFAT")
	// ErrFATTooSmall says that a volume cannot grow because its FAT was not made for that many clusters; see
	// FormatOptions.MaxSize.
	ErrFATTooSmall = errors.New("the file allocation table is too small")
	// ErrShrinkUsed says that a volume cannot shrink because clusters beyond the new end are in use.
	ErrShrinkUsed = errors.New("clusters beyond the new end are in use")
	// ErrClosed says that the file or the volume was closed before.
	ErrClosed = fs.ErrClosed
)

// annotate adds to an error what was being done; deferred, it covers all returns of a function.
func annotate(err *error, format string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), *err)
	}
}

// structural says that err is about what the device holds, not about a device that failed: only the first kind may become
// a finding, or a reason to go on with a copy.
func structural(err error) bool {
	for _, kind := range []error{ErrNotExFAT, ErrCorrupt, ErrUnsupported, io.ErrUnexpectedEOF} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
