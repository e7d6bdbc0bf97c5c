package hostio

import (
	"fmt"
	"io/fs"
	"sync/atomic"
)

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
	err = f.use("flushing", Op{Kind: OpSync}, func() (err error) {
		flushes.Add(1)
		achieved, err = sysSync(f.fd, mode)
		return err
	})
	return achieved, err
}

// Truncate sets the length in bytes; new space reads as zeros.
func (f *File) Truncate(size int64) error {
	return f.use("truncating", Op{Kind: OpTruncate, Len: size}, func() error { return sysTruncate(f.fd, size) })
}

// Allocate reserves host space for n bytes from off and extends the file to
// cover them; its content does not change, new space reads as zeros.
// ErrUnsupported where the file system has no such call.
func (f *File) Allocate(off, n int64) error {
	if n == 0 {
		return nil
	}
	return f.useRange("allocating", OpAllocate, off, n, func() error { return sysAllocate(f.fd, off, n) })
}

// PunchHole gives the host space of n bytes from off back as far as the file
// system's blocks allow; the whole range reads as zeros afterwards and the
// length stays. ErrUnsupported leaves the content as it was.
func (f *File) PunchHole(off, n int64) error {
	if n == 0 {
		return nil
	}
	return f.useRange("punching", OpPunch, off, n, func() error { return sysPunch(f.fd, off, n) })
}

// Evict writes back and then drops the file's cached pages, so that the next
// read comes from below the host's cache. The kernel takes it as advice:
// [File.Resident] reports what is left.
func (f *File) Evict() error { return f.EvictRange(0, 0) }

// EvictRange is Evict for n bytes from off; n = 0 means to the end.
func (f *File) EvictRange(off, n int64) error {
	return f.useRange("evicting", OpEvict, off, n, func() error { return sysEvict(f.fd, off, n) })
}

// Resident returns the share, 0 to 1, of the pages of n bytes from off that
// the host's cache holds; n = 0 means to the end. An empty range gives 0.
// Linux answers 1 for files that the caller may not write.
func (f *File) Resident(off, n int64) (share float64, err error) {
	err = f.useRange("measuring residency of", opUnseen, off, n, func() error {
		st, err := sysFstat(f.fd)
		if err != nil {
			return err
		}
		if n == 0 || n > st.Size-off {
			n = st.Size - off
		}
		if n > 0 {
			share, err = sysResident(f.fd, off, n)
		}
		return err
	})
	return share, err
}

// Stat describes the open file, whatever its name leads to now.
func (f *File) Stat() (st Stat, err error) {
	err = f.use("looking at", Op{}, func() (err error) {
		st, err = sysFstat(f.fd)
		return err
	})
	return st, err
}

// TryLock takes an exclusive flock(2) on the file, held until Close, or
// returns [ErrLocked]. It also excludes a second open in the same process.
func (f *File) TryLock() error {
	return f.use("locking", Op{}, func() error { return sysFlock(f.fd, false) })
}

// TryLockShared is TryLock for those who only have to keep writers away: many
// may hold it at once, and TryLock fails meanwhile. The file need not be open
// for writing.
func (f *File) TryLockShared() error {
	return f.use("locking", Op{}, func() error { return sysFlock(f.fd, true) })
}

// useRange is use for n bytes from off.
func (f *File) useRange(doing string, k Kind, off, n int64, do func() error) error {
	if off < 0 || n < 0 || off+n < 0 {
		return f.fail(doing, fmt.Errorf("range of %d bytes at %d: %w", n, off, fs.ErrInvalid))
	}
	return f.use(doing, Op{Kind: k, Off: off, Len: n}, do)
}

// Kind names a host operation as hooks see it.
type Kind string

// The kinds of operation. Reads, writes and flushes are single system calls:
// a transfer that the kernel cut short shows as several.
const (
	OpCreate    Kind = "create"    // a file that did not exist
	OpOpen      Kind = "open"      // a file that exists
	OpRead      Kind = "read"      // Off, Len
	OpWrite     Kind = "write"     // Off, Len, Data
	OpSync      Kind = "sync"      // flush of a file
	OpDirSync   Kind = "dirsync"   // flush of a folder's entries
	OpTruncate  Kind = "truncate"  // Len is the new length
	OpAllocate  Kind = "allocate"  // Off, Len
	OpPunch     Kind = "punch"     // Off, Len
	OpEvict     Kind = "evict"     // Off, Len (0 = to the end)
	OpRename    Kind = "rename"    // Path to To
	OpRemove    Kind = "remove"    // a file or an empty folder
	OpRemoveAll Kind = "removeall" // a tree
	OpMkdir     Kind = "mkdir"     // one folder

	opUnseen Kind = "" // neither changes nor flushes: no hook sees it
)

// Op is one host operation. Path and To are relative to the folder that was
// opened with [WithHook], with forward slashes. Data is the caller's memory:
// valid and to be left unchanged during the call of the hook only.
type Op struct {
	Kind Kind
	Path string
	To   string
	Off  int64
	Len  int64
	Data []byte
}

// Hook watches and may fail every host operation of a [Dir] and of what was
// opened through it. Before may delay; an error from it is the operation's
// error, and the operation is not done. After sees the outcome: n is the
// bytes transferred by reads and writes. Hooks are called concurrently.
type Hook interface {
	Before(op Op) error
	After(op Op, n int, err error)
}

// Shortener is a [Hook] that can also make the kernel's transfers short.
// Shorten returns how many bytes the system call may move (at least 1); a
// direct transfer is rounded down to the block, but never to 0.
type Shortener interface {
	Hook
	Shorten(op Op) int
}

// guard runs do between the hook's Before and After. The caller checks that
// the hook is not nil where the extra call would cost.
func guard(h Hook, op Op, do func() error) error {
	if h == nil || op.Kind == opUnseen {
		return do()
	}
	if err := h.Before(op); err != nil {
		return err
	}
	err := do()
	h.After(op, 0, err)
	return err
}

// use runs do on the open file between the hook's calls.
func (f *File) use(doing string, op Op, do func() error) error {
	if err := f.acquire(); err != nil {
		return err
	}
	defer f.release()
	op.Path = f.rel
	return f.fail(doing, guard(f.hook, op, do))
}
