package attach

import (
	"context"
	"errors"
	"io/fs"
	"log"
	"strings"
	"sync"
	"syscall"

	"dmgbench/internal/blockdev"
	"dmgbench/internal/container"
	"dmgbench/internal/exfat"
)

// maxFailures is how many failures a report describes.
const maxFailures = 8

// exitReport is what the serving process writes to a file when it ends.
type exitReport struct {
	Failures []string // writes and flushes that failed, at most maxFailures
	Count    int      // how many there were
}

// failures collects what failed in a serving process: for its log, and changes
// for the caller of Detach.
type failures struct {
	mu     sync.Mutex
	exit   exitReport
	logged int // failures that lost no data
}

// read logs a failure without data loss, such as that of a read, and returns
// its number. The number of lines is limited.
func (f *failures) read(doing string, err error) syscall.Errno {
	errno := errnoOf(err)
	if !isCausedByUsers(err, errno) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.logged++; f.logged <= 10*maxFailures {
			log.Printf("%s: %v", doing, err)
		}
	}
	return errno
}

// change returns the number of the error of a change, 0 for nil, and records it
// unless users cause it.
func (f *failures) change(doing string, err error) syscall.Errno {
	errno := errnoOf(err)
	if !isCausedByUsers(err, errno) {
		f.add(doing, err)
	}
	return errno
}

// isCausedByUsers reports whether an error, of this number, comes from a
// request rather than from a failing volume or host.
func isCausedByUsers(err error, errno syscall.Errno) bool {
	switch errno {
	case 0, syscall.EOPNOTSUPP, syscall.ENOTEMPTY, syscall.EISDIR, syscall.ENOTDIR, syscall.EBUSY, syscall.EINVAL,
		syscall.ENOENT, syscall.EEXIST, syscall.EINTR:
		return true
	case syscall.ENOSPC:
		return errors.Is(err, exfat.ErrNoSpace) // the volume is full, not the host
	}
	return false
}

// add records a failed change, if err is one.
func (f *failures) add(doing string, err error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.exit.Count++
	if len(f.exit.Failures) < maxFailures {
		text := doing + ": " + strings.ReplaceAll(err.Error(), "\n", "; ")
		f.exit.Failures = append(f.exit.Failures, text)
		log.Print(text)
	}
}

// report returns what was recorded.
func (f *failures) report() exitReport {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.exit
}

// errnos are the numbers of errors of the layers below. fs.ErrInvalid comes
// after the numbers that errors carry.
var errnos = []struct {
	err   error
	errno syscall.Errno
}{
	{exfat.ErrNoSpace, syscall.ENOSPC}, {exfat.ErrNotEmpty, syscall.ENOTEMPTY}, {exfat.ErrIsDir, syscall.EISDIR},
	{exfat.ErrNotDir, syscall.ENOTDIR}, {exfat.ErrBusy, syscall.EBUSY}, {exfat.ErrName, syscall.EINVAL},
	{exfat.ErrReadOnly, syscall.EROFS}, {container.ErrReadOnly, syscall.EROFS},
	{errors.ErrUnsupported, syscall.EOPNOTSUPP},
	{fs.ErrNotExist, syscall.ENOENT}, {fs.ErrExist, syscall.EEXIST}, {exfat.ErrCorrupt, syscall.EUCLEAN},
	{blockdev.ErrOutOfRange, syscall.EINVAL}, {context.Canceled, syscall.EINTR},
}

// errnoOf is the system's error number of an error of the layers below, 0 of
// nil and EIO of an unknown one.
func errnoOf(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	for _, known := range errnos {
		if errors.Is(err, known.err) {
			return known.errno
		}
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok && errno != 0 {
		return errno
	}
	if errors.Is(err, fs.ErrInvalid) {
		return syscall.EINVAL
	}
	return syscall.EIO
}
