// Package attach makes an image on Linux what it is on a Mac: a block device
// with partitions, and a mounted volume.
//
// # How
//
// A raw image (UDRW) becomes a loop device as it is. Every other container is
// served by a process of its own as the one file of a FUSE file system, and
// that file becomes the loop device. Partitions are the kernel's own scan of
// the device. Without loop devices, or a driver for exFAT in the kernel, the
// same process serves the files of an exFAT volume directly. [Attached].Mode is
// one of these three.
//
// Encrypted images, raw ones too, are always served: their process has the
// keys, the device shows the content. Their passphrases and keys are in no
// argument, environment or file: the keys are derived once, before the process
// is started, and reach it through a pipe.
//
// The state of attachments is in the runtime folder (see [RuntimeDir]), one
// file each with a lock of its own; it is compared with the kernel before
// anything is done to a device. Every wait for a serving process has a bound and
// ends with the context, and no other image waits meanwhile. A serving process that died is noticed by the
// next call of [List], [Attach] or [Detach], and its device and mounts are
// removed.
//
// # What it decides
//
// Volumes are mounted nosuid, nodev and noatime, below /run/media/dmgbench for
// root and below the runtime folder for others, in a folder named after the
// volume ("Name 1" and so on where that is taken). Only the file systems of
// [Filesystems] are mounted. Ownership is what the file system stores, since
// Linux has no "noowners": for exFAT and FAT32 everything belongs to the user
// who attached (under sudo: the one who called sudo), and the empty root of a
// new volume is given to that user. The volume of an image that others may not
// read, or that is encrypted, is closed to them. From the second mount of a volume on it is
// trimmed when it is attached, as macOS does.
//
// # What it refuses
//
// It attaches no image twice and touches no device, mount or process that is
// not provably its own. It uses no runtime folder that another user could
// replace or change. It mounts no file system that is not on the list, and
// never another one than is there. Other systems than Linux get
// errors.ErrUnsupported.
package attach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"

	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/container"
	"dmgbench/internal/image/container/crypt"
	"dmgbench/internal/image/exfat"
	"dmgbench/internal/image/gpt"
	"dmgbench/internal/system/hostio"
)

// HelperVerb is the hidden first argument with which the program is started
// again as the process that serves an image; see [HelperMain].
const HelperVerb = "__attach-helper"

// The modes of an attachment.
const (
	// ModeLoop means that the image file itself is a loop device.
	ModeLoop = "loop"
	// ModeFUSELoop means that a FUSE file over the container is a loop device.
	ModeFUSELoop = "fuse+loop"
	// ModeFUSE means that no block device exists: FUSE serves the files of an
	// exFAT volume, or with NoMount the device as a file.
	ModeFUSE = "fuse"
)

// Who serves the blocks of an attached image, as Apple's attach -kernel and
// -nokernel request it.
const (
	// ServedByAny leaves it to the kernel where it can, else a helper process
	// serves.
	ServedByAny = ""
	// ServedByKernel takes no helper process: only an unencrypted UDRW image
	// can be attached so, as a loop device.
	ServedByKernel = "kernel"
	// ServedByHelper takes a process of this program, even for an image that
	// the kernel could serve.
	ServedByHelper = "helper"
)

// Request is an image to be attached, and how.
type Request struct {
	// Image is the absolute path of the container.
	Image    string
	ReadOnly bool
	NoMount  bool
	// ServedBy is ServedByAny, ServedByKernel or ServedByHelper.
	ServedBy string
	// MountPoint is the folder to mount on, which is made if it is missing (but
	// not its parent), and then removed when it is unmounted. If it is empty, a
	// new one is made below MountRoot.
	MountPoint string
	// MountRoot is an existing folder; empty for [DefaultMountRoot].
	MountRoot string
	// RandomName calls the new folder "dmg." and a random number, not like the
	// volume.
	RandomName bool
	// Temporary is for an attachment that only this process uses: when it has
	// died, the image is released as if it had detached.
	Temporary bool
	// Info is what the caller found in the image, see [Inspect]: Attach opens it
	// only to serve it.
	Info *ImageInfo
	// Keys of an encrypted image, see [container.UnwrapKeys]. They reach the
	// serving process through a pipe, and are left as they are.
	Keys crypt.Keys
}

// Attached is an image that is attached.
type Attached struct {
	// ID identifies the container's file or folder, on this boot.
	ID string
	// Image is the path of the request.
	Image string
	// Format is the four-letter name, such as UDSB.
	Format string
	// Device is the whole disk: /dev/loop3, or in mode fuse a path that only
	// names it.
	Device string
	// Partition is the device of the volume: /dev/loop3p1, Device itself
	// without partitions, or in mode fuse the FUSE file.
	Partition string
	// MountPoint is empty when the volume is not mounted.
	MountPoint string
	// Filesystem is the kernel's name: ext4, xfs, btrfs, exfat, vfat, hfsplus;
	// empty when none was recognised.
	Filesystem string
	// VolumeName is the label in the file system.
	VolumeName string
	// HelperPID is the serving process, 0 in mode loop.
	HelperPID int
	ReadOnly  bool
	// Size of the device in bytes.
	Size int64
	// Mode is ModeLoop, ModeFUSELoop or ModeFUSE.
	Mode string
	// Dead means that the serving process had died, or its device was gone;
	// what was left has been cleaned up.
	Dead bool
	// Unfinished means, with Dead, that the command that attached died before
	// it was done.
	Unfinished bool
	// Owners means that the file system has owners of files.
	Owners    bool
	Encrypted bool
	// Scheme, Hint and Parts are the partition scheme, the content hint of an
	// undivided device, and the partitions of a GUID table, as they were when the
	// image was attached.
	Scheme, Hint string
	Parts        []Part
	// Trimmed is how many bytes the trim at this mount gave back.
	Trimmed int64
	// Warnings are for the user who attached.
	Warnings []string
}

// Part is a partition of an attached image: its number from 1, its content hint,
// and the GUID of its type.
type Part struct {
	Number     int
	Hint, Type string
}

// Lost lists what a detach could not save, in words; empty if everything
// written before is in the container.
type Lost []string

// NoDriverError reports a file system that this kernel cannot mount. It is
// [ErrNoFileSystem].
type NoDriverError struct {
	Filesystem string // as [Attached] has it; empty if none was found
}

func (e *NoDriverError) Error() string {
	if e.Filesystem == "" {
		return ErrNoFileSystem.Error()
	}
	return fmt.Sprintf("the volume is %s, and the kernel has no driver for it: %v", e.Filesystem, ErrNoFileSystem)
}

func (e *NoDriverError) Unwrap() error { return ErrNoFileSystem }

// Conditions that callers branch on.
var (
	// ErrNoFileSystem: the image has no volume that can be mounted here.
	ErrNoFileSystem = errors.New("no mountable file systems")
	// ErrNotAttached: the attachment does not exist any more.
	ErrNotAttached = errors.New("not attached")
	// ErrNoLoop: an image needs a loop device, and the user cannot have one.
	ErrNoLoop = errors.New("no loop device is available: it takes root and /dev/loop-control")
	// ErrNoFUSE: the image has to be served by FUSE, and the user cannot use it.
	ErrNoFUSE = errors.New("FUSE is not available")
)

// FUSEHint is what helps after [ErrNoFUSE].
const FUSEHint = "load the module fuse (modprobe fuse), and let the user and the container open /dev/fuse"

// layerErrnos are the numbers of errors of the layers below, which win over the
// number that an error carries; hostErrnos are those of the general errors,
// which errors with a number of their own match too.
var (
	layerErrnos = []errnoRow{
		{exfat.ErrNoSpace, syscall.ENOSPC}, {exfat.ErrNotEmpty, syscall.ENOTEMPTY}, {exfat.ErrIsDir, syscall.EISDIR},
		{exfat.ErrNotDir, syscall.ENOTDIR}, {exfat.ErrBusy, syscall.EBUSY}, {exfat.ErrName, syscall.EINVAL},
		{exfat.ErrReadOnly, syscall.EROFS}, {container.ErrReadOnly, syscall.EROFS},
		{container.ErrInUse, syscall.EAGAIN}, {hostio.ErrLocked, syscall.EAGAIN}, {syscall.EBUSY, syscall.EBUSY},
		{gpt.ErrTooSmall, syscall.EINVAL}, {blockdev.ErrOutOfRange, syscall.EINVAL}, {context.Canceled, syscall.EINTR},
		{errors.ErrUnsupported, syscall.EOPNOTSUPP},
	}
	hostErrnos = []errnoRow{
		{fs.ErrExist, syscall.EEXIST}, {fs.ErrNotExist, syscall.ENOENT},
		{fs.ErrPermission, syscall.EACCES}, {fs.ErrInvalid, syscall.EINVAL},
	}
)

type errnoRow struct {
	err   error
	errno syscall.Errno
}

// Errno is the system's error number of an error of the layers below, 0 for an
// error without one.
func Errno(err error) syscall.Errno {
	find := func(rows []errnoRow) syscall.Errno {
		i := slices.IndexFunc(rows, func(r errnoRow) bool { return errors.Is(err, r.err) })
		if i < 0 {
			return 0
		}
		return rows[i].errno
	}
	carried, _ := errors.AsType[syscall.Errno](err)
	return cmp.Or(find(layerErrnos), carried, find(hostErrnos))
}
