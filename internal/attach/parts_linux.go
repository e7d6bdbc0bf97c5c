package attach

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"dmgbench/internal/gpt"
)

// part is a partition that the kernel found.
type part struct {
	index        int
	path         string
	dev          uint64
	offset, size int64 // bytes
}

// loopParts lists the partitions of a loop device in the order of their numbers, and makes missing nodes.
func loopParts(n int) ([]part, error) {
	dirs, err := filepath.Glob(fmt.Sprintf("/sys/block/loop%d/loop%dp*", n, n))
	if err != nil {
		return nil, err
	}
	var list []part
	for _, dir := range dirs {
		index, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), fmt.Sprintf("loop%dp", n)))
		if err != nil {
			continue
		}
		p := part{index: index, path: "/dev/" + filepath.Base(dir)}
		start, err1 := readNumber(filepath.Join(dir, "start"))
		size, err2 := readNumber(filepath.Join(dir, "size"))
		dev, err3 := readDev(filepath.Join(dir, "dev"))
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, fmt.Errorf("reading partition %q: %w", p.path, err)
		}
		p.offset, p.size, p.dev = start*512, size*512, dev
		if err := ensureNode(p.path, dev); err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b part) int { return a.index - b.index })
	return list, nil
}

func readNumber(path string) (int64, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
}

func readDev(path string) (uint64, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	major, minor, _ := strings.Cut(strings.TrimSpace(string(b)), ":")
	a, err1 := strconv.ParseUint(major, 10, 32)
	c, err2 := strconv.ParseUint(minor, 10, 32)
	return unix.Mkdev(uint32(a), uint32(c)), errors.Join(err1, err2)
}

// The arguments of the ioctl BLKPG, from <linux/blkpg.h>.
type (
	blkpgArg struct {
		op, flags, length int32
		data              unsafe.Pointer
	}
	blkpgPartition struct {
		start, length int64 // bytes
		number        int32
		devname       [64]byte
		volname       [64]byte
	}
)

const (
	blkpg             = 0x1269
	blkpgAddPartition = 1
)

// addParts tells the kernel of the partitions that it did not find: some kernels are built without support for GUID
// tables. They go with the device.
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
		arg := blkpgArg{op: blkpgAddPartition, length: int32(unsafe.Sizeof(new)), data: unsafe.Pointer(&new)}
		_, _, e := unix.Syscall(unix.SYS_IOCTL, dev.Fd(), blkpg, uintptr(unsafe.Pointer(&arg)))
		if e != 0 && e != unix.EBUSY { // busy: somebody else has just told it
			return nil, fmt.Errorf("adding partition %d of %q: %w", p.Index+1, loopPath(n), e)
		}
	}
	return loopParts(n)
}
