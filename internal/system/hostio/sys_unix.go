package hostio

import (
	"errors"
	"io/fs"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// alignment is what direct transfers to one file want, in bytes.
type alignment struct {
	possible bool // direct transfers can work at all
	inPlace  bool // by a flag on the open descriptor, at any alignment
	mem, off int
}

func sysOpenat(dir int, name string, o OpenOptions) (int, error) {
	// O_NONBLOCK: a FIFO put in the file's place must not block the open.
	// It has no effect on regular files, and everything else is refused.
	flags := unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY
	if o.Write {
		flags = flags&^unix.O_RDONLY | unix.O_RDWR
	}
	if o.Create {
		flags |= unix.O_CREAT
	}
	if o.Create && o.Exclusive {
		flags |= unix.O_EXCL
	}
	perm := o.Perm.Perm()
	if perm == 0 {
		perm = 0o644
	}
	return openat(dir, name, flags, uint32(perm))
}

// sysOpenFolder opens a folder to look further from; a link is refused.
func sysOpenFolder(dir int, name string) (int, error) {
	return openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

func openat(dir int, name string, flags int, perm uint32) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags, perm)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

func sysClose(fd int) error { return unix.Close(fd) }

func sysPread(fd int, p []byte, off int64) (int, error)  { return unix.Pread(fd, p, off) }
func sysPwrite(fd int, p []byte, off int64) (int, error) { return unix.Pwrite(fd, p, off) }

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

func sysFstat(fd int) (Stat, error) {
	var st syscall.Stat_t
	err := retryEINTR(func() error { return syscall.Fstat(fd, &st) })
	return statOf(&st), err
}

// sysExists reports whether a name, or a link of it, is in a folder.
func sysExists(dir int, name string) bool {
	var st unix.Stat_t
	return retryEINTR(func() error { return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) }) == nil
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

// hugePage is the size of a transparent huge page on amd64 and arm64.
const hugePage = 2 << 20

// sysMapMemory maps n bytes and returns them with the whole mapping, which is
// what to unmap. Larger buffers start at a huge page and are made of huge pages
// only: direct transfers of small pages have to name each of them to the
// device, and were measured at a third of the rate.
func sysMapMemory(n int) (use, all []byte, err error) {
	size := n
	if n >= hugePage/8 {
		size = roundUp(n, hugePage) + hugePage
	}
	all, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil || size == n {
		return all, all, err
	}
	skip := -int(uintptr(unsafe.Pointer(&all[0]))) & (hugePage - 1)
	use = all[skip:][:roundUp(n, hugePage)]
	adviseHuge(use)
	return use, all, nil
}

func sysUnmapMemory(mem []byte) { _ = unix.Munmap(mem) }

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

// refused reports whether a file system does not know a command of fcntl(2):
// those of others return ENOTSUP or ENOTTY, APFS returns EINVAL, now and then
// even for what it knows.
func refused(err error) bool {
	return errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.ENOTTY) || errors.Is(err, syscall.EINVAL)
}

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
	if refused(err) {
		return ErrUnsupported
	}
	return err
}

// wholeBlocks is what of the range from off to end consists of whole blocks;
// there are none where first >= last. The end of a file inside of a block is
// not an exception: F_PUNCHHOLE wants whole blocks of the file, and copyfile(3)
// of Apple, too, leaves the last one to zeros.
func wholeBlocks(off, end, block int64) (first, last int64) {
	return roundUp(off, block), end - end%block
}

// lockedBy is what an answer of flock(2) comes to. Network shares on a Mac
// answer ENOTSUP, some of FUSE ENOSYS, and NFS without a lock server ENOLCK.
func lockedBy(err error) error {
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return ErrLocked
	case errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.ENOLCK):
		return ErrUnsupported
	}
	return err
}
