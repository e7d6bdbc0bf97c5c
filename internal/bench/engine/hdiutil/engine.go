// Package hdiutil is the engine that drives hdiutil and `diskutil image`:
// Apple's on a Mac, those of dmgbench (package imagetool) on Linux. One driver
// and one grammar serve both.
//
// It does not trust an exit status alone: a command succeeded if its result is
// there (the file, the mount, the device that is gone), read back from the
// host. It repeats only commands that fail for a passing reason, a bounded
// number of times. Each retry is a warning of the report, since it is part of
// the step that the runner times; the report also has the duration of the last
// single run of the tool, as `<verb>_ns`. It asks the tools for their features
// and does not conclude them from a version.
//
// It never leaves an image attached after an error, detaches a device that no
// longer belongs to its image, deletes what it did not make, replaces the
// requested file system by another one, or passes a passphrase in an argument
// or the environment.
package hdiutil

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/hdiutil/command"
	"dmgbench/internal/linuxhdiutil/attach"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/host"
	"dmgbench/internal/system/hostio"
)

// Paths of Apple's tools.
const (
	AppleHdiutil  = "/usr/bin/hdiutil"
	AppleDiskutil = "/usr/sbin/diskutil"
	AppleLog      = "/usr/bin/log"
	appleIoreg    = "/usr/sbin/ioreg"
	appleFsckAPFS = "/sbin/fsck_apfs"
)

// Vendors of tools.
const (
	vendorApple = "Apple"
	vendorOwn   = "dmgbench"
)

// Options select the tools.
type Options struct {
	// Hdiutil and Diskutil are programs (absolute paths) with the arguments
	// before a command's own: {"/usr/bin/hdiutil"}, or {self, "hdiutil"} and
	// {self, "hdiutil", "diskutil"} on Linux. nil: missing.
	Hdiutil, Diskutil []string
	Log               []string // log(1), which reads the system's log; nil: missing
	Ioreg             []string // ioreg(8), which lists attached images; nil: missing
	FsckAPFS          []string // fsck_apfs(8); nil: missing
	Vendor            string   // "Apple" or "dmgbench"; "": the tool is asked
	System            string   // for titles: "macOS 26.4"
	Version           string   // "": the tool is asked
	Clock             clock.Clock
	// WorkDir is an existing folder for mount points, each a private folder of
	// its own; "": that for temporary files.
	WorkDir string
	// Deadline is how long a verb may take that moves so many bytes; nil: the
	// default.
	Deadline func(verb string, bytes int64) time.Duration
	// Passphrase encrypts images that have none in their spec. A run that is
	// resumed needs the same one.
	Passphrase []byte
	Host       *Host         // nil: this system
	Grace      time.Duration // how long a tool has to end after SIGTERM, 0: 10 s
	// Run runs every program that the engine needs; nil: command.Run. Tests replace it by a model of the tools.
	Run func(context.Context, command.Job) (command.Result, error)
}

// Apple returns the options for Apple's tools on macOS of the named version,
// e.g. "macOS 26.4".
func Apple(system string, c clock.Clock) Options {
	return Options{Hdiutil: []string{AppleHdiutil}, Diskutil: []string{AppleDiskutil}, Log: []string{AppleLog},
		Ioreg: []string{appleIoreg}, FsckAPFS: []string{appleFsckAPFS}, Vendor: vendorApple, System: system, Clock: c}
}

// WorkAlike returns the options for hdiutil of dmgbench: program is an absolute
// path, and args come before the verb, e.g. ("/usr/bin/dmgbench", "hdiutil").
func WorkAlike(c clock.Clock, program string, args ...string) Options {
	prefix := append([]string{program}, args...)
	return Options{
		Hdiutil: prefix, Diskutil: append(prefix[:len(prefix):len(prefix)], "diskutil"), Vendor: vendorOwn, Clock: c,
	}
}

// Engine makes images through the tools. Its methods are not safe for
// concurrent use.
type Engine struct {
	o     Options
	host  Host
	can   capabilities
	noLog string // why the system's log cannot be read, once that is known
	// ejectsFirst is set once diskutil detached what hdiutil had refused to.
	ejectsFirst bool
}

var (
	_ engine.Engine   = (*Engine)(nil)
	_ engine.Releaser = (*Engine)(nil)
)

// New asks the tools for their features. It fails when no tool answers.
func New(ctx context.Context, o Options) (*Engine, error) {
	e, err := newUnprobed(o)
	if err == nil {
		err = e.probe(ctx)
	}
	return e, err
}

// newUnprobed makes an engine without asking the tools.
func newUnprobed(o Options) (*Engine, error) {
	if o.Deadline == nil {
		o.Deadline = deadlineOf
	}
	o.Clock, o.Host = cmp.Or[clock.Clock](o.Clock, clock.NewReal()), cmp.Or(o.Host, systemHost())
	if o.Run == nil {
		o.Run = command.Run
	}
	o.Grace = cmp.Or(o.Grace, 10*time.Second)
	// Tools print resolved paths.
	dir, err := filepath.EvalSymlinks(cmp.Or(o.WorkDir, os.TempDir()))
	if err == nil {
		o.WorkDir, err = filepath.Abs(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the folder for mount points: %w", err)
	}
	return &Engine{o: o, host: *o.Host}, nil
}

// isApple reports whether Apple's tools are driven, and not those of dmgbench.
func (e *Engine) isApple() bool { return e.o.Vendor != vendorOwn }

// Info names the engine and the vendor of its tools.
func (e *Engine) Info() engine.Info {
	return engine.Info{Name: "hdiutil", Vendor: e.o.Vendor, Version: cmp.Or(e.o.Version, e.o.System),
		Title: e.title(backendHdiutil)}
}

// title is a backend's name for output, which never prints plain "hdiutil", or
// that of the other backend if this one is missing.
func (e *Engine) title(backend string) string {
	if !e.can.present[backend] {
		backend = cmp.Or(map[string]string{backendHdiutil: backendDiskutil}[backend], backendHdiutil)
	}
	if !e.isApple() {
		return backend + " (dmgbench work-alike)"
	}
	return backend + " (" + strings.TrimSuffix(e.o.Vendor+", "+e.o.System, ", ") + ")"
}

// Supports refuses a spec that neither tool can make.
func (e *Engine) Supports(s engine.Spec) error {
	_, err := e.choose(s)
	return err
}

// Open opens a container that Create, Convert or Transfer made; name may end in
// the extension.
func (e *Engine) Open(_ context.Context, dir *hostio.Dir, name string, s engine.Spec) (engine.Container, error) {
	c, err := e.chooseFormat(s)
	if err != nil {
		return nil, err
	}
	return asContainer(e.openImage(dir, engine.FileName(name, c.format), s, c))
}

// Host is what the engine reads from the system without the tools. Tests
// replace it.
type Host struct {
	Mounts func() ([]host.Mount, error)
	Exists func(device string) bool // the device has a node
	// CommandLines are those of all other processes, with arguments that end
	// with a zero byte or a blank; nil: not known.
	CommandLines func(context.Context) []string
	// CommandLine is that of a process, as in CommandLines, or "" if it is not
	// known.
	CommandLine func(ctx context.Context, pid int) string
	// Trim discards what the volume mounted on dir does not use, and returns
	// the bytes; errors.ErrUnsupported where that is not possible.
	Trim func(ctx context.Context, dir string) (int64, error)
	// MissingFor returns what to do before hdiutil for Linux can make and mount
	// a file system of a plan, "" if it can; nil: it can.
	MissingFor func(filesystem string) string
	// MissingForFUSE returns what to do before hdiutil for Linux can serve
	// images by FUSE, "" if it can; nil: it can.
	MissingForFUSE func() string
	// Writable reports whether this user may make files in dir; nil: yes.
	Writable func(dir string) bool
	// VolumeSize returns the bytes of the volume mounted on dir; nil: not known.
	VolumeSize func(dir string) (int64, error)
	// ServedBy returns what serves the image on a device whose volume is
	// mounted as a type: loop, fuse+loop or fuse, "" if that is not known; may
	// be nil.
	ServedBy func(device, kind, image string) string
}

// volumeSize asks statfs(2).
func volumeSize(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("reading the size of the volume on %q: %w", dir, err)
	}
	return int64(s.Blocks) * int64(s.Bsize), nil
}

// writable reports whether this user may make files in a folder.
func writable(dir string) bool { return unix.Access(dir, unix.W_OK) == nil }

// exists reports whether a file, folder or device is there.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// mountedOn is the last mount on the folder. The table has the folder's path
// with links followed and in the case that the disk stores: where the last part
// agrees, the folders are compared. Other mounts are not touched, since a share
// without its server would hang.
func (h Host) mountedOn(dir string) (found host.Mount, ok bool, err error) {
	list, err := h.Mounts()
	for _, m := range list {
		if m.Point == dir || filepath.Base(m.Point) == filepath.Base(dir) && sameFile(m.Point, dir) {
			found, ok = m, true
		}
	}
	return found, ok, err
}

// sameFile reports whether both paths lead to one file or folder.
func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return a == b || errX == nil && errY == nil && os.SameFile(x, y)
}

// How long to wait for tools that a killed run had started, and how often to
// look for them.
const (
	orphanTime = time.Minute
	orphanPoll = 50 * time.Millisecond
)

// waitForTools waits until no tool works below the folder any more: a tool
// survives the run that started it, and might attach an image later. The
// processes that serve images do not count: they end when their image is
// detached. The folder may have several names: command lines have the one that
// the run was given.
func (e *Engine) waitForTools(ctx context.Context, folder ...string) error {
	if e.host.CommandLines == nil {
		return nil
	}
	c := e.o.Clock
	for until := c.Now() + orphanTime; c.Now() < until && hasToolAtWork(e.host.CommandLines(ctx), folder...); {
		if err := c.Sleep(ctx, orphanPoll); err != nil {
			return err
		}
	}
	return nil
}

// hasToolAtWork reports whether one of the command lines is that of a tool with
// an argument below the folder, by any of its names.
func hasToolAtWork(lines []string, folder ...string) bool {
	return slices.ContainsFunc(lines, func(line string) bool {
		tool := strings.Contains(line, "hdiutil") || strings.Contains(line, "diskutil")
		below := slices.ContainsFunc(folder, func(name string) bool { return strings.Contains(line, name+"/") })
		return tool && below && !strings.Contains(line, attach.HelperVerb)
	})
}
