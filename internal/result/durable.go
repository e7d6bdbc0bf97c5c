package result

import (
	"errors"
	"os"
	"syscall"
)

// durable is a file whose Sync asks no more of a file system than it can. Package os flushes by F_FULLFSYNC on macOS,
// which exFAT and FAT answer with ENOTTY, network shares with ENOTSUP and some of FUSE with EINVAL; a run folder may lie
// on any of them.
type durable struct{ *os.File }

// Sync flushes the file, and its disk's cache too where that can be had.
func (d durable) Sync() error {
	return flushed(d.File.Sync, func() error { return plainSync(d.File) })
}

// flushed flushes in full, or plainly where the file system does not know the other way.
func flushed(full, plain func() error) error {
	err := full()
	if errors.Is(err, syscall.ENOTTY) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.EINVAL) {
		return plain()
	}
	return err
}
