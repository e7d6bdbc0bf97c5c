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

	"golang.org/x/sys/unix"

	"dmgbench/internal/host"
)

// mount is a line of /proc/self/mountinfo.
type mount struct {
	major, minor       uint32
	point, typ, source string
}

// on reports whether the mount is of one of the devices. Some file systems, such as btrfs, show a device number of
// their own; then the name of the source identifies the device.
func (m mount) on(devs []uint64) bool {
	if m.major != 0 {
		return slices.Contains(devs, unix.Mkdev(m.major, m.minor))
	}
	var st unix.Stat_t
	if !strings.HasPrefix(m.source, "/dev/") || unix.Stat(m.source, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFBLK {
		return false
	}
	return slices.Contains(devs, st.Rdev)
}

// mounts is the mount table, in the order of mounting.
func mounts() ([]mount, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("reading the mount table: %w", err)
	}
	return parseMounts(string(data)), nil
}

// parseMounts reads mountinfo, see proc_pid_mountinfo(5); lines that are none are left out.
func parseMounts(data string) []mount {
	var list []mount
	for line := range strings.Lines(data) {
		before, after, ok := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		types := strings.Fields(after)
		if !ok || len(fields) < 5 || len(types) < 2 {
			continue
		}
		major, minor, _ := strings.Cut(fields[2], ":")
		a, err1 := strconv.ParseUint(major, 10, 32)
		b, err2 := strconv.ParseUint(minor, 10, 32)
		if err1 == nil && err2 == nil {
			list = append(list, mount{
				uint32(a), uint32(b), host.Unescape(fields[4]), types[0], host.Unescape(types[1]),
			})
		}
	}
	return list
}

// mountsOf returns where devices of these numbers are mounted, last first.
func mountsOf(wanted func(m mount) bool) ([]string, error) {
	list, err := mounts()
	var points []string
	for _, m := range slices.Backward(list) {
		if wanted(m) {
			points = append(points, m.point)
		}
	}
	return points, err
}

// holders lists the processes that have something open below one of the folders, or one of the files itself; it looks
// at names only, and so never waits for a file system that does not answer. What the user may not see is missing.
func holders(paths ...string) []Holder {
	entries, _ := os.ReadDir("/proc")
	var list []Holder
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() || !holds(filepath.Join("/proc", e.Name()), paths) {
			continue
		}
		name, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "comm"))
		list = append(list, Holder{PID: pid, Command: strings.TrimSpace(string(name))})
	}
	slices.SortFunc(list, func(a, b Holder) int { return cmp.Compare(a.PID, b.PID) })
	return list
}

// holds reports whether a process has one of the paths open, mapped, or as its folder.
func holds(proc string, paths []string) bool {
	fds, _ := os.ReadDir(filepath.Join(proc, "fd"))
	links := make([]string, 0, len(fds)+3)
	for _, name := range []string{"cwd", "root", "exe"} {
		links = append(links, filepath.Join(proc, name))
	}
	for _, fd := range fds {
		links = append(links, filepath.Join(proc, "fd", fd.Name()))
	}
	for _, link := range links {
		to, err := os.Readlink(link)
		below := func(path string) bool { return to == path || strings.HasPrefix(to, path+"/") }
		if err == nil && slices.ContainsFunc(paths, below) {
			return true
		}
	}
	maps, _ := os.ReadFile(filepath.Join(proc, "maps"))
	return slices.ContainsFunc(paths, func(path string) bool { return bytes.Contains(maps, []byte(" "+path+"/")) })
}

// processStart returns the start time of a process, in ticks since the boot, and false if it does not exist or is a
// zombie.
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

// waitUntil polls until done returns true, or the time or the context has ended.
func waitUntil(ctx context.Context, limit time.Duration, done func() (bool, error)) error {
	pause, end := time.Millisecond, wall.Now()+limit
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		if wall.Now() > end {
			return fmt.Errorf("after %v: %w", limit, os.ErrDeadlineExceeded)
		}
		if err := wall.Sleep(ctx, pause); err != nil {
			return err
		}
		pause = min(pause*2, 25*time.Millisecond)
	}
}

// within runs a function that the kernel may block for ever, and returns without it when the limit has passed.
func within(limit time.Duration, do func() error) error {
	result := make(chan error, 1)
	go func() { result <- do() }()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
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
