package attach

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/container"
	"dmgbench/internal/image/gpt"
)

// Loops reports whether this user can use loop devices here.
func Loops() bool {
	return os.Geteuid() == 0 && unix.Access("/dev/loop-control", unix.R_OK|unix.W_OK) == nil
}

// makeLoop makes a loop device of the image file, or of the FUSE file that is
// its device, and records it. An image that cannot be written is attached
// read-only.
func (s *store) makeLoop(r *record) error {
	file, direct, err := openBackingFile(r)
	if cannotWrite(err) && !r.ReadOnly {
		r.ReadOnly = true
		r.Warnings = append(r.Warnings, fmt.Sprintf("attached read-only: %v", err))
		file, direct, err = openBackingFile(r)
	}
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	config := unix.LoopConfig{Fd: uint32(file.Fd())}
	if info.Size() > r.Size { // a trailer follows the sectors: such an image is read-only
		config.Info.Sizelimit, r.ReadOnly = uint64(r.Size), true
	}
	copy(config.Info.File_name[:len(config.Info.File_name)-1], r.Tag)
	config.Info.Flags = unix.LO_FLAGS_PARTSCAN
	if r.ReadOnly {
		config.Info.Flags |= unix.LO_FLAGS_READ_ONLY
	}
	if direct {
		config.Info.Flags |= unix.LO_FLAGS_DIRECT_IO
	}
	requestKB := maxRequest >> 10 // the kernel cuts larger requests to a FUSE file
	if r.Mode == ModeLoop {
		requestKB = 1280 // and these to an image file
	}
	if r.LoopDevice, err = setLoop(&config, requestKB); err != nil {
		return err
	}
	r.Device = r.LoopDevice
	achieved := 0
	if err := scanFile(sysfs(r.Device, "loop/dio"), "%d", &achieved); err != nil {
		return err
	}
	if achieved == 0 {
		r.Warnings = append(r.Warnings, "the loop device works through the page cache of the host")
	}
	return s.save(r)
}

// openBackingFile opens the file of the loop device. The device keeps the open
// file, and with it the lock on an image, which is the one that package
// container takes: as long as the device exists, no other process opens the
// image for writing. direct reports whether the host's page cache is bypassed.
func openBackingFile(r *record) (file *os.File, direct bool, err error) {
	path, how, lock := r.Image, os.O_RDWR, unix.LOCK_EX
	if r.ReadOnly {
		how, lock = os.O_RDONLY, unix.LOCK_SH
	}
	if r.Mode != ModeLoop {
		path = r.Device
	}
	how |= unix.O_NOFOLLOW | unix.O_CLOEXEC
	file, err = os.OpenFile(path, how|unix.O_DIRECT, 0)
	if direct = err == nil; errors.Is(err, unix.EINVAL) { // the device then uses the page cache
		file, err = os.OpenFile(path, how, 0)
	}
	if err != nil || r.Mode != ModeLoop { // the serving process holds the lock
		return file, direct, err
	}
	err = retryEINTR(func() error { return unix.Flock(int(file.Fd()), lock|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = fmt.Errorf("locking %q: %w", r.Image, container.ErrInUse)
	}
	if id, e := identity(r.Image); err == nil && (e != nil || id != r.ID) {
		err = fmt.Errorf("opening %q: it was replaced by something else", r.Image)
	}
	if err != nil {
		file.Close()
	}
	return file, direct, err
}

// setLoop makes a free loop device one of the open file, with partitions, and
// returns its path. The device holds the open file itself: a lock on it lasts
// as long as the device. The largest request is in KiB.
func setLoop(config *unix.LoopConfig, requestKB int) (device string, err error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return "", fmt.Errorf("getting a loop device: %w: %w", ErrNoLoop, err)
	}
	defer control.Close()
	err = unix.EBUSY
	// Another program may take the free device between the two calls.
	for i := 0; i < 50 && errors.Is(err, unix.EBUSY); i++ {
		var n int
		if n, err = unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE); err == nil {
			device = "/dev/loop" + strconv.Itoa(n)
			err = ensureNode(device, unix.Mkdev(7, uint32(n)))
		}
		if err == nil {
			err = configureLoop(device, config, requestKB)
		}
	}
	if err != nil {
		return "", fmt.Errorf("making a loop device: %w", err)
	}
	return device, nil
}

// configureLoop binds the file to a device; EBUSY if another program has taken
// the device. Settings of the queue outlive a device, so all are set at every
// attach.
func configureLoop(device string, config *unix.LoopConfig, requestKB int) error {
	dev, err := os.OpenFile(device, os.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer dev.Close()
	// Before the file is there no request can be under way.
	setQueue(device, "scheduler", "none")
	if err := retryEINTR(func() error { return unix.IoctlLoopConfigure(int(dev.Fd()), config) }); err != nil {
		return fmt.Errorf("configuring %q: %w", device, err)
	}
	setQueue(device, "max_sectors_kb", strconv.Itoa(requestKB))
	setQueue(device, "read_ahead_kb", "512")
	return nil
}

// ensureNode makes a device node that is missing, as where /dev is not kept by
// the kernel.
func ensureNode(path string, dev uint64) error {
	_, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		err = unix.Mknod(path, unix.S_IFBLK|0o600, int(dev))
	}
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("making device node %q: %w", path, err)
	}
	return nil
}

// sysfs is the path of a file of a loop device in sysfs.
func sysfs(device, name string) string {
	return filepath.Join("/sys/block", filepath.Base(device), name)
}

// setQueue changes a queue setting that has another value: each change stops
// the queue for tens of milliseconds. A device with other settings works too,
// but slower.
func setQueue(device, name, value string) {
	file := sysfs(device, "queue/"+name)
	now, err := os.ReadFile(file)
	if text := strings.TrimSpace(string(now)); err != nil || text != value && !strings.Contains(text, "["+value+"]") {
		_ = os.WriteFile(file, []byte(value), 0)
	}
}

// openLoop opens a loop device without keeping it in use.
func openLoop(device string) (*os.File, error) {
	return os.OpenFile(device, os.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
}

// ownsLoop reports whether the loop device of the record is still the one that
// was made for it.
func (r *record) ownsLoop() bool { return r.LoopDevice != "" && r.servesLoop(r.LoopDevice) }

// servesLoop reports whether a loop device was made for this attachment, by its
// tag, or if the process that served the file is gone, by the file's name.
func (r *record) servesLoop(device string) bool {
	// sysfs first: opening a device of our own that is just ending would keep
	// it from that.
	name, err := os.ReadFile(sysfs(device, "loop/backing_file"))
	if err != nil {
		return false
	}
	if r.FUSEDir != "" && strings.TrimSpace(string(name)) == filepath.Join(r.FUSEDir, deviceName) {
		return true
	}
	dev, err := openLoop(device)
	if err != nil {
		return false
	}
	defer dev.Close()
	info, err := unix.IoctlLoopGetStatus64(int(dev.Fd()))
	return err == nil && r.Tag != "" && unix.ByteSliceToString(info.File_name[:]) == r.Tag
}

// scanFile reads a file of sysfs as fmt.Sscanf does.
func scanFile(path, format string, values ...any) error {
	b, err := os.ReadFile(path)
	if err == nil {
		_, err = fmt.Sscanf(string(b), format, values...)
	}
	return err
}

// blkpgPartition is struct blkpg_partition of <linux/blkpg.h>.
type blkpgPartition struct {
	start, length    int64 // bytes
	number           int32
	devname, volname [64]byte
}

// addParts adds the partitions that the kernel did not find, as some kernels
// are built without support for GUID tables. They are removed with the device.
func addParts(device string, table []gpt.Partition) error {
	return withFile(device, func(dev *os.File) error {
		for _, p := range table {
			new := blkpgPartition{start: p.Offset(), length: p.Size(), number: int32(p.Index + 1)}
			arg := unix.BlkpgIoctlArg{Op: unix.BLKPG_ADD_PARTITION, Datalen: int32(unsafe.Sizeof(new)),
				Data: (*byte)(unsafe.Pointer(&new))}
			err := ioctl(dev, unix.BLKPG, unsafe.Pointer(&arg))
			if err != nil && !errors.Is(err, unix.EBUSY) { // busy: the kernel or another process has added it
				return fmt.Errorf("adding partition %d of %q: %w", p.Index+1, device, err)
			}
		}
		return nil
	})
}

// findPartition makes the missing device nodes of the partitions, and chooses
// the node of the volume: that of the partition to be mounted, or the first of
// a table that only the kernel knows.
func (s *store) findPartition(r *record, info *ImageInfo) error {
	r.Partition = r.Device
	if info.Table != nil {
		if err := addParts(r.Device, info.Table.Partitions); err != nil {
			return err
		}
	}
	dirs, _ := filepath.Glob(sysfs(r.Device, filepath.Base(r.Device)+"p*"))
	for _, dir := range dirs {
		var start, size int64
		var major, minor uint32
		node := "/dev/" + filepath.Base(dir)
		err := errors.Join(scanFile(dir+"/start", "%d", &start), scanFile(dir+"/size", "%d", &size),
			scanFile(dir+"/dev", "%d:%d", &major, &minor))
		if err == nil {
			err = ensureNode(node, unix.Mkdev(major, minor))
		}
		if err != nil {
			return fmt.Errorf("reading partition %q: %w", dir, err)
		}
		if want := info.mount; want != nil && start == want.First && size == want.Count ||
			info.Table == nil && r.Partition == r.Device {
			r.Partition = node
		}
	}
	switch {
	case r.Partition == r.Device && info.mount != nil:
		return fmt.Errorf("finding the partition at sector %d of %q: the kernel sees others than the table has",
			info.mount.First, r.Device)
	case r.Partition != r.Device && info.mount == nil:
		return s.identifyPart(r)
	}
	return s.save(r)
}

// identifyPart finds out which volume the partition has now.
func (s *store) identifyPart(r *record) error {
	return withFile(r.Partition, func(f *os.File) error {
		size, err := f.Seek(0, io.SeekEnd)
		if err != nil {
			return err
		}
		found, err := Identify(blockdev.ReadOnly(f, size))
		if err != nil {
			return err
		}
		r.Filesystem, r.VolumeName, r.Owners = found.Kernel, found.Label, found.Owners
		return s.save(r)
	})
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

// retryEINTR repeats a call that a signal interrupted.
func retryEINTR(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// ioctl is a request with a pointer as its argument, for [withFile].
func ioctl(f *os.File, request uintptr, argument unsafe.Pointer) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), request, uintptr(argument))
	if errno != 0 {
		return errno
	}
	return nil
}
