package attach

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"dmgbench/internal/image/gpt"
	"dmgbench/internal/system/host"
)

// Loops reports whether this user can use loop devices here.
func Loops() bool {
	f, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return os.Geteuid() == 0
}

// loopPath is the device node of a loop device.
func loopPath(n int) string { return "/dev/loop" + strconv.Itoa(n) }

// loopSettings are the settings of a loop device. Those of its queue outlive
// it, so all are set at every attach.
type loopSettings struct {
	// tag is kept by the kernel with the device, up to 63 bytes. It identifies
	// the device of a command that died.
	tag string
	// maxSectorsKB is the largest request in KiB.
	maxSectorsKB int
	// direct means that the file was opened for direct I/O.
	direct   bool
	readOnly bool
	// size is how many bytes of the file are the device, 0 for the whole file.
	size int64
}

// setLoop makes a loop device of the open file, with partitions. The device
// holds the open file itself: a lock on it lasts as long as the device.
func setLoop(file *os.File, s loopSettings) (int, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return -1, fmt.Errorf("getting a loop device: %w: %w", ErrNoLoop, err)
	}
	defer control.Close()
	config := unix.LoopConfig{Fd: uint32(file.Fd())}
	config.Info.Flags = unix.LO_FLAGS_PARTSCAN
	config.Info.Sizelimit = uint64(s.size)
	copy(config.Info.File_name[:len(config.Info.File_name)-1], s.tag)
	if s.readOnly {
		config.Info.Flags |= unix.LO_FLAGS_READ_ONLY
	}
	if s.direct {
		config.Info.Flags |= unix.LO_FLAGS_DIRECT_IO
	}
	// Another program may take the free device between the two calls.
	for range 50 {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return -1, fmt.Errorf("getting a free loop device: %w", err)
		}
		err = configureLoop(n, &config, s)
		if errors.Is(err, unix.EBUSY) {
			continue
		}
		return n, err
	}
	return -1, fmt.Errorf("getting a free loop device: %w", unix.EBUSY)
}

// configureLoop binds the file to device n; EBUSY if another program has taken
// the device.
func configureLoop(n int, config *unix.LoopConfig, s loopSettings) error {
	if err := ensureNode(loopPath(n), unix.Mkdev(7, uint32(n))); err != nil {
		return err
	}
	dev, err := os.OpenFile(loopPath(n), os.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening loop device: %w", err)
	}
	defer dev.Close()
	// Before the file is there no request can be under way.
	_ = setQueue(n, "scheduler", "none")
	if err := retryEINTR(func() error { return unix.IoctlLoopConfigure(int(dev.Fd()), config) }); err != nil {
		return fmt.Errorf("configuring %q: %w", loopPath(n), err)
	}
	// A device with other request sizes works too, but slower.
	_ = setQueue(n, "max_sectors_kb", strconv.Itoa(s.maxSectorsKB))
	_ = setQueue(n, "read_ahead_kb", "512")
	return nil
}

// ensureNode makes a device node that is missing, as where /dev is not kept by
// the kernel.
func ensureNode(path string, dev uint64) error {
	_, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		err = unix.Mknod(path, unix.S_IFBLK|0o600, int(dev))
		if errors.Is(err, unix.EEXIST) {
			err = nil
		}
	}
	if err != nil {
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
	switch {
	case r.Loop < 0:
		return false
	case r.Sequence != 0:
		return hasFile(r.Loop) && loopSequence(r.Loop) == r.Sequence
	}
	return r.servesLoop(r.Loop)
}

// tag is the name under which the kernel has a loop device of this attachment.
func (r *record) tag() string { return "dmgbench:" + r.ID }

// servesLoop reports whether a loop device was made for this attachment, by its
// tag, or if the process that served the file is gone, by the file's name.
func (r *record) servesLoop(n int) bool {
	info, ok := loopStatus(n)
	name, _ := os.ReadFile(sysfs(n, "loop/backing_file"))
	return ok && unix.ByteSliceToString(info.File_name[:]) == r.tag() ||
		r.FUSEDir != "" && strings.TrimSpace(string(name)) == filepath.Join(r.FUSEDir, deviceName)
}

// findLoop finds the loop device of a command that died before it could record
// its number.
func (r *record) findLoop() {
	files, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, file := range files {
		n, err := strconv.Atoi(strings.TrimPrefix(strings.Split(file, "/")[3], "loop"))
		if err == nil && r.servesLoop(n) {
			r.Loop, r.Sequence = n, loopSequence(n)
			return
		}
	}
}

// loopMounts returns the folders on which the device or one of its partitions
// is mounted, the last one first.
func (r *record) loopMounts() ([]string, error) {
	devs := []uint64{unix.Mkdev(7, uint32(r.Loop))}
	parts, err := loopParts(r.Loop)
	for _, p := range parts {
		devs = append(devs, p.dev)
	}
	points, err2 := mountPointsOf(func(m host.Mount) bool { return isMountOf(m, devs) })
	return points, errors.Join(err, err2)
}

// clearLoop ends the loop device of the record and waits until the kernel has
// let go of its file. A device that a process has open ends when it is closed;
// then the error wraps os.ErrDeadlineExceeded.
func (r *record) clearLoop(ctx context.Context, limit time.Duration) (err error) {
	if !r.ownsLoop() {
		return nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("ending %q: %w", loopPath(r.Loop), err)
		}
	}()
	dev, err := openLoop(r.Loop)
	if err != nil {
		return err
	}
	err = retryEINTR(func() error { return unix.IoctlSetInt(int(dev.Fd()), unix.LOOP_CLR_FD, 0) })
	dev.Close()
	if err != nil && !errors.Is(err, unix.ENXIO) {
		return err
	}
	return waitUntil(ctx, limit, func() bool { return !r.ownsLoop() })
}

// part is a partition that the kernel found.
type part struct {
	index        int
	path         string
	dev          uint64
	offset, size int64 // bytes
}

// loopParts lists the partitions of a loop device in the order of their
// numbers, and makes missing nodes.
func loopParts(n int) ([]part, error) {
	dirs, err := filepath.Glob(sysfs(n, fmt.Sprintf("loop%dp*", n)))
	if err != nil {
		return nil, err
	}
	var list []part
	for _, dir := range dirs {
		name := filepath.Base(dir)
		index, err := strconv.Atoi(strings.TrimPrefix(name, fmt.Sprintf("loop%dp", n)))
		if err != nil {
			continue
		}
		var start, size int64
		var major, minor uint32
		err = errors.Join(scanFile(dir+"/start", "%d", &start), scanFile(dir+"/size", "%d", &size),
			scanFile(dir+"/dev", "%d:%d", &major, &minor))
		if err != nil {
			return nil, fmt.Errorf("reading partition %q: %w", dir, err)
		}
		p := part{index, "/dev/" + name, unix.Mkdev(major, minor), start * 512, size * 512}
		if err := ensureNode(p.path, p.dev); err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b part) int { return a.index - b.index })
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
func addParts(n int, table []gpt.Partition, known []part) ([]part, error) {
	dev, err := os.OpenFile(loopPath(n), os.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening loop device: %w", err)
	}
	defer dev.Close()
	for _, p := range table {
		if slices.ContainsFunc(known, func(k part) bool { return k.index == p.Index+1 }) {
			continue
		}
		new := blkpgPartition{start: p.Offset(), length: p.Size(), number: int32(p.Index + 1)}
		arg := unix.BlkpgIoctlArg{Op: unix.BLKPG_ADD_PARTITION, Datalen: int32(unsafe.Sizeof(new)),
			Data: (*byte)(unsafe.Pointer(&new))}
		err := ioctl(dev, unix.BLKPG, unsafe.Pointer(&arg))
		if err != nil && !errors.Is(err, unix.EBUSY) { // busy: another process has just added it
			return nil, fmt.Errorf("adding partition %d of %q: %w", p.Index+1, loopPath(n), err)
		}
	}
	return loopParts(n)
}
