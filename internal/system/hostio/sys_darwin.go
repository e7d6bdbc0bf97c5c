package hostio

import (
	"errors"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// openDirect turns caching off for the descriptor; transfers have any alignment.
// Pages that are cached already are still used; Evict drops them.
func (f *File) openDirect(int, string, int, Stat) error {
	if _, err := unix.FcntlInt(uintptr(f.fd), unix.F_NOCACHE, 1); err == nil {
		f.cache = CacheDirect
	}
	return nil
}

// Calls of vectored.
const callReadv, callWritev = 0, 0

// vectored would need an assembly stub that package syscall does not have.
// Reads do not need it: no transfer here is misaligned.
func vectored(uintptr, int, [3][]byte, int64) (int, error) { return 0, ErrUnsupported }

func sysSync(fd int, mode SyncMode) (SyncMode, error) {
	if mode == SyncFull {
		err := retryEINTR(func() error {
			_, err := unix.FcntlInt(uintptr(fd), unix.F_FULLFSYNC, 0)
			return err
		})
		if err == nil {
			return SyncFull, nil
		}
		// File systems of others (SMB, some FUSE) do not know it.
		if err = refused(err); !errors.Is(err, ErrUnsupported) {
			return SyncNone, err
		}
	}
	if err := retryEINTR(func() error { return unix.Fsync(fd) }); err != nil {
		return SyncNone, err
	}
	return SyncFsync, nil
}

// sysAllocate can reserve from the end of the file only, which is all that
// F_PEOFPOSMODE offers; holes before the end stay holes.
func sysAllocate(fd int, off, n int64) error {
	st, err := sysFstat(fd)
	if err != nil {
		return err
	}
	want := off + n - max(st.Size, st.Allocated) // a file with holes has less allocated than it is long
	if want > 0 {
		reserve := func(flags uint32) func() error {
			return func() error {
				store := &unix.Fstore_t{Flags: flags, Posmode: unix.F_PEOFPOSMODE, Length: want}
				return unix.FcntlFstore(uintptr(fd), unix.F_PREALLOCATE, store)
			}
		}
		if err := firstOf(reserve(unix.F_ALLOCATECONTIG|unix.F_ALLOCATEALL), reserve(unix.F_ALLOCATEALL)); err != nil {
			return err
		}
	}
	if off+n > st.Size {
		return sysTruncate(fd, off+n)
	}
	return nil
}

// punchHole is fpunchhole_t of <sys/fcntl.h>.
type punchHole struct {
	flags, reserved uint32
	off, n          int64
}

// sysPunch punches the whole file-system blocks inside the range, as
// F_PUNCHHOLE demands, and writes zeros to the rest.
func sysPunch(fd int, off, n int64) error {
	st, err := sysFstat(fd)
	if err != nil {
		return err
	}
	end := min(off+n, st.Size)
	if end <= off {
		return nil
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return err
	}
	block := max(int64(fs.Bsize), 512)
	first, last := wholeBlocks(off, end, block)
	if first >= last {
		return writeZeros(fd, off, end-off)
	}
	var pin runtime.Pinner
	hole := &punchHole{off: first, n: last - first}
	pin.Pin(hole)
	defer pin.Unpin()
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_PUNCHHOLE, int(uintptr(unsafe.Pointer(hole)))); err != nil {
		return refused(err)
	}
	if err := writeZeros(fd, off, first-off); err != nil {
		return err
	}
	return writeZeros(fd, last, end-last)
}

// writeZeros writes less than a file-system block of zeros.
func writeZeros(fd int, off, n int64) error {
	zero := make([]byte, max(n, 0))
	for len(zero) > 0 {
		m, err := unix.Pwrite(fd, zero, off)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		m = max(m, 0)
		zero, off = zero[m:], off+int64(m)
	}
	return nil
}

func sysDrop(fd int, off, n int64) error {
	return overWindows(fd, off, n, unix.PROT_NONE, func(mem []byte) error {
		return unix.Msync(mem, unix.MS_INVALIDATE)
	})
}

// sysEvict flushes first: MS_INVALIDATE may throw dirty pages away. A read-only
// volume has none, should its file system refuse to flush.
func sysEvict(fd int, off, n int64) error {
	if _, err := sysSync(fd, SyncFsync); err != nil && !errors.Is(err, unix.EROFS) {
		return err
	}
	return sysDrop(fd, off, n)
}

func adviseHuge([]byte) {}

func sysStatfs(fd int) (free, total int64, fsType string, err error) {
	var s unix.Statfs_t
	if err := retryEINTR(func() error { return unix.Fstatfs(fd, &s) }); err != nil {
		return 0, 0, "", err
	}
	unit := int64(s.Bsize)
	return int64(s.Bavail) * unit, int64(s.Blocks) * unit, unix.ByteSliceToString(s.Fstypename[:]), nil
}

func sysSpread(int) error { return ErrUnsupported }
