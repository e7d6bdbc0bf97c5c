package attach

import (
	"bytes"
	"cmp"
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

	"dmgbench/internal/system/host"
)

// isMountOf reports whether the mount is of one of the devices. Some file
// systems, such as btrfs, show a device number of their own; then the name of
// the source identifies the device.
func isMountOf(m host.Mount, devs []uint64) bool {
	if m.Major != 0 {
		return slices.Contains(devs, unix.Mkdev(m.Major, m.Minor))
	}
	var st unix.Stat_t
	if !strings.HasPrefix(m.Source, "/dev/") || unix.Stat(m.Source, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFBLK {
		return false
	}
	return slices.Contains(devs, st.Rdev)
}

// mountPointsOf returns the folders of the wanted mounts, the last one first.
func mountPointsOf(wanted func(m host.Mount) bool) (points []string, err error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("reading the mount table: %w", err)
	}
	for _, m := range slices.Backward(host.ParseMounts(string(table))) {
		if wanted(m) {
			points = append(points, m.Point)
		}
	}
	return points, nil
}

// holders lists the processes that have something open below one of the
// folders, or one of the files itself; it looks at names only, and so never
// waits for a file system that does not answer. What the user may not see is
// missing.
func holders(paths ...string) (list []Holder) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() || !isHolder(filepath.Join("/proc", e.Name()), paths) {
			continue
		}
		name, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "comm"))
		list = append(list, Holder{PID: pid, Command: strings.TrimSpace(string(name))})
	}
	slices.SortFunc(list, func(a, b Holder) int { return cmp.Compare(a.PID, b.PID) })
	return list
}

// isHolder reports whether a process has one of the paths open, mapped, or as
// its folder.
func isHolder(proc string, paths []string) bool {
	links := []string{"cwd", "root", "exe"}
	fds, _ := os.ReadDir(filepath.Join(proc, "fd"))
	for _, fd := range fds {
		links = append(links, filepath.Join("fd", fd.Name()))
	}
	for _, link := range links {
		to, err := os.Readlink(filepath.Join(proc, link))
		below := func(path string) bool { return to == path || strings.HasPrefix(to, path+"/") }
		if err == nil && slices.ContainsFunc(paths, below) {
			return true
		}
	}
	maps, _ := os.ReadFile(filepath.Join(proc, "maps"))
	return slices.ContainsFunc(paths, func(path string) bool { return bytes.Contains(maps, []byte(" "+path+"/")) })
}

// processStart returns the start time of a process, in ticks since the boot,
// and false if it does not exist or is a zombie.
func processStart(pid int) (uint64, bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	// The name in parentheses may hold anything, parentheses too.
	_, rest, ok := strings.Cut(string(data[max(bytes.LastIndexByte(data, ')'), 0):]), ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return 0, false
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	return start, err == nil
}

// isAlive reports whether the process with this start time still exists.
func isAlive(pid int, start uint64) bool {
	now, ok := processStart(pid)
	return ok && now == start
}

// waitUntil polls until done returns true, or the time or the context has
// ended.
func waitUntil(ctx context.Context, limit time.Duration, done func() bool) error {
	pause, end := time.Millisecond, wall.Now()+limit
	for !done() {
		if wall.Now() > end {
			return fmt.Errorf("after %v: %w", limit, os.ErrDeadlineExceeded)
		}
		if err := wall.Sleep(ctx, pause); err != nil {
			return err
		}
		pause = min(pause*2, 25*time.Millisecond)
	}
	return nil
}

// within runs a function that the kernel may block for ever, and returns
// without it when the limit has passed.
func within(limit time.Duration, do func() error) error {
	result := make(chan error, 1)
	go func() { result <- do() }()
	select {
	case err := <-result:
		return err
	case <-time.After(limit):
		return fmt.Errorf("no answer within %v: %w", limit, os.ErrDeadlineExceeded)
	}
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
