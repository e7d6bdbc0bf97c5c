package hostio

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// File is an open file of the host. All methods may be called concurrently;
// Close waits for no one: the descriptors are released when the last
// transfer under way ends, and later calls return fs.ErrClosed.
type File struct {
	fd     int // buffered descriptor, always present
	direct int // O_DIRECT descriptor, or -1
	mem    int // memory alignment of direct transfers, bytes
	off    int // offset alignment of direct transfers, bytes
	unit   int // below this alignment writes go through the page cache
	cache  CacheMode

	path string // absolute, for messages
	rel  string // for the hook
	hook Hook
	cut  Shortener

	refs     atomic.Int64 // transfers under way, plus closedBit
	released sync.Once
	closeErr error
	tail     atomic.Bool // the page cache was used
	degraded atomic.Bool // the kernel refused a direct transfer
}

const closedBit = int64(1) << 62

// walk opens the folder of a file below d; an empty name is d itself. It
// follows no link, and costs one call a level: making a file is part of the
// time that a run spends on each.
func (d *Dir) walk(folder string) (int, error) {
	at := d.fd
	for _, level := range strings.Split(strings.TrimSuffix(folder, "/"), "/") {
		if level == "" && folder == "" {
			return at, nil
		}
		if level == "" || level == ".." {
			return 0, fs.ErrInvalid
		}
		next, err := sysOpenFolder(at, level)
		if at != d.fd {
			sysClose(at)
		}
		if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENOTDIR) {
			return 0, fmt.Errorf("%q is not a folder: %w", level, ErrNotRegular)
		}
		if err != nil {
			return 0, err
		}
		at = next
	}
	return at, nil
}

func (f *File) open(dir int, base string, o OpenOptions) error {
	op := Op{Kind: OpOpen, Path: f.rel}
	if f.hook != nil && o.Create && !sysExists(dir, base) {
		op.Kind = OpCreate
	}
	return guard(f.hook, op, func() (err error) {
		if f.fd, err = sysOpenat(dir, base, o); err != nil {
			return err
		}
		if err = f.prepare(dir, base, o); err != nil {
			sysClose(f.fd)
		}
		return err
	})
}

// prepare checks what was opened and adds the direct descriptor. The buffered
// one comes first, since an open that asks for O_DIRECT and O_CREAT at once
// leaves an empty file where O_DIRECT is refused.
func (f *File) prepare(dir int, base string, o OpenOptions) error {
	st, align, err := sysAlign(f.fd, o.Cache == CacheDirect)
	if err != nil {
		return err
	}
	if !st.Mode.IsRegular() {
		return ErrNotRegular
	}
	if o.Cache != CacheDirect || !align.possible {
		return nil
	}
	if align.inPlace {
		if err := sysNoCache(f.fd); err == nil {
			f.cache = CacheDirect
		}
		return nil
	}
	o.Create = false
	fd, err := sysOpenDirect(dir, base, o)
	if errors.Is(err, syscall.EINVAL) {
		return nil
	}
	if err != nil {
		return err
	}
	if now, err := sysFstat(fd); err != nil || !now.Same(st) {
		sysClose(fd)
		return ErrReplaced
	}
	f.direct, f.cache, f.mem, f.off = fd, CacheDirect, align.mem, align.off
	// Direct writes below the file system's block make ext4 and xfs take an
	// exclusive lock and zero the rest of the block themselves.
	f.unit = max(align.off, int(min(st.BlockSize, 4096)))
	return nil
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
func (f *File) Path() string { return f.path }

func (f *File) acquire() error {
	if f.refs.Add(1)&closedBit != 0 {
		f.release()
		return f.fail("using", fs.ErrClosed)
	}
	return nil
}

func (f *File) release() {
	if f.refs.Add(-1) == closedBit {
		f.free()
	}
}

// Close releases the descriptors; what was not flushed may still fail to
// reach the disk. A second Close returns fs.ErrClosed.
func (f *File) Close() error {
	for {
		v := f.refs.Load()
		if v&closedBit != 0 {
			return f.fail("closing", fs.ErrClosed)
		}
		if f.refs.CompareAndSwap(v, v|closedBit) {
			if v == 0 {
				f.free()
				return f.fail("closing", f.closeErr)
			}
			return nil
		}
	}
}

// free may be reached twice when a call on a closed file races with Close.
func (f *File) free() {
	f.released.Do(func() {
		if f.direct >= 0 {
			if f.tail.Load() {
				// Later reads must reach the disk. Not after the flush, which
				// is timed. Advice only.
				_ = sysDrop(f.fd, 0, 0)
			}
			f.closeErr = sysClose(f.direct)
		}
		if err := sysClose(f.fd); f.closeErr == nil {
			f.closeErr = err
		}
	})
}

func (f *File) fail(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %q: %w", doing, f.path, err)
}
