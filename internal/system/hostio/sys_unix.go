package hostio

import (
	"errors"
	"io/fs"
	"runtime"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func openat(dir int, name string, flags int, perm uint32) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags, perm)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

func sysClose(fd int) error { return unix.Close(fd) }

// retryEINTR repeats a call that a signal interrupted.
func retryEINTR(do func() error) error {
	for {
		if err := do(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func sysTruncate(fd int, size int64) error {
	return retryEINTR(func() error { return unix.Ftruncate(fd, size) })
}

func sysFlock(fd int, shared bool) error {
	how := unix.LOCK_EX
	if shared {
		how = unix.LOCK_SH
	}
	return lockedBy(retryEINTR(func() error { return unix.Flock(fd, how|unix.LOCK_NB) }))
}

// lockedBy is what an answer of flock(2) comes to. NFS without a lock server
// answers ENOLCK.
func lockedBy(err error) error {
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	return unsupported(err, syscall.ENOLCK)
}

// unsupported maps the kernel's errors for a missing feature, and the others
// that mean it here, to ErrUnsupported.
func unsupported(err error, others ...error) error {
	is := func(other error) bool { return errors.Is(err, other) }
	if is(syscall.EOPNOTSUPP) || is(syscall.ENOTSUP) || is(syscall.ENOSYS) || slices.ContainsFunc(others, is) {
		return ErrUnsupported
	}
	return err
}

func sysFstat(fd int) (Stat, error) {
	var st syscall.Stat_t
	err := retryEINTR(func() error { return syscall.Fstat(fd, &st) })
	return statOf(&st), err
}

func statOf(st *syscall.Stat_t) Stat {
	mode := fs.FileMode(st.Mode) & fs.ModePerm
	if st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		mode |= fs.ModeIrregular
	}
	return Stat{Size: st.Size, Allocated: int64(st.Blocks) * 512, Inode: uint64(st.Ino), Dev: uint64(st.Dev),
		Links: uint64(st.Nlink), BlockSize: int64(st.Blksize), Mode: mode}
}

// StatOf turns what Dir.Stat and Dir.Lstat return into a [Stat].
func StatOf(fi fs.FileInfo) Stat {
	st := Stat{Size: fi.Size()}
	if sys, ok := fi.Sys().(*syscall.Stat_t); ok {
		st = statOf(sys)
	}
	st.Mode = fi.Mode()
	return st
}

// window is how much of a file is mapped at once for residency and eviction.
const window = 256 << 20

// overWindows calls do with page-aligned windows that cover n bytes from off.
func overWindows(off, n int64, do func(off int64, n int) error) error {
	page := int64(unix.Getpagesize())
	for at, end := off-off%page, off+n; at < end; at += window {
		if err := do(at, int(min(window, end-at))); err != nil {
			return err
		}
	}
	return nil
}

func sysResident(fd int, off, n int64) (float64, error) {
	page := unix.Getpagesize()
	var total, held int
	vec := make([]byte, (min(n, window)+int64(page)-1)/int64(page)+1)
	err := overWindows(off, n, func(at int64, n int) error {
		p, err := unix.MmapPtr(fd, at, nil, uintptr(n), unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			return err
		}
		defer unix.MunmapPtr(p, uintptr(n))
		pages := (n + page - 1) / page
		if _, _, e := unix.Syscall(unix.SYS_MINCORE, uintptr(p), uintptr(n), uintptr(unsafe.Pointer(&vec[0]))); e != 0 {
			return e
		}
		runtime.KeepAlive(vec)
		for _, v := range vec[:pages] {
			held += int(v & 1)
		}
		total += pages
		return nil
	})
	if err != nil || total == 0 {
		return 0, err
	}
	return float64(held) / float64(total), nil
}

// refused is ErrUnsupported where a file system does not know a command of
// fcntl(2): those of others return ENOTSUP or ENOTTY, APFS returns EINVAL, now
// and then even for what it knows.
func refused(err error) error { return unsupported(err, syscall.ENOTTY, syscall.EINVAL) }

// firstOf reserves space in the first way that works. Where the file system
// refuses all of them it is ErrUnsupported, as where it has no such command:
// APFS was seen to answer F_PREALLOCATE with EINVAL on files that had just been
// made, and zeros that are written reserve as well.
func firstOf(ways ...func() error) (err error) {
	for _, way := range ways {
		if err = way(); err == nil {
			return nil
		}
	}
	return refused(err)
}

// wholeBlocks is what of the range from off to end consists of whole blocks;
// there are none where first >= last. The end of a file inside of a block is
// not an exception: F_PUNCHHOLE wants whole blocks of the file, and copyfile(3)
// of Apple, too, leaves the last one to zeros.
func wholeBlocks(off, end, block int64) (first, last int64) {
	return roundUp(off, block), end - end%block
}
