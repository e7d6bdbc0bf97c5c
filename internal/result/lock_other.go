//go:build !unix

package result

import (
	"errors"
	"io/fs"
	"os"
)

const openNonblock = 0

// lock cannot be had here; the run folder then carries a warning.
func lock(*os.File) error { return errors.ErrUnsupported }

// plainSync is what there is.
func plainSync(f *os.File) error { return f.Sync() }

// OwnedByUs refuses, since nothing here tells: resume does not work on this system.
func OwnedByUs(fs.FileInfo) bool { return false }
