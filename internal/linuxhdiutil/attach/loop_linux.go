package attach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
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

// loopPath is the device node of a loop device.
func loopPath(n int) string { return "/dev/loop" + strconv.Itoa(n) }

// Largest requests to an image file and to a FUSE file, in KiB; the kernel cuts
// larger ones.
const (
	rawRequestKB    = 1280
	servedRequestKB = maxRequest >> 10
)

// loopTag precedes the identifier of an attachment in the name under which the
// kernel has its loop device.
const loopTag = "dmgbench:"

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
	copy(config.Info.File_name[:len(config.Info.File_name)-1], loopTag+r.ID)
	config.Info.Flags = unix.LO_FLAGS_PARTSCAN
	if r.ReadOnly {
		config.Info.Flags |= unix.LO_FLAGS_READ_ONLY
	}
	if direct {
		config.Info.Flags |= unix.LO_FLAGS_DIRECT_IO
	}
	requestKB := servedRequestKB
	if r.Mode == ModeLoop {
		requestKB = rawRequestKB
	}
	if r.Loop, err = setLoop(&config, requestKB); err != nil {
		return err
	}
	got, ok := loopStatus(r.Loop)
	if !ok {
		return fmt.Errorf("asking for the status of %q: %w", loopPath(r.Loop), unix.ENXIO)
	}
	if got.Flags&unix.LO_FLAGS_DIRECT_IO == 0 {
		r.Warnings = append(r.Warnings, "the loop device works through the page cache of the host")
	}
	r.Sequence, r.Device = loopSequence(r.Loop), loopPath(r.Loop)
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

// setLoop makes a free loop device one of the open file, with partitions. The
// device holds the open file itself: a lock on it lasts as long as the device.
// The largest request is in KiB.
func setLoop(config *unix.LoopConfig, requestKB int) (n int, err error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return -1, fmt.Errorf("getting a loop device: %w: %w", ErrNoLoop, err)
	}
	defer control.Close()
	err = unix.EBUSY
	// Another program may take the free device between the two calls.
	for i := 0; i < 50 && errors.Is(err, unix.EBUSY); i++ {
		if n, err = unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE); err == nil {
			err = configureLoop(n, config, requestKB)
		}
	}
	if err != nil {
		return -1, fmt.Errorf("making a loop device: %w", err)
	}
	return n, nil
}

// configureLoop binds the file to device n; EBUSY if another program has taken
// the device. Settings of the queue outlive a device, so all are set at every
// attach.
func configureLoop(n int, config *unix.LoopConfig, requestKB int) error {
	if err := ensureNode(loopPath(n), unix.Mkdev(7, uint32(n))); err != nil {
		return err
	}
	dev, err := os.OpenFile(loopPath(n), os.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer dev.Close()
	// Before the file is there no request can be under way.
	_ = setQueue(n, "scheduler", "none")
	if err := retryEINTR(func() error { return unix.IoctlLoopConfigure(int(dev.Fd()), config) }); err != nil {
		return fmt.Errorf("configuring %q: %w", loopPath(n), err)
	}
	// A device with other request sizes works too, but slower.
	_ = setQueue(n, "max_sectors_kb", strconv.Itoa(requestKB))
	_ = setQueue(n, "read_ahead_kb", "512")
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
func sysfs(n int, name string) string { return fmt.Sprintf("/sys/block/loop%d/%s", n, name) }

// setQueue changes a queue setting that has another value: each change stops
// the queue for tens of milliseconds.
func setQueue(n int, name, value string) error {
	file := sysfs(n, "queue/"+name)
	now, err := os.ReadFile(file)
	if text := strings.TrimSpace(string(now)); err == nil && (text == value || strings.Contains(text, "["+value+"]")) {
		return nil
	}
	return os.WriteFile(file, []byte(value), 0)
}

// openLoop opens a loop device without keeping it in use.
func openLoop(n int) (*os.File, error) {
	return os.OpenFile(loopPath(n), os.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
}

// loopStatus returns the status of a loop device, and false if it is free.
func loopStatus(n int) (*unix.LoopInfo64, bool) {
	// sysfs first: opening a device of our own that is just ending would keep
	// it from that.
	if !hasFile(n) {
		return nil, false
	}
	dev, err := openLoop(n)
	if err != nil {
		return nil, false
	}
	defer dev.Close()
	info, err := unix.IoctlLoopGetStatus64(int(dev.Fd()))
	return info, err == nil
}

// hasFile reports whether a loop device has a file.
func hasFile(n int) bool {
	_, err := os.Stat(sysfs(n, "loop/backing_file"))
	return err == nil
}

// loopSequence is the number of the present use of a loop device, 0 where the
// kernel gives none.
func loopSequence(n int) (seq int64) {
	_ = scanFile(sysfs(n, "diskseq"), "%d", &seq)
	return seq
}

// ownsLoop reports whether the loop device of the record is still the one that
// was made for it. The kernel numbers each use of a device (diskseq) since
// version 5.15.
func (r *record) ownsLoop() bool {
	if r.Loop >= 0 && r.Sequence != 0 {
		return hasFile(r.Loop) && loopSequence(r.Loop) == r.Sequence
	}
	return r.Loop >= 0 && r.servesLoop(r.Loop)
}

// servesLoop reports whether a loop device was made for this attachment, by its
// tag, or if the process that served the file is gone, by the file's name.
func (r *record) servesLoop(n int) bool {
	info, ok := loopStatus(n)
	name, _ := os.ReadFile(sysfs(n, "loop/backing_file"))
	return ok && unix.ByteSliceToString(info.File_name[:]) == loopTag+r.ID ||
		r.FUSEDir != "" && strings.TrimSpace(string(name)) == filepath.Join(r.FUSEDir, deviceName)
}

// findLoop finds the loop device of a command that died before it could record
// its number.
func (r *record) findLoop() {
	files, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, file := range files {
		n := -1
		if _, _ = fmt.Sscanf(file, "/sys/block/loop%d/", &n); n >= 0 && r.servesLoop(n) {
			r.Loop, r.Sequence = n, loopSequence(n)
			return
		}
	}
}

// clearLoop ends the loop device of the record and waits until the kernel has
// let go of its file. A device that a process has open ends when it is closed;
// then the error wraps os.ErrDeadlineExceeded.
func (r *record) clearLoop(ctx context.Context, limit time.Duration) error {
	if !r.ownsLoop() {
		return nil
	}
	dev, err := openLoop(r.Loop)
	if err == nil {
		err = retryEINTR(func() error { return unix.IoctlSetInt(int(dev.Fd()), unix.LOOP_CLR_FD, 0) })
		dev.Close()
	}
	if err == nil || errors.Is(err, unix.ENXIO) {
		err = waitUntil(ctx, limit, func() bool { return !r.ownsLoop() })
	}
	if err != nil {
		err = fmt.Errorf("ending %q: %w", loopPath(r.Loop), err)
	}
	return err
}

// part is a partition that the kernel found.
type part struct {
	path         string
	offset, size int64 // bytes
}

// loopParts lists the partitions of a loop device in the order of the device,
// and makes missing nodes.
func loopParts(n int) (list []part, err error) {
	dirs, _ := filepath.Glob(sysfs(n, fmt.Sprintf("loop%dp*", n)))
	for _, dir := range dirs {
		var start, size int64
		var major, minor uint32
		p := part{path: "/dev/" + filepath.Base(dir)}
		err := errors.Join(scanFile(dir+"/start", "%d", &start), scanFile(dir+"/size", "%d", &size),
			scanFile(dir+"/dev", "%d:%d", &major, &minor))
		if err == nil {
			err = ensureNode(p.path, unix.Mkdev(major, minor))
		}
		if err != nil {
			return nil, fmt.Errorf("reading partition %q: %w", dir, err)
		}
		p.offset, p.size = start*gpt.SectorSize, size*gpt.SectorSize
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b part) int { return cmp.Compare(a.offset, b.offset) })
	return list, nil
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
func addParts(n int, table []gpt.Partition) error {
	return withFile(loopPath(n), func(dev *os.File) error {
		for _, p := range table {
			new := blkpgPartition{start: p.Offset(), length: p.Size(), number: int32(p.Index + 1)}
			arg := unix.BlkpgIoctlArg{Op: unix.BLKPG_ADD_PARTITION, Datalen: int32(unsafe.Sizeof(new)),
				Data: (*byte)(unsafe.Pointer(&new))}
			err := ioctl(dev, unix.BLKPG, unsafe.Pointer(&arg))
			if err != nil && !errors.Is(err, unix.EBUSY) { // busy: the kernel or another process has added it
				return fmt.Errorf("adding partition %d of %q: %w", p.Index+1, loopPath(n), err)
			}
		}
		return nil
	})
}

// findPartition finds the device node of the volume.
func (s *store) findPartition(r *record, info *ImageInfo) error {
	if info.Table != nil {
		if err := addParts(r.Loop, info.Table.Partitions); err != nil {
			return err
		}
	}
	parts, err := loopParts(r.Loop)
	if err != nil {
		return err
	}
	r.Partition = r.Device
	switch {
	case info.Table == nil && len(parts) > 0: // of a table that only the kernel knows
		r.Partition = parts[0].path
		return s.identifyPart(r)
	case info.mount == nil:
		return s.save(r)
	}
	want := info.mount.Part
	i := slices.IndexFunc(parts, func(p part) bool { return p.offset == want.Offset() && p.size == want.Size() })
	if i < 0 {
		return fmt.Errorf("finding the partition at %d of %q: the kernel sees others than the table has", want.Offset(),
			r.Device)
	}
	r.Partition = parts[i].path
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

// ioctl is a request with a pointer as its argument.
func ioctl(f *os.File, request uintptr, argument unsafe.Pointer) error {
	return retryEINTR(func() error {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), request, uintptr(argument))
		if errno != 0 {
			return errno
		}
		return nil
	})
}
