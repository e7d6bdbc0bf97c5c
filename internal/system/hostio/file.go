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
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
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
	// Known is a file that the caller has made, in a folder that others cannot
	// change: unless it is to be direct, what was opened is not looked at, so that
	// opening is one call.
	Known bool
}

// flags are those of open(2) of an existing file.
func (o OpenOptions) flags() int {
	if o.Write {
		return unix.O_RDWR | unix.O_NOFOLLOW | unix.O_CLOEXEC
	}
	return unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_CLOEXEC
}

// Stat describes an open file. Sizes are bytes.
type Stat struct {
	Size      int64  // apparent length
	Allocated int64  // bytes allocated on the host, from st_blocks
	Inode     uint64 // together with Dev the identity of the file
	Dev       uint64
	Links     uint64      // 0 once the file was deleted
	UID       int         // user to whom it belongs
	BlockSize int64       // preferred transfer size, st_blksize
	Mode      fs.FileMode // of an open file: the permissions, and whether it is regular
}

// Same reports whether both describe one and the same file.
func (s Stat) Same(o Stat) bool { return s.Inode == o.Inode && s.Dev == o.Dev }

// File is an open file of the host. All methods may be called concurrently.
// Close waits for the calls under way; later ones return fs.ErrClosed.
type File struct {
	fd     int // buffered descriptor, always present
	direct int // O_DIRECT descriptor, or -1
	mem    int // memory alignment of direct transfers, bytes
	off    int // offset alignment of direct transfers, bytes
	unit   int // below this alignment writes go through the page cache
	cache  CacheMode

	folder string // absolute, for messages
	name   string // in it
	rel    string // for the hook, if there is one
	hook   Hook

	use      sync.RWMutex // shared during a call
	closed   bool
	tail     atomic.Bool // the page cache was used
	degraded atomic.Bool // the kernel refused a direct transfer
}

// open opens the buffered descriptor and checks what it leads to. A direct one
// comes second, since an open that asks for O_DIRECT and O_CREAT at once leaves
// an empty file where O_DIRECT is refused.
func (f *File) open(dir int, base string, o OpenOptions) (err error) {
	// O_NONBLOCK: a FIFO put in the file's place must not block the open.
	// It has no effect on regular files, and everything else is refused.
	flags := o.flags() | unix.O_NONBLOCK | unix.O_NOCTTY
	if o.Create {
		flags |= unix.O_CREAT
	}
	if o.Create && o.Exclusive {
		flags |= unix.O_EXCL
	}
	if f.fd, err = openat(dir, base, flags, uint32(cmp.Or(o.Perm.Perm(), 0o644))); err != nil {
		return err
	}
	if o.Known && o.Cache != CacheDirect {
		return nil
	}
	st, err := sysFstat(f.fd)
	if err == nil && !st.Mode.IsRegular() {
		err = ErrNotRegular
	}
	if err == nil && o.Cache == CacheDirect {
		err = f.openDirect(dir, base, o.flags(), st)
	}
	if err != nil {
		unix.Close(f.fd)
	}
	return err
}

// Cache returns the achieved mode: "buffered" where direct transfers were
// refused at open or later.
func (f *File) Cache() CacheMode {
	if f.degraded.Load() {
		return CacheBuffered
	}
	return f.cache
}

// Path returns the absolute path under which the file was opened.
func (f *File) Path() string { return filepath.Join(f.folder, f.name) }

// acquire keeps the file open until release.
func (f *File) acquire() error {
	f.use.RLock()
	if f.closed {
		f.use.RUnlock()
		return f.wrapErr("using", fs.ErrClosed)
	}
	return nil
}

func (f *File) release() { f.use.RUnlock() }

// Close releases the descriptors; what was not flushed may still fail to
// reach the disk. A second Close returns fs.ErrClosed.
func (f *File) Close() (err error) {
	f.use.Lock()
	defer f.use.Unlock()
	if f.closed {
		return f.wrapErr("closing", fs.ErrClosed)
	}
	f.closed = true
	if f.direct >= 0 {
		if f.tail.Load() {
			// Later reads must reach the disk. Not after the flush, which is
			// timed. Advice only.
			_ = sysDrop(f.fd, 0, 0)
		}
		err = unix.Close(f.direct)
	}
	return f.wrapErr("closing", errors.Join(err, unix.Close(f.fd)))
}

// wrapErr adds what was being done and the whole path; nil stays nil.
func (f *File) wrapErr(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %q: %w", doing, f.Path(), err)
}

// call runs do on the open file between the hook's calls.
func (f *File) call(doing string, op Op, do func() error) error {
	if op.Off < 0 || op.Len < 0 || op.Off+op.Len < 0 {
		return f.wrapErr(doing, fmt.Errorf("range of %d bytes at %d: %w", op.Len, op.Off, fs.ErrInvalid))
	}
	if err := f.acquire(); err != nil {
		return err
	}
	defer f.release()
	op.Path = f.rel
	return f.wrapErr(doing, guard(f.hook, op, do))
}

// flushes counts the calls of this process that flush a file or a folder.
var flushes atomic.Int64

// Flushes is how many calls of this process have flushed a file or a folder so
// far.
func Flushes() int64 { return flushes.Load() }

// Sync flushes the file by mode and returns what was achieved: "full" on
// Linux for both "fsync" and "full"; on macOS "fsync" where the file system
// knows no F_FULLFSYNC. Package os is not used: its Sync is F_FULLFSYNC on
// macOS, which is not the published method.
func (f *File) Sync(mode SyncMode) (achieved SyncMode, err error) {
	if mode == SyncNone || mode == "" {
		return SyncNone, nil
	}
	err = f.call("flushing", Op{Kind: OpSync}, func() (err error) {
		flushes.Add(1)
		achieved, err = sysSync(f.fd, mode)
		return err
	})
	return achieved, err
}

// Truncate sets the length in bytes; new space reads as zeros.
func (f *File) Truncate(size int64) error {
	return f.call("truncating", Op{Kind: OpTruncate, Len: size}, func() error { return sysTruncate(f.fd, size) })
}

// Allocate reserves host space for n bytes from off and extends the file to
// cover them; its content does not change, new space reads as zeros.
// ErrUnsupported where the file system has no such call.
func (f *File) Allocate(off, n int64) error {
	if n == 0 {
		return nil
	}
	op := Op{Kind: OpAllocate, Off: off, Len: n}
	return f.call("allocating", op, func() error { return sysAllocate(f.fd, off, n) })
}

// PunchHole gives the host space of n bytes from off back as far as the file
// system's blocks allow; the whole range reads as zeros afterwards and the
// length stays. ErrUnsupported leaves the content as it was.
func (f *File) PunchHole(off, n int64) error {
	if n == 0 {
		return nil
	}
	return f.call("punching", Op{Kind: OpPunch, Off: off, Len: n}, func() error { return sysPunch(f.fd, off, n) })
}

// Evict writes back and then drops the file's cached pages, so that the next
// read comes from below the host's cache. The kernel takes it as advice:
// [File.Resident] reports what is left.
func (f *File) Evict() error { return f.EvictRange(0, 0) }

// EvictRange is Evict for n bytes from off; n = 0 means to the end.
func (f *File) EvictRange(off, n int64) error {
	return f.call("evicting", Op{Kind: OpEvict, Off: off, Len: n}, func() error { return sysEvict(f.fd, off, n) })
}

// Resident returns the share, 0 to 1, of the pages of n bytes from off that
// the host's cache holds; n = 0 means to the end. An empty range gives 0.
// Linux answers 1 for files that the caller may not write.
func (f *File) Resident(off, n int64) (share float64, err error) {
	err = f.call("measuring residency of", Op{Off: off, Len: n}, func() (err error) {
		share, err = sysResident(f.fd, off, n)
		return err
	})
	return share, err
}

// Stat describes the open file, whatever its name leads to now.
func (f *File) Stat() (st Stat, err error) {
	err = f.call("looking at", Op{}, func() (err error) {
		st, err = sysFstat(f.fd)
		return err
	})
	return st, err
}

// TryLock takes an exclusive flock(2) on the file, held until Close, or
// returns [ErrLocked]. It also excludes a second open in the same process.
func (f *File) TryLock() error { return f.lock(unix.LOCK_EX) }

// TryLockShared is TryLock for those who only have to keep writers away: many
// may hold it at once, and TryLock fails meanwhile. The file need not be open
// for writing.
func (f *File) TryLockShared() error { return f.lock(unix.LOCK_SH) }

func (f *File) lock(how int) error {
	return f.call("locking", Op{}, func() error {
		return lockedBy(retryEINTR(func() error { return unix.Flock(f.fd, how|unix.LOCK_NB) }))
	})
}
