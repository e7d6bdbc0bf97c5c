package hostio

import (
	"errors"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// openDirect adds a descriptor for direct transfers, where the kernel has such
// for the file.
func (f *File) openDirect(dir int, base string, flags int, st Stat) error {
	var sf unix.Statfs_t
	if err := retryEINTR(func() error { return unix.Fstatfs(f.fd, &sf) }); err != nil {
		return err
	}
	// tmpfs and ramfs are the page cache: they accept O_DIRECT and ignore it.
	if uint32(sf.Type) == unix.TMPFS_MAGIC || uint32(sf.Type) == unix.RAMFS_MAGIC {
		return nil
	}
	// The alignment that the kernel asks of direct transfers, 0 if there are none:
	// STATX_DIOALIGN, Linux 6.1 and later.
	mem, off := defaultAlign, defaultAlign
	var sx unix.Statx_t
	err := retryEINTR(func() error { return unix.Statx(f.fd, "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &sx) })
	if err == nil && sx.Mask&unix.STATX_DIOALIGN != 0 {
		mem, off = int(sx.Dio_mem_align), int(sx.Dio_offset_align)
	}
	if off == 0 {
		return nil
	}
	fd, err := openat(dir, base, flags|unix.O_DIRECT, 0)
	if errors.Is(err, unix.EINVAL) {
		return nil
	}
	if err != nil {
		return err
	}
	if now, err := sysFstat(fd); err != nil || !now.Same(st) {
		unix.Close(fd)
		return ErrReplaced
	}
	f.direct, f.cache, f.mem, f.off = fd, CacheDirect, mem, off
	// Direct writes below the file system's block make ext4 and xfs take an
	// exclusive lock and zero the rest of the block themselves.
	f.unit = max(off, int(min(st.BlockSize, 4096)))
	return nil
}

// defaultAlign is the alignment where the kernel does not report one, in bytes:
// kernels before 6.1 refuse less on a disk, or a dm-crypt device, of 4096-byte
// blocks, and btrfs takes it and goes through the page cache without a word.
const defaultAlign = 4096

// Calls of vectored.
const (
	callReadv  = unix.SYS_PREADV
	callWritev = unix.SYS_PWRITEV
)

// vectored is preadv(2) or pwritev(2) without the allocation that x/sys makes.
// Parts of no length are left out.
func vectored(call uintptr, fd int, parts [3][]byte, off int64) (int, error) {
	var iov [3]unix.Iovec
	n := 0
	for _, p := range parts {
		if len(p) > 0 {
			iov[n].Base = unsafe.SliceData(p)
			iov[n].SetLen(len(p))
			n++
		}
	}
	// The offset goes as two halves of a long; on 64 bits the first holds all.
	low, high := uintptr(off), uintptr(uint64(off)>>(strconv.IntSize/2)>>(strconv.IntSize/2))
	for {
		m, _, e := unix.Syscall6(call, uintptr(fd), uintptr(unsafe.Pointer(&iov[0])), uintptr(n), low, high, 0)
		if e == 0 {
			return int(m), nil
		}
		if e != unix.EINTR {
			return 0, e
		}
	}
}

func sysSync(fd int, _ SyncMode) (SyncMode, error) {
	if err := retryEINTR(func() error { return unix.Fsync(fd) }); err != nil {
		return SyncNone, err
	}
	return SyncFull, nil
}

func sysAllocate(fd int, off, n int64) error {
	return unsupported(retryEINTR(func() error { return unix.Fallocate(fd, 0, off, n) }))
}

func sysPunch(fd int, off, n int64) error {
	const mode = unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE
	return unsupported(retryEINTR(func() error { return unix.Fallocate(fd, mode, off, n) }))
}

// sysDrop drops clean pages. Whole pages only, so the range is widened: what
// is dirty stays.
func sysDrop(fd int, off, n int64) error {
	page := int64(unix.Getpagesize())
	start := off - off%page
	if n > 0 {
		n = roundUp(off+n, page) - start
	}
	return retryEINTR(func() error { return unix.Fadvise(fd, start, n, unix.FADV_DONTNEED) })
}

func sysEvict(fd int, off, n int64) error {
	const writeBack = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
	err := unsupported(retryEINTR(func() error { return unix.SyncFileRange(fd, off, n, writeBack) }))
	if errors.Is(err, ErrUnsupported) {
		_, err = sysSync(fd, SyncFsync)
	}
	if err != nil {
		return err
	}
	return sysDrop(fd, off, n)
}

func adviseHuge(mem []byte) {
	// Advice: kernels without transparent huge pages refuse it, which costs
	// speed only.
	_ = unix.Madvise(mem, unix.MADV_HUGEPAGE)
}

// fsTypes names the file systems that hosts of disk images are likely to
// have, by the magic numbers of statfs(2).
var fsTypes = map[uint32]string{
	unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs",
	unix.TMPFS_MAGIC: "tmpfs", unix.RAMFS_MAGIC: "ramfs", unix.OVERLAYFS_SUPER_MAGIC: "overlay",
	unix.F2FS_SUPER_MAGIC: "f2fs", unix.NFS_SUPER_MAGIC: "nfs", unix.FUSE_SUPER_MAGIC: "fuse",
	unix.MSDOS_SUPER_MAGIC: "vfat", unix.EXFAT_SUPER_MAGIC: "exfat", unix.V9FS_MAGIC: "9p",
	unix.SMB2_SUPER_MAGIC: "smb2", unix.CIFS_SUPER_MAGIC: "cifs", 0x2fc12fc1: "zfs", 0xca451a4e: "bcachefs",
	0x5346544e: "ntfs", 0x7366746e: "ntfs3", 0x6a656a63: "fakeowner",
}

func sysStatfs(fd int) (free, total int64, fsType string, err error) {
	var s unix.Statfs_t
	if err := retryEINTR(func() error { return unix.Fstatfs(fd, &s) }); err != nil {
		return 0, 0, "", err
	}
	unit := int64(s.Frsize)
	name, known := fsTypes[uint32(s.Type)]
	if !known {
		name = "0x" + strconv.FormatUint(uint64(uint32(s.Type)), 16)
	}
	return int64(s.Bavail) * unit, int64(s.Blocks) * unit, name, nil
}

// topDir is FS_TOPDIR_FL of <linux/fs.h>: the Orlov allocator treats the
// folder's sub-folders as unrelated to each other.
const topDir = 0x00020000

func sysSpread(fd int) error {
	flags, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, int(flags|topDir))
	}
	return unsupported(err, unix.ENOTTY, unix.EINVAL)
}
