package attach

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernelDriver reports whether the kernel has a driver for the file system, built in, loaded or as a module.
func kernelDriver(name string) bool {
	listed, _ := os.ReadFile("/proc/filesystems")
	for line := range strings.Lines(string(listed)) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[len(fields)-1] == name {
			return true
		}
	}
	var uts unix.Utsname
	if unix.Uname(&uts) != nil {
		return false
	}
	release := unix.ByteSliceToString(uts.Release[:])
	for _, file := range []string{"modules.dep", "modules.builtin"} {
		list, _ := os.ReadFile(filepath.Join("/lib/modules", release, file))
		if strings.Contains(string(list), "/"+name+".ko") {
			return true
		}
	}
	return false
}

// owner is whom volumes without owners belong to, and whom the root of a new volume is given to.
func owner() (uid, gid int) {
	uid, gid = os.Geteuid(), os.Getegid()
	if uid != 0 {
		return uid, gid
	}
	u, err1 := strconv.ParseUint(os.Getenv("SUDO_UID"), 10, 31)
	g, err2 := strconv.ParseUint(os.Getenv("SUDO_GID"), 10, 31)
	if err1 != nil || err2 != nil {
		return uid, gid
	}
	return int(u), int(g)
}

// mountPoint returns the folder to mount on, as the kernel's table of mounts will have it, and whether it was made for
// that.
func mountPoint(req Request, label, image string) (string, bool, error) {
	point, made, err := chooseMountPoint(req, label, image)
	if err != nil {
		return "", false, err
	}
	real, err := filepath.EvalSymlinks(point)
	if err != nil {
		return "", false, fmt.Errorf("mounting on %q: %w", point, err)
	}
	return real, made, nil
}

// chooseMountPoint returns the folder of the request, or makes one below the mount root.
func chooseMountPoint(req Request, label, image string) (string, bool, error) {
	if req.MountPoint != "" {
		made := req.MakePoint && os.Mkdir(req.MountPoint, 0o755) == nil // else the Stat below returns the error
		info, err := os.Stat(req.MountPoint)
		if err == nil && !info.IsDir() {
			err = unix.ENOTDIR
		}
		if err != nil {
			return "", false, fmt.Errorf("mounting on %q: %w", req.MountPoint, err)
		}
		return filepath.Clean(req.MountPoint), made, nil
	}
	root := req.MountRoot
	if root == "" {
		root = DefaultMountRoot()
		if err := os.MkdirAll(root, 0o755); err != nil {
			return "", false, fmt.Errorf("making the folder for volumes: %w", err)
		}
	}
	if req.RandomName {
		path, err := os.MkdirTemp(root, "dmg.")
		if err != nil {
			return "", false, fmt.Errorf("making a mount point: %w", err)
		}
		return path, true, nil
	}
	name := folderName(label)
	if name == "" {
		name = folderName(strings.TrimSuffix(filepath.Base(image), filepath.Ext(image)))
	}
	if name == "" {
		name = "untitled"
	}
	for i := range 1000 {
		path := filepath.Join(root, name)
		if i > 0 {
			path += " " + strconv.Itoa(i)
		}
		err := os.Mkdir(path, 0o755)
		if err == nil {
			return path, true, nil
		}
		if !errors.Is(err, os.ErrExist) {
			return "", false, fmt.Errorf("making a mount point: %w", err)
		}
	}
	return "", false, fmt.Errorf("making a mount point in %q: every name is taken: %w", root, os.ErrExist)
}

// folderName makes one component of a path of a label, whatever it holds.
func folderName(label string) string {
	name := strings.Map(func(r rune) rune {
		if r == '/' || r < ' ' || r == 0x7f {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(label, "_"))
	name = strings.TrimLeft(strings.TrimSpace(name), ".")
	return cut(name, 200, false)
}

const mountFlags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOATIME

// mountDevice mounts the partition of the record on the folder.
func mountDevice(r *record, point string) error {
	fs, ok := FilesystemOf(r.Filesystem)
	if !ok || !fs.MountableByKernel {
		return noDriver(r.Filesystem)
	}
	flags, data := uintptr(mountFlags), fs.mountData
	if r.ReadOnly {
		flags |= unix.MS_RDONLY
	}
	if fs.userOwned {
		uid, gid := owner()
		data = fmt.Sprintf("uid=%d,gid=%d,umask=022", uid, gid)
	}
	err := retryEINTR(func() error { return unix.Mount(r.Partition, point, fs.Kernel, flags, data) })
	if err != nil && r.ReadOnly && fs.replayless != "" {
		// After an unclean unmount the volume can only be read as it is: the log cannot be replayed.
		if retryEINTR(func() error { return unix.Mount(r.Partition, point, fs.Kernel, flags, fs.replayless) }) == nil {
			r.Warnings = append(r.Warnings, "the volume was not unmounted cleanly, and its log was not replayed")
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("mounting %q on %q as %s: %w", r.Partition, point, fs.Kernel, err)
	}
	return nil
}

// noDriver is the error for a file system that cannot be mounted, empty for none.
func noDriver(fs string) error {
	if fs == "" {
		return ErrNoFileSystem
	}
	return &NoDriverError{fs}
}

// giveAway makes the empty root of a new volume belong to the user who called sudo.
func giveAway(point string) {
	uid, gid := owner()
	if uid == 0 {
		return
	}
	entries, err := os.ReadDir(point)
	for _, e := range entries {
		if e.Name() != "lost+found" {
			return
		}
	}
	if err == nil {
		// Without it the user has to use sudo, as for any other volume.
		_ = os.Chown(point, uid, gid)
	}
}

// unmount unmounts what is mounted on the folder; the error for a busy one names who holds it.
func unmount(point string) error {
	err := retryEINTR(func() error { return unix.Unmount(point, unix.UMOUNT_NOFOLLOW) })
	switch {
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("unmounting: %w", &BusyError{What: point, Holders: holders(point)})
	case errors.Is(err, unix.EPERM) && os.Geteuid() != 0:
		return fusermount(point)
	case errors.Is(err, unix.EINVAL): // not mounted any more
		return nil
	case err != nil:
		return fmt.Errorf("unmounting %q: %w", point, err)
	}
	return nil
}

// goingDown is EXT4_IOC_SHUTDOWN and XFS_IOC_GOINGDOWN, _IOR('X', 125, __u32); 1 writes the log back first.
const goingDown = 0x8004587d

// forceUnmount unmounts a volume that is in use. It flushes first, and then shuts the file system down: until the last
// user has closed it, it stays mounted without a mount point, and must not write to an image that is free.
func forceUnmount(point string, flush bool) (lost Lost) {
	if flush {
		if err := within(30*time.Second, func() error { return syncVolume(point) }); err != nil {
			lost = append(lost, notSaved(point, err))
		}
	}
	if err := unix.Unmount(point, unix.UMOUNT_NOFOLLOW); err == nil {
		return lost
	}
	for _, h := range holders(point) {
		lost = append(lost, openFiles(h, point))
	}
	_ = within(10*time.Second, func() error { return shutDown(point) })
	if err := unix.Unmount(point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && os.Geteuid() != 0 {
		_ = fusermount(point, "-z")
	}
	return lost
}

// openFiles is a line of Lost about a process with open files.
func openFiles(h Holder, point string) string {
	return fmt.Sprintf("files that %s (process %d) has open on %q", h.Command, h.PID, point)
}

// syncVolume flushes the mounted file system.
func syncVolume(point string) error {
	f, err := os.Open(point)
	if err != nil {
		return err
	}
	defer f.Close()
	return retryEINTR(func() error { return unix.Syncfs(int(f.Fd())) })
}

// shutDown makes a file system write back its log and fail all further writes. Only ext4, XFS and a few others can.
func shutDown(point string) error {
	f, err := os.Open(point)
	if err != nil {
		return err
	}
	defer f.Close()
	how := uint32(1)
	_, _, e := unix.Syscall(unix.SYS_IOCTL, f.Fd(), goingDown, uintptr(unsafe.Pointer(&how)))
	if e != 0 {
		return e
	}
	return nil
}

// fitrim is FITRIM of <linux/fs.h>, _IOWR('X', 121, struct fstrim_range).
const fitrim = 0xc0185879

// Trim discards the unused blocks of the mounted volume and returns their size in bytes. It works for volumes that
// this program serves, too. The error matches errors.ErrUnsupported if the file system or its device cannot trim.
func Trim(ctx context.Context, mountpoint string) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	f, err := os.Open(mountpoint)
	if err != nil {
		return 0, fmt.Errorf("trimming %q: %w", mountpoint, err)
	}
	defer f.Close()
	// start, length, shortest piece; the length comes back as what was trimmed.
	arg := [3]uint64{0, ^uint64(0), 0}
	err = retryEINTR(func() error {
		_, _, e := unix.Syscall(unix.SYS_IOCTL, f.Fd(), fitrim, uintptr(unsafe.Pointer(&arg)))
		if e != 0 {
			return e
		}
		return nil
	})
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOTTY) {
		err = fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	if err != nil {
		return 0, fmt.Errorf("trimming %q: %w", mountpoint, err)
	}
	return int64(arg[1]), nil
}

// trimRange reads the argument of FITRIM as the FUSE server gets it.
func trimRange(b []byte) (start, length, smallest uint64, ok bool) {
	if len(b) < 24 {
		return 0, 0, 0, false
	}
	le := binary.NativeEndian
	return le.Uint64(b), le.Uint64(b[8:]), le.Uint64(b[16:]), true
}
