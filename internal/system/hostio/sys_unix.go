package hostio

import (
	"errors"
	"io/fs"
	"math"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func openat(dir int, name string, flags int, perm uint32) (fd int, err error) {
	err = retryEINTR(func() error {
		fd, err = unix.Openat(dir, name, flags, perm)
		return err
	})
	return fd, err
}

// MaxFiles is how many descriptors the process may have. Go has raised the soft limit to the hard one when the program
// started.
func MaxFiles() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 256 // of a process that launchd starts on macOS
	}
	return int(min(limit.Cur, math.MaxInt32))
}

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
		Links: uint64(st.Nlink), UID: int(st.Uid), BlockSize: int64(st.Blksize), Mode: mode}
}

// StatOf turns what Dir.Stat and Dir.Lstat return into a [Stat].
func StatOf(fi fs.FileInfo) Stat {
	st := Stat{Size: fi.Size(), UID: -1}
	if sys, ok := fi.Sys().(*syscall.Stat_t); ok {
		st = statOf(sys)
	}
	st.Mode = fi.Mode()
	return st
}

// window is how much of a file is mapped at once for residency and eviction.
const window = 256 << 20

// overWindows maps page-aligned windows that cover n bytes of a file from off, as
// far as the file reaches, and calls do with each; n = 0 means to the end.
func overWindows(fd int, off, n int64, prot int, do func(mem []byte) error) error {
	st, err := sysFstat(fd)
	if n == 0 || n > st.Size-off {
		n = st.Size - off
	}
	at := off - off%int64(unix.Getpagesize())
	for end := off + n; err == nil && n > 0 && at < end; at += window {
		size := uintptr(min(window, end-at))
		var p unsafe.Pointer
		if p, err = unix.MmapPtr(fd, at, nil, size, prot, unix.MAP_SHARED); err == nil {
			err = errors.Join(do(unsafe.Slice((*byte)(p), size)), unix.MunmapPtr(p, size))
		}
	}
	return err
}

// sysResident is the share of the pages that the cache holds, 0 of none.
func sysResident(fd int, off, n int64) (float64, error) {
	total, held := 0, 0
	err := overWindows(fd, off, n, unix.PROT_READ, func(mem []byte) error {
		vec := make([]byte, (len(mem)+unix.Getpagesize()-1)/unix.Getpagesize())
		if _, _, e := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&mem[0])), uintptr(len(mem)),
			uintptr(unsafe.Pointer(&vec[0]))); e != 0 {
			return e
		}
		for _, v := range vec {
			held += int(v & 1)
		}
		total += len(vec)
		return nil
	})
	return float64(held) / float64(max(total, 1)), err
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
