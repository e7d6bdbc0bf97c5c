// Package host reports hardware, operating system and load, and whether the
// machine is fit to measure on.
//
// Facts are read from where the system keeps them: /proc, /sys and os-release
// on Linux; sysctl, pmset and diskutil on macOS. A fact that could not be had
// is empty or zero, and is never guessed: a processor count, a medium or a
// power source that is made up would be compared with published figures as if
// it were known.
//
// The package does not measure, changes only the lock in the state directory
// and the inhibition of sleep, and records no host name, user or path unless it
// has to identify the machine. Texts of the system are cut and cleaned of
// control characters before they get into a result.
package host

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
)

// ErrUnsupported is returned where the operating system has no such fact or
// service. It matches [errors.ErrUnsupported].
var ErrUnsupported = fmt.Errorf("not supported by this system: %w", errors.ErrUnsupported)

// Place is a folder that a run measures in, under the name that results give
// it.
type Place struct {
	Name, Path string
	Tool       string // the program that serves it, one of versionFlags; may be empty
	Backing    bool   // sizes are those of another folder
}

// versionFlags are the programs that may serve a place, and how each prints its
// version: plans name them, and must not run any other command.
var versionFlags = map[string][]string{"gocryptfs": {"-version"}, "cryfs": {"--version"}, "encfs": {"--version"},
	"securefs": {"version"}, "veracrypt": {"--text", "--version"}, "cryptomator-cli": {"--version"},
	"sshfs": {"--version"}, "rclone": {"version"}}

// toolVersion is the first line that a program prints about its version.
func toolVersion(ctx context.Context, tool string) string {
	flags, known := versionFlags[tool]
	if !known {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, tool, flags...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput() // encfs prints it to stderr
	first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if err != nil || first == "" {
		return tool + ", version unknown"
	}
	return clean(first)
}

// toolTime bounds how long a program may take to print its version.
const toolTime = 5 * time.Second

// Gather collects the facts of this machine and of the disks under the places.
// Host name, user and paths are left out unless identify is set. It never
// fails: what cannot be read stays empty. The deadline of ctx bounds the
// commands that macOS needs to be asked with.
func Gather(ctx context.Context, places []Place, identify bool) result.Host {
	h := result.Host{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(),
		Cores: []result.Cores{}, Busy: []string{}, Disks: []result.Disk{}}
	gather(ctx, &h)
	for _, p := range places {
		d := disk(ctx, p.Path)
		d.Place, d.Medium = p.Name, cmp.Or(d.Medium, "unknown")
		d.Tool, d.Backing = toolVersion(ctx, p.Tool), p.Backing
		if identify {
			d.Path = p.Path
		}
		h.Disks = append(h.Disks, d)
	}
	if len(h.Cores) == 0 && h.CPUs > 0 {
		h.Cores = append(h.Cores, result.Cores{Count: h.CPUs})
	}
	if identify {
		h.Name, _ = os.Hostname()
		if u, err := user.Current(); err == nil {
			h.User = u.Username
		}
	}
	return h
}

// BootID is a digest of 16 hex digits that distinguishes two boots and contains
// no other fact; "" where the system does not report it.
func BootID() string {
	id := bootID()
	if id == "" {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte("dmgbench boot "+id)))[:16]
}

// OSVersion is the version of macOS and its build, such as "26.4" and "25E246";
// "" elsewhere.
func OSVersion() (version, build string) { return osVersion() }

// Memory is the bytes of memory that this process may use: the physical memory
// or the limit of its control group, whichever is less; 0 if neither is known.
func Memory() int64 { return lesser(memory()) }

// lesser is the smaller of two amounts, where 0 is none.
func lesser[T int64 | float64](a, b T) T {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// containers are the kinds of Host.Virtual that share the kernel, and so the
// caches, of the machine they run on.
var containers = map[string]bool{
	"docker": true, "podman": true, "lxc": true, "systemd-nspawn": true, "kubernetes": true, "container": true,
}

// Virtual reports whether the machine is virtual, so that what its disk and
// caches do is up to a hypervisor. A container alone is not a virtual machine.
func Virtual(h result.Host) bool {
	for kind := range strings.SplitSeq(h.Virtual, ", ") {
		if kind != "" && !containers[kind] {
			return true
		}
	}
	return false
}

// textLimit is the longest text, in runes, that a fact may have.
const textLimit = 120

// clean makes a text of the system fit for a result: one line, no control
// characters, no runs of blanks, at most textLimit runes.
func clean(s string) string {
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, " "), func(r rune) bool {
		return r == ' ' || !unicode.IsPrint(r)
	}), " ")
	if r := []rune(s); len(r) > textLimit {
		s = strings.TrimSpace(string(r[:textLimit]))
	}
	return s
}

// nameLimit is the longest name, in runes, that a user may give a machine.
const nameLimit = 64

// CleanName makes a name that a user gave the machine fit for a result: one line
// of at most 64 characters.
func CleanName(name string) string {
	r := []rune(clean(name))
	return strings.TrimSpace(string(r[:min(len(r), nameLimit)]))
}

// loadBusy is the text about a load of the last minute above one per processor.
func loadBusy(load float64, cpus int) []string {
	if cpus <= 0 || !(load > float64(cpus)) {
		return nil
	}
	return []string{fmt.Sprintf("load average %.1f on %d processors", load, cpus)}
}

// between is how far the first clock is ahead of the second.
func between(ahead, behind int32) (time.Duration, error) {
	var a, b unix.Timespec
	if err := errors.Join(unix.ClockGettime(behind, &b), unix.ClockGettime(ahead, &a)); err != nil {
		return 0, fmt.Errorf("reading clocks %d and %d: %w", ahead, behind, err)
	}
	return max(0, time.Duration(a.Nano()-b.Nano())), nil
}

// ErrBusy is returned by [Lock] while another run measures on this machine.
var ErrBusy = errors.New("another measuring run")

// ErrNoHome is returned by [StateDir] where the user's own folder is not known
// or does not exist, as that of many services: it is not made.
var ErrNoHome = errors.New("HOME is not set to the path of a folder")

// lockName is the file in the state directory that a measuring run locks.
const lockName = "measuring.lock"

// StateDir is where this user's registry of runs and the lock of measuring are
// kept: $DMGBENCH_STATE, else dmgbench in $XDG_STATE_HOME, else in the folder
// that the system has for it. It is an absolute path and need not exist. getenv
// is [os.Getenv] or a replacement.
func StateDir(getenv func(string) string) (string, error) {
	if dir := getenv("DMGBENCH_STATE"); dir != "" {
		return filepath.Abs(dir)
	}
	// The base directory specification has relative paths ignored.
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "dmgbench"), nil
	}
	home := getenv("HOME")
	fi, err := os.Stat(home)
	if err != nil || !fi.IsDir() || !filepath.IsAbs(home) {
		return "", fmt.Errorf("finding state directory: %w", ErrNoHome)
	}
	return filepath.Join(home, stateIn(runtime.GOOS)), nil
}

func stateIn(goos string) string {
	if goos == "darwin" {
		return filepath.Join("Library", "Application Support", "dmgbench")
	}
	return filepath.Join(".local", "state", "dmgbench")
}

// Lock takes the lock of measuring in the state directory, which it makes where
// missing. Two runs at once would measure each other, so a second one gets
// [ErrBusy]. The lock goes with the process, however that ends.
func Lock(stateDir string) (release func(), err error) {
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return nil, fmt.Errorf("making state directory: %w", err)
	}
	dir, err := hostio.OpenDir(stateDir)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	f, err := dir.Open(lockName, hostio.OpenOptions{Write: true, Create: true, Perm: 0o600})
	if err != nil {
		return nil, err
	}
	if err := f.TryLock(); err != nil {
		_ = f.Close()
		if errors.Is(err, hostio.ErrLocked) {
			err = ErrBusy
		}
		return nil, fmt.Errorf("locking %q: %w", filepath.Join(stateDir, lockName), err)
	}
	return func() { _ = f.Close() }, nil
}
