package host

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dmgbench/internal/result"
)

// indexingShare is the processor share of its indexers, in percent, from which
// Spotlight counts as busy.
const indexingShare = 10

// toolDeadline bounds each command that reports facts.
const toolDeadline = 5 * time.Second

// ask runs a tool of the system and returns what it prints, nil if it fails.
func ask(ctx context.Context, tool string, args ...string) []byte {
	ctx, cancel := context.WithTimeout(ctx, toolDeadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Env, cmd.WaitDelay = []string{"LC_ALL=C", "PATH=/usr/bin:/bin:/usr/sbin:/sbin"}, time.Second
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	return out
}

// sysctl is a text of the kernel, "" if it is unknown.
func sysctl(name string) string {
	s, _ := unix.Sysctl(name) // "" after an error
	return clean(s)
}

// sysctlInt is a number of the kernel, 0 if it is unknown.
func sysctlInt(name string) int {
	n, _ := unix.SysctlUint32(name) // 0 after an error
	return int(n)
}

func gather(ctx context.Context, h *result.Host) {
	h.OSVersion, h.OSBuild = osVersion()
	h.Kernel = sysctl("kern.osrelease")
	h.Model, h.CPU = sysctl("hw.model"), sysctl("machdep.cpu.brand_string")
	h.Memory, _ = memory()
	if n := sysctlInt("hw.nperflevels"); n > 1 {
		for i := range min(n, 8) {
			level := "hw.perflevel" + strconv.Itoa(i)
			name := cmp.Or(sysctl(level+".name"), choose(i == 0, "performance", "efficiency"))
			count := sysctlInt(level + ".logicalcpu")
			h.Cores = append(h.Cores, result.Cores{Level: strings.ToLower(name), Count: count})
		}
	}
	h.Translated = sysctlInt("sysctl.proc_translated") == 1
	h.MemoryPressure = macMemory[sysctlInt("kern.memorystatus_vm_pressure_level")]
	swap, _ := unix.SysctlRaw("vm.swapusage") // nil after an error
	h.SwapUsed = macSwap(swap)
	if sysctlInt("kern.hv_vmm_present") == 1 {
		h.Virtual = "virtual machine"
	}
	for _, f := range macFacts {
		argv := strings.Fields(f.command)
		f.set(h, firstMatch(string(ask(ctx, argv[0], argv[1:]...)), f.patterns))
	}
	if macSpotlight(string(ask(ctx, "/bin/ps", "-Aceo", "pcpu,comm"))) >= indexingShare {
		h.Busy = append(h.Busy, "Spotlight")
	}
	load, _ := unix.SysctlRaw("vm.loadavg") // nil after an error
	h.Busy = append(h.Busy, loadBusy(loadAverage(load), h.CPUs)...)
}

func disk(ctx context.Context, name string) result.Disk {
	var st unix.Statfs_t
	if err := unix.Statfs(name, &st); err != nil {
		return result.Disk{}
	}
	d := result.Disk{Filesystem: clean(unix.ByteSliceToString(st.Fstypename[:])),
		Free: int64(st.Bavail) * int64(st.Bsize), Total: int64(st.Blocks) * int64(st.Bsize)}
	device := unix.ByteSliceToString(st.Mntfromname[:])
	switch {
	case slices.Contains(remote, d.Filesystem):
		d.Medium, d.Bus = "network", "network"
	case d.Filesystem == "tmpfs":
		d.Medium = "memory"
	case strings.HasPrefix(device, "/dev/disk"):
		mount := unix.ByteSliceToString(st.Mntonname[:])
		macDisk(ctx, &d, filepath.Base(device), mount, ask)
	}
	return d
}

// bootID is the session's identifier: the boot time moves when the clock is set.
func bootID() string { return sysctl("kern.bootsessionuuid") }

// osVersion asks sw_vers(1): the kernel gives programs that were linked for older
// systems a number that no system ever had, 10.16 or 16.x.
var osVersion = sync.OnceValues(func() (version, build string) {
	product := clean(string(ask(context.Background(), "/usr/bin/sw_vers", "-productVersion")))
	return cmp.Or(product, sysctl("kern.osproductversion")), sysctl("kern.osversion")
})

func memory() (physical, limit int64) {
	n, _ := unix.SysctlUint64("hw.memsize") // 0 after an error
	return int64(n), 0
}

// slept is how long the machine has slept since it booted: the raw monotonic
// clock runs on through a sleep, the uptime clock does not (clock_gettime(3)). It
// is exact to some microseconds.
func slept() (time.Duration, error) { return between(unix.CLOCK_MONOTONIC_RAW, unix.CLOCK_UPTIME_RAW) }

// runDelay is unknown.
func runDelay() (read func() time.Duration) { return func() time.Duration { return 0 } }

// Throttled is 0: there are no limits of processor time.
func Throttled() time.Duration { return 0 }

// InhibitSleep keeps the machine awake by caffeinate(8) until release is called
// or this process ends, and returns how.
func InhibitSleep() (release func(), how string, err error) {
	cmd := exec.Command("/usr/bin/caffeinate", "-dims", "-w", strconv.Itoa(os.Getpid()))
	// An interrupt from the terminal is ours to handle.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, "", fmt.Errorf("inhibiting sleep: %w: %w", err, ErrUnsupported)
	}
	return sync.OnceFunc(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }), "caffeinate", nil
}

// Tune returns no settings: macOS has neither governors nor huge pages to
// switch.
func Tune() Tuning { return Tuning{} }

// DeviceBytes returns the bytes that the disk below path has read and written
// since boot, by everybody: the statistics of the storage drivers of the
// volume's disks. An error that matches [ErrUnsupported] is why they are not
// known. It asks ioreg(8), since that is the only way without cgo into the
// registry, which takes some tens of milliseconds: outside of whatever is
// timed.
func DeviceBytes(path string) (read, written int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, 0, err
	}
	name, err := bsdName(unix.ByteSliceToString(st.Mntfromname[:]))
	if err != nil {
		return 0, 0, err
	}
	// Without -l only the drivers themselves have their properties shown.
	out := ask(context.Background(), "/usr/sbin/ioreg", "-a", "-l", "-r", "-c", storageDriver, "-w", "0")
	if out == nil {
		return 0, 0, fmt.Errorf("ioreg did not answer: %w", ErrUnsupported)
	}
	return storageBytes(out, name)
}
