package attach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unsafe"

	"golang.org/x/sys/unix"

	"dmgbench/internal/system/safetext"
)

// Mount mounts the volume of an attached image. If it is mounted, Mount changes
// nothing. In mode fuse it returns errors.ErrUnsupported, since the volume stays
// mounted as long as the image is attached.
func Mount(ctx context.Context, a Attached, req Request) (Attached, error) {
	s, r, err := openMountable(ctx, a)
	if err != nil {
		return Attached{}, err
	}
	defer s.close()
	if now := r.present(); now.MountPoint != "" {
		return now, nil
	}
	// A file system may have been made since the image was attached.
	if err := s.identifyPart(r); err != nil {
		return Attached{}, err
	}
	if err := s.mount(r, req); err != nil {
		return Attached{}, errors.Join(err, s.save(r))
	}
	prepareMounted(ctx, r)
	return r.present(), s.save(r)
}

// mount chooses or makes the mount point, saves the record and mounts the volume;
// after an error it removes the mount point again.
func (s *store) mount(r *record, req Request) (err error) {
	if r.LastMountPoint, r.MadeMountPoint, err = mountPoint(req, r.VolumeName, r.umask() == privateUmask); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			r.removeMountPoint()
		}
	}()
	kind, ok := FilesystemOf(r.Filesystem)
	switch err = s.save(r); {
	case err != nil:
		return err
	case !ok || !kind.MountableByKernel:
		return &NoDriverError{r.Filesystem}
	}
	flags, data := uintptr(mountFlags), kind.mountData
	if r.ReadOnly {
		flags |= unix.MS_RDONLY
	}
	if kind.userOwned {
		uid, gid := owner()
		data = fmt.Sprintf("uid=%d,gid=%d,umask=%03o", uid, gid, r.umask())
	}
	mount := func(data string) error {
		return retryEINTR(func() error { return unix.Mount(r.Partition, r.LastMountPoint, kind.Kernel, flags, data) })
	}
	// After an unclean unmount a read-only image can only be mounted without
	// replaying the log.
	if err = mount(data); err != nil && r.ReadOnly && kind.noReplay != "" && mount(kind.noReplay) == nil {
		r.Warnings = append(r.Warnings, "the volume was not unmounted cleanly, and its log was not replayed")
		return nil
	}
	if err != nil {
		return fmt.Errorf("mounting %q on %q as %s: %w", r.Partition, r.LastMountPoint, kind.Kernel, err)
	}
	points, err := r.checkMounted()
	if err != nil && len(points) > 0 {
		err = errors.Join(err, unmount(context.Background(), points[0]))
	}
	return err
}

// checkMounted returns an error if the volume is mounted somewhere else than it
// should, as when the owner of a folder of the path has replaced it by a link,
// and where.
func (r *record) checkMounted() ([]string, error) {
	points, err := r.mountPoints()
	if err == nil && !slices.Contains(points, r.LastMountPoint) {
		err = fmt.Errorf("mounting on %q: it was replaced, the volume is at %q", r.LastMountPoint, points)
	}
	return points, err
}

// prepareMounted gives the root of an empty volume to the user, and trims a volume
// that was mounted before since the host was started.
func prepareMounted(ctx context.Context, r *record) {
	if r.ReadOnly {
		return
	}
	if uid, gid := owner(); r.Owners && uid != 0 {
		entries, err := os.ReadDir(r.LastMountPoint)
		used := slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() != "lost+found" })
		if err == nil && !used {
			// Without this the user could only write with sudo.
			_ = os.Chown(r.LastMountPoint, uid, gid)
		}
	}
	seen, err := mountedBefore(r.ID)
	if err == nil && seen {
		r.Trimmed, err = Trim(ctx, r.LastMountPoint)
	}
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		r.Warnings = append(r.Warnings, err.Error())
	}
}

// maxSeen is of how many images is known that they were mounted before.
const maxSeen = 1000

// mountedBefore reports whether this is not the first mount of an image since the
// host was started. An empty folder for each image, lost when the host is
// restarted, records it; of too many one goes, and its image is not trimmed once.
func mountedBefore(id string) (bool, error) {
	seen, err := makePrivate(filepath.Join(RuntimeDir(), "seen"))
	if err != nil {
		return false, err
	}
	err = os.Mkdir(filepath.Join(seen, id), 0o700)
	if errors.Is(err, os.ErrExist) {
		return true, nil
	}
	if list, _ := os.ReadDir(seen); len(list) > maxSeen {
		_ = os.Remove(filepath.Join(seen, list[rand.IntN(len(list))].Name()))
	}
	return false, err
}

// kernelDriver reports whether the kernel has a driver for the file system,
// built in, loaded or as a module.
func kernelDriver(name string) bool {
	listed, _ := os.ReadFile("/proc/filesystems")
	if slices.Contains(strings.Fields(string(listed)), name) {
		return true
	}
	var uts unix.Utsname
	_ = unix.Uname(&uts) // fails only for a bad address
	release := unix.ByteSliceToString(uts.Release[:])
	for _, file := range []string{"modules.dep", "modules.builtin"} {
		list, _ := os.ReadFile(filepath.Join("/lib/modules", release, file))
		if strings.Contains(string(list), "/"+name+".ko") {
			return true
		}
	}
	return false
}

// owner returns the user to whom volumes without owners and the root folders of
// new volumes belong: under sudo the one who called it.
func owner() (uid, gid int) {
	if uid = os.Geteuid(); uid == 0 {
		u, err1 := strconv.ParseUint(os.Getenv("SUDO_UID"), 10, 31)
		g, err2 := strconv.ParseUint(os.Getenv("SUDO_GID"), 10, 31)
		if err1 == nil && err2 == nil {
			return int(u), int(g)
		}
	}
	return uid, os.Getegid()
}

// mountPoint returns the folder to mount on, with symbolic links resolved as in
// the kernel's table of mounts, and whether this call made it: below the mount
// root and named after the volume, unless the request names it, by a path without
// links.
func mountPoint(req Request, label string, private bool) (point string, made bool, err error) {
	root := req.MountRoot
	if root == "" && req.MountPoint == "" {
		root, err = makeMountRoot(private)
	}
	switch made = true; {
	case err != nil:
	case req.MountPoint != "":
		point = req.MountPoint
		made = os.Mkdir(point, 0o755) == nil // EvalSymlinks reports a folder that is missing
	case req.RandomName:
		point, err = os.MkdirTemp(root, "dmg.")
	default:
		file := strings.TrimSuffix(filepath.Base(req.Image), filepath.Ext(req.Image))
		name := filepath.Join(root, cmp.Or(folderName(label), folderName(file), "untitled"))
		point, err = name, os.Mkdir(name, 0o755)
		for i := 1; i < 1000 && errors.Is(err, os.ErrExist); i++ {
			point = fmt.Sprintf("%s %d", name, i)
			err = os.Mkdir(point, 0o755)
		}
	}
	if err == nil {
		point, err = filepath.EvalSymlinks(point)
	}
	if err == nil && req.MountPoint != "" && point != req.MountPoint {
		err = fmt.Errorf("it leads to %q now: %w", point, fs.ErrPermission)
	}
	if err != nil {
		return "", false, fmt.Errorf("mounting on %q: %w", cmp.Or(point, req.MountPoint, root), err)
	}
	return point, made, nil
}

// makeMountRoot makes the default mount root. That of root, in which all users
// see the volumes, has one beside it for private ones, which only the owner of
// the volumes can enter.
func makeMountRoot(private bool) (string, error) {
	root := DefaultMountRoot()
	if root != rootsMounts {
		return makePrivate(root)
	}
	if !private {
		return root, os.MkdirAll(root, 0o755)
	}
	uid, gid := owner()
	root = fmt.Sprintf("%s-%d", root, uid)
	if err := os.MkdirAll(filepath.Dir(root), 0o755); err != nil {
		return "", err
	}
	err := os.Mkdir(root, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return root, nil
	}
	return root, errors.Join(err, os.Chown(root, uid, gid))
}

// folderName turns a label into a component of a path of at most 200 bytes; it can
// be empty.
func folderName(label string) string {
	name := strings.Map(func(r rune) rune {
		if r == '/' || unicode.IsControl(r) || safetext.IsHidden(r) {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(label, "_"))
	return cut(strings.TrimLeft(strings.TrimSpace(name), "."), 200)
}

// mountFlags ignore set-user-ID bits and device files of an image, and keep reads
// from writing access times.
const mountFlags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOATIME

// unmount unmounts what is mounted on the folder; the error for a busy one
// names who holds it.
func unmount(ctx context.Context, point string) error {
	err := retryEINTR(func() error { return unix.Unmount(point, unix.UMOUNT_NOFOLLOW) })
	if errors.Is(err, unix.EPERM) && os.Geteuid() != 0 {
		err = fusermount(ctx, point)
	}
	switch {
	case errors.Is(err, unix.EBUSY):
		err = busyError(point, holders(point))
	case err == nil, errors.Is(err, unix.EINVAL): // not mounted any more
		return nil
	}
	return fmt.Errorf("unmounting %q: %w", point, err)
}

// fusermount unmounts a FUSE mount for a user without the right to call umount(2).
// It returns EBUSY if it fails while processes use the folder.
func fusermount(ctx context.Context, point string, flags ...string) error {
	err := runTool(ctx, cmp.Or(findTool("fusermount3"), "fusermount"), "fuse3",
		append(append([]string{"-u"}, flags...), "--", point)...)
	if err != nil && len(holders(point)) > 0 {
		return unix.EBUSY
	}
	return err
}

// syncVolume flushes the mounted file system.
func syncVolume(point string) error {
	return withFile(point, func(f *os.File) error { return unix.Syncfs(int(f.Fd())) })
}

// Requests of ioctl. goingDown is EXT4_IOC_SHUTDOWN and XFS_IOC_GOINGDOWN,
// _IOR('X', 125, __u32); fitrim is FITRIM of <linux/fs.h>, _IOWR('X', 121,
// struct fstrim_range).
const (
	goingDown = 0x8004587d
	fitrim    = 0xc0185879
)

// trimArgument is struct fstrim_range, in bytes. The call sets length to what was
// trimmed.
type trimArgument struct{ start, length, minLength uint64 }

// Trim discards the unused blocks of the mounted volume and returns their size
// in bytes. It also works for volumes that this program serves by FUSE. The error
// matches errors.ErrUnsupported if the file system or its device cannot trim.
func Trim(ctx context.Context, mountpoint string) (int64, error) {
	arg := trimArgument{length: ^uint64(0)}
	err := within(ctx, time.Hour, "", func() error {
		return withFile(mountpoint, func(f *os.File) error { return ioctl(f, fitrim, unsafe.Pointer(&arg)) })
	})
	if errors.Is(err, unix.ENOTTY) { // EOPNOTSUPP matches errors.ErrUnsupported already
		err = fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	if err != nil {
		return 0, fmt.Errorf("trimming %q: %w", mountpoint, err)
	}
	return int64(arg.length), nil
}

// Make runs the host's program that makes an empty file system of the given name
// (see [FilesystemOf]) on a device or file, such as the Partition of an image that
// is attached and not mounted. It writes all structures in full and discards no
// blocks, so that no later initialisation disturbs a benchmark. A label that is
// too long for the file system is cut. The error for a missing program names its
// package.
func Make(ctx context.Context, path, filesystem, label string) error {
	fs, ok := FilesystemOf(filesystem)
	if !ok || fs.Tool == "" {
		return fmt.Errorf("making %s: no program that makes it is known: %w", filesystem, errors.ErrUnsupported)
	}
	uid, gid := owner()
	if fs.MaxLabel > 0 {
		label = cut(label, fs.MaxLabel)
	}
	fill := strings.NewReplacer("LABEL", label, "UPPER", strings.ToUpper(label), "UID", strconv.Itoa(uid),
		"GID", strconv.Itoa(gid))
	args := strings.Fields(fs.makeArgs)
	for i := range args {
		args[i] = fill.Replace(args[i])
	}
	return runTool(ctx, fs.Tool, fs.Package, append(args, path)...)
}

// runTool runs a program of the host and waits for it; its output is part of the
// error.
func runTool(ctx context.Context, name, pkg string, args ...string) error {
	tool := findTool(name)
	if tool == "" {
		return fmt.Errorf("running %s: not installed (Debian package %s): %w", name, pkg, exec.ErrNotFound)
	}
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	output := strings.Join(strings.Fields(string(out)), " ")
	return fmt.Errorf("running %s: %w: %s", name, cmp.Or(ctx.Err(), err), output)
}

// CheckGrow returns why the file system of that name cannot be grown on this
// machine, nil if it can. It does not check that the program is installed.
func CheckGrow(filesystem string) error {
	fs, _ := FilesystemOf(filesystem)
	switch {
	case fs.growTool == "":
		return errors.New("this file system cannot be resized here")
	case !Loops():
		return errors.New("growing this file system needs loop devices and the rights of root")
	}
	return nil
}

// Grow enlarges the file system of an attached image to fill its partition,
// after image and partition were enlarged, by a program of the host; exFAT, which
// package exfat grows, is errors.ErrUnsupported. A file system that only grows
// while mounted is mounted meanwhile, and not mounted afterwards.
func Grow(ctx context.Context, a Attached) (err error) {
	fs, _ := FilesystemOf(a.Filesystem)
	if fs.growTool == "" {
		return fmt.Errorf("growing %q: %w", a.Filesystem, errors.ErrUnsupported)
	}
	target := a.Partition
	if fs.growMounted {
		if a, err = Mount(ctx, a, Request{Image: a.Image}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, Unmount(context.WithoutCancel(ctx), a, false)) }()
		target = a.MountPoint
	} else {
		// Without a check resize2fs refuses; status 1 of e2fsck: it corrected
		// something.
		err := runTool(ctx, "e2fsck", fs.Package, "-f", "-p", target)
		if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != 1) {
			return err
		}
	}
	tool := append(strings.Fields(fs.growTool), target)
	return runTool(ctx, tool[0], fs.Package, tool[1:]...)
}
