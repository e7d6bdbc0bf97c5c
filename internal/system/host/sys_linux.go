package host

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dmgbench/internal/result"
)

const root = tree("/")

func gather(_ context.Context, h *result.Host) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err == nil && set.Count() > 0 {
		h.CPUs = set.Count()
	}
	root.machine(h)
}

func disk(_ context.Context, name string) result.Disk {
	full, err := realPath(name)
	if err != nil {
		return result.Disk{}
	}
	d := root.under(full)
	var st unix.Statfs_t
	if err := unix.Statfs(full, &st); err == nil {
		d.Free, d.Total = int64(st.Bavail)*st.Frsize, int64(st.Blocks)*st.Frsize
	}
	return d
}

// realPath is the absolute path of a file or folder without links.
func realPath(name string) (string, error) {
	full, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(full)
}

func bootID() string { return root.text("proc/sys/kernel/random/boot_id") }

func osVersion() (version, build string) { return "", "" }

func memory() (physical, limit int64) { return root.memory() }

// slept is how long the machine has slept since it booted: the boot clock runs on
// through a sleep, the monotonic clock does not (clock_gettime(2)). It is exact to
// some microseconds.
func slept() (time.Duration, error) { return between(unix.CLOCK_BOOTTIME, unix.CLOCK_MONOTONIC) }

// runDelay reads for how long the calling thread was ready and waited for a
// processor: the second number of schedstat, in ns (proc_pid_schedstat(5)).
func runDelay() (read func() time.Duration) {
	fd, err := unix.Open("/proc/thread-self/schedstat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	text := make([]byte, 128)
	return func() (delay time.Duration) {
		if err != nil { // a kernel without it
			return 0
		}
		n, _ := unix.Pread(fd, text, 0)
		_, _ = fmt.Sscan(string(text[:max(n, 0)]), new(int64), &delay)
		return delay
	}
}

// Throttled is for how long the limits of the control groups of this process
// (cpu.max) have kept it from running so far.
func Throttled() time.Duration { return root.throttled() }

// InhibitSleep keeps the machine awake until release is called or this process
// ends, and returns how. It asks logind by systemd-inhibit(1); where that is
// missing or refused, the error matches [ErrUnsupported] and is worth a
// warning.
func InhibitSleep() (release func(), how string, err error) {
	exe, err := exec.LookPath("systemd-inhibit")
	if err != nil {
		return nil, "", fmt.Errorf("inhibiting sleep: systemd-inhibit is not installed: %w", ErrUnsupported)
	}
	return hold(exec.Command(exe, "--what=sleep:idle", "--who=dmgbench", "--why=a benchmark is measuring",
		"--mode=block", "cat"), 5*time.Second)
}

// hold starts a command that holds a lock around cat. An echo shows that the
// lock is held; the end of our pipe, and so of this process, ends cat and the
// lock with it.
func hold(cmd *exec.Cmd, patience time.Duration) (release func(), how string, err error) {
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	// An interrupt from the terminal is ours to handle; the lock outlives it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err = errors.Join(inErr, outErr); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, "", fmt.Errorf("inhibiting sleep: %w: %w", err, ErrUnsupported)
	}
	how = filepath.Base(cmd.Args[0])
	release = sync.OnceFunc(func() { _ = in.Close(); _ = cmd.Wait() })
	timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	// A write to a command that has ended shows in the missing echo.
	_, _ = in.Write([]byte("held\n"))
	line, _ := bufio.NewReader(out).ReadString('\n')
	timer.Stop()
	if line != "held\n" {
		_ = cmd.Process.Kill()
		release()
		return nil, "", fmt.Errorf("inhibiting sleep: %s failed: %w", how, ErrUnsupported)
	}
	return release, how, nil
}

// Tune reads how this system is set.
func Tune() Tuning { return root.tuning() }

// DeviceBytes returns the bytes that the disk below a path has read and written
// since boot, by everybody, from its file stat in sysfs. A partition counts as
// its disk. The error matches [ErrUnsupported] for file systems without a block
// device (tmpfs, overlay, network).
func DeviceBytes(name string) (read, written int64, err error) {
	full, err := realPath(name)
	if err != nil {
		return 0, 0, err
	}
	return parseDiskStat(root.read(filepath.Join(root.mounted(root.mount(full)), "stat")))
}

// sector is the unit of a block device's file stat in bytes, on any disk.
const sector = 512

// parseDiskStat reads a block device's stat file, as the kernel's
// Documentation/block/stat.rst lists its fields: the third and seventh are the
// sectors that were read and written.
func parseDiskStat(text string) (read, written int64, err error) {
	var skip int64
	_, err = fmt.Sscan(text, &skip, &skip, &read, &skip, &skip, &skip, &written)
	if err != nil || read < 0 || written < 0 {
		return 0, 0, fmt.Errorf("no disk with statistics: %w", ErrUnsupported)
	}
	return read * sector, written * sector, nil
}
