// Package hostio is the one door to files of the host: containers, bands,
// plain baseline files, journals.
//
// It gives raw positional transfers (no lock, no allocation, EINTR and short
// transfers handled) in two cache modes, the flush modes that benchmarks
// distinguish, sparse-file operations, eviction and residency of cached
// pages, and a place where tests record, fail, shorten or delay every system
// call. See [Dir] for folders, [File] for files, and [Hook];
// package hostiotest has hooks for tests.
//
// # What it refuses
//
// Names are relative to an opened [Dir] and cannot leave it. A final symbolic
// link is never followed, and neither a FIFO nor a device is ever opened:
// [ErrNotRegular]. What the operating system cannot do is [ErrUnsupported],
// never a silent success. The package does not measure and keeps no clock.
package hostio

import (
	"errors"
	"fmt"
	"io/fs"
)

// SyncMode is how far a flush pushes written bytes.
type SyncMode string

const (
	// SyncNone does not flush.
	SyncNone SyncMode = "none"
	// SyncFsync is fsync(2). On macOS it hands the data to the drive without
	// flushing the drive's own buffer; on Linux it also flushes the drive and
	// therefore achieves SyncFull.
	SyncFsync SyncMode = "fsync"
	// SyncFull flushes the drive's buffer too: F_FULLFSYNC on macOS, fsync(2)
	// on Linux.
	SyncFull SyncMode = "full"
)

// CacheMode is whether transfers pass through the host's page cache.
type CacheMode string

const (
	// CacheBuffered goes through the page cache.
	CacheBuffered CacheMode = "buffered"
	// CacheDirect goes past it: O_DIRECT on Linux, F_NOCACHE on macOS.
	CacheDirect CacheMode = "direct"
)

// Conditions that callers branch on.
var (
	// ErrUnsupported is returned when the operating system or the file
	// system cannot do what was asked. It matches errors.ErrUnsupported.
	ErrUnsupported = fmt.Errorf("not supported by this system: %w", errors.ErrUnsupported)
	// ErrNotRegular is returned by Open for a symbolic link, a folder, a
	// FIFO, a socket or a device.
	ErrNotRegular = errors.New("not a regular file")
	// ErrLocked is returned by File.TryLock when somebody else holds the lock.
	ErrLocked = errors.New("locked by another user")
	// ErrTooLarge is returned by Dir.ReadFile for a file above the limit.
	ErrTooLarge = errors.New("file is larger than the limit")
	// ErrReplaced is returned when a name no longer leads to the file or
	// folder that was opened under it.
	ErrReplaced = errors.New("was deleted or replaced by something else")
)

// OpenOptions are how Dir.Open opens a file. The zero value opens an
// existing file read-only and buffered.
type OpenOptions struct {
	Write     bool        // open for reading and writing
	Create    bool        // create when missing; needs Write
	Exclusive bool        // with Create: fail when it exists
	Cache     CacheMode   // asked mode; File.Cache tells the achieved one
	Perm      fs.FileMode // of a created file; 0 means 0o644
}

// Stat describes an open file. Sizes are bytes.
type Stat struct {
	Size      int64  // apparent length
	Allocated int64  // bytes allocated on the host, from st_blocks
	Inode     uint64 // together with Dev the identity of the file
	Dev       uint64
	Links     uint64      // 0 once the file was deleted
	BlockSize int64       // preferred transfer size, st_blksize
	Mode      fs.FileMode // of an open file: the permissions, and whether it is regular
}

// Same reports whether both describe one and the same file.
func (s Stat) Same(o Stat) bool { return s.Inode == o.Inode && s.Dev == o.Dev }
