package attach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"dmgbench/internal/image/blockdev"
)

// Mount mounts the volume of an image that is attached. In mode fuse the volume
// is mounted as long as the image is attached: errors.ErrUnsupported.
func Mount(ctx context.Context, a Attached, req Request) (Attached, error) {
	s, r, err := find(ctx, a)
	if err != nil {
		return Attached{}, err
	}
	defer s.close()
	if r.Mode == ModeFUSE {
		return Attached{}, fmt.Errorf("mounting %q: without a block device, detach it and attach it again: %w",
			r.Image, errors.ErrUnsupported)
	}
	if now := r.present(); now.MountPoint != "" {
		return now, nil
	}
	// A file system may have been made since.
	if err := s.identifyPart(r); err != nil {
		return Attached{}, err
	}
	fs, _ := FilesystemOf(r.Filesystem)
	r.Owners = fs.Owners
	if err := s.mount(r, req); err != nil {
		return Attached{}, errors.Join(err, s.save(r))
	}
	s.prepareMounted(ctx, r, req)
	return r.present(), s.save(r)
}

// findPartition finds the device node of the volume.
func (s *store) findPartition(r *record, info *ImageInfo) error {
	parts, err := loopParts(r.Loop)
	if err != nil {
		return err
	}
	r.Partition = r.Device
	switch {
	case info.Table == nil && len(parts) > 0: // of a table that only the kernel knows
		r.Partition, r.Offset = parts[0].path, parts[0].offset
		return s.identifyPart(r)
	case info.mount < 0:
		return s.save(r)
	case len(parts) < len(info.Table.Partitions):
		if parts, err = addParts(r.Loop, info.Table.Partitions, parts); err != nil {
			return err
		}
	}
	off, size := info.extent()
	for _, p := range parts {
		if p.offset == off && p.size == size {
			r.Partition = p.path
			return s.save(r)
		}
	}
	return fmt.Errorf("finding the partition at %d of %q: the kernel sees others than the table has", off, r.Device)
}

// identifyPart finds out which volume the partition has now.
func (s *store) identifyPart(r *record) error {
	f, err := os.Open(r.Partition)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	found, err := Identify(blockdev.ReadOnly(f, size))
	if err != nil {
		return err
	}
	r.Filesystem, r.VolumeName = found.Kernel, found.Label
	return s.save(r)
}

// mount mounts the volume of a device.
func (s *store) mount(r *record, req Request) error {
	point, made, err := mountPoint(req, r.VolumeName, r.Image)
	if err != nil {
		return err
	}
	r.LastMountPoint, r.MadeMountPoint = point, made
	if err := s.save(r); err != nil {
		return err
	}
	err = mountDevice(r, point)
	if err != nil {
		s.removeMountPoint(r)
		r.LastMountPoint = ""
	}
	return err
}

// prepareMounted makes a new volume usable, and trims one that was mounted
// before.
func (s *store) prepareMounted(ctx context.Context, r *record, req Request) {
	if r.ReadOnly {
		return
	}
	if r.Owners {
		chownEmptyRoot(r.LastMountPoint)
	}
	if before := mountedBefore(r.ID); !before || req.NoTrim {
		return
	}
	began := wall.Now()
	n, err := Trim(ctx, r.LastMountPoint)
	r.Trimmed, r.TrimTime = n, wall.Now()-began
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		r.Warnings = append(r.Warnings, err.Error())
	}
}

// removeMountPoint removes a folder that was made to mount on; one that holds
// anything stays.
func (s *store) removeMountPoint(r *record) {
	if r.MadeMountPoint && r.LastMountPoint != "" {
		_ = os.Remove(r.LastMountPoint)
	}
	r.MadeMountPoint = false
}

// kernelDriver reports whether the kernel has a driver for the file system,
// built in, loaded or as a module.
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

// owner is the user that volumes without owners belong to, and that gets the
// root of a new volume.
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

// mountPoint returns the folder to mount on, as the kernel's table of mounts
// will have it, and whether it was made for that.
func mountPoint(req Request, label, image string) (point string, made bool, err error) {
	if req.MountPoint != "" {
		point = filepath.Clean(req.MountPoint)
		made = req.MakePoint && os.Mkdir(point, 0o755) == nil // else the Stat returns the error
		var info os.FileInfo
		if info, err = os.Stat(point); err == nil && !info.IsDir() {
			err = unix.ENOTDIR
		}
	} else {
		point, err = makeMountPoint(req, label, image)
		made = true
	}
	if err == nil {
		point, err = filepath.EvalSymlinks(point)
	}
	if err != nil {
		return "", false, fmt.Errorf("mounting on %q: %w", point, err)
	}
	return point, made, nil
}

// makeMountPoint makes a folder below the mount root, called like the volume.
func makeMountPoint(req Request, label, image string) (string, error) {
	root := req.MountRoot
	if root == "" {
		root = DefaultMountRoot()
		if err := os.MkdirAll(root, 0o755); err != nil {
			return root, err
		}
	}
	if req.RandomName {
		return os.MkdirTemp(root, "dmg.")
	}
	file := strings.TrimSuffix(filepath.Base(image), filepath.Ext(image))
	name := cmp.Or(folderName(label), folderName(file), "untitled")
	path := filepath.Join(root, name)
	err := os.Mkdir(path, 0o755)
	for i := 1; i < 1000 && errors.Is(err, os.ErrExist); i++ {
		path = filepath.Join(root, fmt.Sprintf("%s %d", name, i))
		err = os.Mkdir(path, 0o755)
	}
	return path, err
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
	return cut(name, 200)
}

// mountFlags protect the host from what is on an image, and reads from being
// writes.
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
	mount := func(data string) error {
		return retryEINTR(func() error { return unix.Mount(r.Partition, point, fs.Kernel, flags, data) })
	}
	err := mount(data)
	// After an unclean unmount the volume can only be read as it is: the log
	// cannot be replayed.
	if err != nil && r.ReadOnly && fs.replayless != "" && mount(fs.replayless) == nil {
		r.Warnings = append(r.Warnings, "the volume was not unmounted cleanly, and its log was not replayed")
		return nil
	}
	if err != nil {
		return fmt.Errorf("mounting %q on %q as %s: %w", r.Partition, point, fs.Kernel, err)
	}
	return nil
}

// noDriver is the error for a file system that cannot be mounted, empty for
// none.
func noDriver(fs string) error {
	if fs == "" {
		return ErrNoFileSystem
	}
	return &NoDriverError{fs}
}

// chownEmptyRoot makes the empty root of a new volume belong to the user who
// called sudo.
func chownEmptyRoot(point string) {
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

// withFile opens a file, folder or device for a call that a signal may
// interrupt.
func withFile(path string, call func(f *os.File) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return retryEINTR(func() error { return call(f) })
}

// syncVolume flushes the mounted file system.
func syncVolume(point string) error {
	return withFile(point, func(f *os.File) error { return unix.Syncfs(int(f.Fd())) })
}

// Requests of <linux/fs.h> and of ext4 and XFS. goingDown is EXT4_IOC_SHUTDOWN
// and XFS_IOC_GOINGDOWN, _IOR('X', 125, __u32); fitrim is FITRIM, _IOWR('X',
// 121, struct fstrim_range).
const (
	goingDown = 0x8004587d
	fitrim    = 0xc0185879
)

// trimArgument is struct fstrim_range, in bytes. The length comes back as what
// was trimmed.
type trimArgument struct{ start, length, smallest uint64 }

// shutDown makes a file system write back its log and fail all further writes.
// Only ext4, XFS and a few others can.
func shutDown(point string) error {
	how := uint32(1) // writes the log back first
	return withFile(point, func(f *os.File) error { return ioctl(f, goingDown, unsafe.Pointer(&how)) })
}

// Trim discards the unused blocks of the mounted volume and returns their size
// in bytes. It works for volumes that this program serves, too. The error
// matches errors.ErrUnsupported if the file system or its device cannot trim.
func Trim(ctx context.Context, mountpoint string) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	arg := trimArgument{length: ^uint64(0)}
	err := withFile(mountpoint, func(f *os.File) error { return ioctl(f, fitrim, unsafe.Pointer(&arg)) })
	if errors.Is(err, unix.ENOTTY) { // EOPNOTSUPP matches errors.ErrUnsupported already
		err = fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	if err != nil {
		return 0, fmt.Errorf("trimming %q: %w", mountpoint, err)
	}
	return int64(arg.length), nil
}

// Make makes an empty file system of the given name (see [FilesystemOf]) that a
// program of the host can make, on a device or file: the Partition of an image
// that is attached without mounting. It writes all structures in full and
// discards no blocks, so that no later initialisation disturbs a measurement. A
// label that is too long for the file system is cut. The error for a missing
// program names its package.
func Make(ctx context.Context, path, filesystem, label string) error {
	fs, ok := FilesystemOf(filesystem)
	if !ok || fs.Tool == "" {
		return fmt.Errorf("making %s: no program is known for that: %w", filesystem, errors.ErrUnsupported)
	}
	uid, gid := owner()
	return runTool(ctx, fs.Tool, fs.Package, append(fs.makeArgs(label, uid, gid), path)...)
}

// runTool runs a program of the host to its end; its output is part of the
// error.
func runTool(ctx context.Context, name, pkg string, args ...string) error {
	tool := findTool(name)
	if tool == "" {
		return fmt.Errorf("running %s: it is missing (Debian package %s): %w", name, pkg, exec.ErrNotFound)
	}
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return fmt.Errorf("running %s: %w: %s", name, err, strings.Join(strings.Fields(string(out)), " "))
}

// CanGrow returns why the file system of that name cannot be grown on this
// machine, nil if it can. A missing program is found by Grow.
func CanGrow(filesystem string) error {
	fs, _ := FilesystemOf(filesystem)
	switch {
	case fs.growTool == nil:
		return errors.New("they cannot be resized here")
	case !Loops():
		return errors.New("growing them needs loop devices and the rights of root")
	}
	return nil
}

// Grow enlarges the file system of an attached image to fill its partition,
// after image and partition were enlarged. A program of the host does that, not
// for exFAT, which package exfat grows. Those that only grow while mounted
// are mounted on a temporary folder for that, if they are not mounted.
func Grow(ctx context.Context, a Attached) error {
	fs, ok := FilesystemOf(a.Filesystem)
	switch {
	case !ok || fs.growTool == nil:
		return fmt.Errorf("growing %q: %w", a.Filesystem, errors.ErrUnsupported)
	case fs.growMounted && a.MountPoint == "":
		return growMounted(ctx, a)
	}
	target := a.MountPoint
	if !fs.growMounted {
		target = a.Partition
		// Without a check resize2fs refuses; status 1 of e2fsck: it corrected
		// something.
		err := runTool(ctx, "e2fsck", fs.Package, "-f", "-p", target)
		if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != 1) {
			return err
		}
	}
	return runTool(ctx, fs.growTool[0], fs.growTool[1], append(slices.Clone(fs.growTool[2:]), target)...)
}

// growMounted grows a volume on a temporary mount point.
func growMounted(ctx context.Context, a Attached) (err error) {
	point, err := os.MkdirTemp("", "dmgbench-grow-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(point)) }()
	mounted, err := Mount(ctx, a, Request{Image: a.Image, MountPoint: point, NoTrim: true})
	if err != nil {
		return err
	}
	return errors.Join(Grow(ctx, mounted), Unmount(context.WithoutCancel(ctx), mounted, false))
}
