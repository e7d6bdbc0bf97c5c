package hdiutil

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"dmgbench/internal/clock"
	"dmgbench/internal/engine"
	"dmgbench/internal/engine/hdiutil/argv"
	"dmgbench/internal/hostio"
)

// Where Apple keeps its tools.
const (
	AppleHdiutil  = "/usr/bin/hdiutil"
	AppleDiskutil = "/usr/sbin/diskutil"
)

// Options say which tools are driven.
type Options struct {
	// Hdiutil and Diskutil are programs (absolute paths) with the arguments
	// before a command's own: {"/usr/bin/hdiutil"}, or {self, "hdiutil"} and
	// {self, "hdiutil", "diskutil"} for the work-alike. nil: there is none.
	Hdiutil, Diskutil []string
	Log               []string // what reads the system's log; nil: nothing does
	Vendor            string   // "Apple" or "dmgbench"; "" is asked of the tool
	System            string   // for titles: "macOS 26.4"
	Version           string   // "" is asked of the tool
	Clock             clock.Clock
	// WorkDir is an existing private folder for mount points; "" makes a temporary one, which Close removes.
	WorkDir string
	// Deadline is how long a verb may take with so many bytes to move; nil is the usual.
	Deadline func(verb string, bytes int64) time.Duration
	// Passphrase encrypts images whose spec has none: the secret of one run. It
	// has to be the same when a run that paused goes on.
	Passphrase []byte
	// Host is the mount table and such; nil is this system's.
	Host *Host
	// Grace is how long a tool has to end when it is asked to, 0 is 10 s.
	Grace time.Duration
}

// Apple are the options for Apple's tools on macOS of the named version, e.g. "macOS 26.4".
func Apple(system string, c clock.Clock) Options {
	return Options{Hdiutil: []string{AppleHdiutil}, Diskutil: []string{AppleDiskutil}, Log: []string{AppleLog}, Vendor: "Apple", System: system, Clock: c}
}

// WorkAlike are the options for this project's own tool: program is an absolute
// path, and args come before the verb, e.g. ("/usr/bin/dmgbench", "hdiutil").
func WorkAlike(c clock.Clock, program string, args ...string) Options {
	prefix := append([]string{program}, args...)
	return Options{
		Hdiutil: prefix, Diskutil: append(prefix[:len(prefix):len(prefix)], "diskutil"), Vendor: "dmgbench", Clock: c,
	}
}

// Engine makes images through the tools. Its methods are not safe for concurrent use.
type Engine struct {
	d     *driver
	host  Host
	can   abilities
	o     Options
	mnt   int  // mount points made so far
	owned bool // the working folder is ours to remove
	// logless is why the system's log cannot be read, once that is known.
	logless string
}

var _ engine.Engine = (*Engine)(nil)

// New asks the tools what they can do. It fails when no tool answers.
func New(ctx context.Context, o Options) (*Engine, error) {
	e, err := assemble(o)
	if err != nil {
		return nil, err
	}
	if err := e.probe(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// assemble makes an engine that has not asked its tools yet.
func assemble(o Options) (e *Engine, err error) {
	if o.Clock == nil {
		o.Clock = clock.NewReal()
	}
	if o.Deadline == nil {
		o.Deadline = deadlineOf
	}
	if o.Grace == 0 {
		o.Grace = 10 * time.Second
	}
	if o.Host == nil {
		o.Host = &Host{Mounts: systemMounts, Exists: nodeExists, CommandLines: commandLines, Trim: trimVolume, Lacks: lacks, NoFUSE: noFUSE, ServedBy: servedBy}
	}
	e = &Engine{host: *o.Host}
	dir := o.WorkDir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "dmgbench-"); err != nil {
			return nil, fmt.Errorf("making a folder for mount points: %w", err)
		}
		e.owned = true
	}
	// Tools print resolved paths.
	if o.WorkDir, err = filepath.EvalSymlinks(dir); err == nil {
		o.WorkDir, err = filepath.Abs(o.WorkDir)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the folder for mount points: %w", err)
	}
	e.o = o
	e.d = &driver{
		tools: map[argv.Tool][]string{argv.Hdiutil: o.Hdiutil, argv.Diskutil: o.Diskutil, argv.Log: o.Log},
		clock: o.Clock, deadline: o.Deadline, grace: o.Grace, dir: o.WorkDir,
	}
	return e, nil
}

// Close removes the folder for mount points if New made it. What is still mounted there stays.
func (e *Engine) Close() error {
	if !e.owned {
		return nil
	}
	list, err := os.ReadDir(e.o.WorkDir)
	if err != nil {
		return fmt.Errorf("removing the folder for mount points: %w", err)
	}
	for _, entry := range list {
		_ = os.Remove(filepath.Join(e.o.WorkDir, entry.Name())) // fails on what is in use
	}
	if err := os.Remove(e.o.WorkDir); err != nil {
		return fmt.Errorf("removing the folder for mount points: %w", err)
	}
	e.owned = false
	return nil
}

// Info names the engine: whose tools they are.
func (e *Engine) Info() engine.Info {
	version := e.o.Version
	if version == "" {
		version = e.o.System
	}
	return engine.Info{Name: "hdiutil", Vendor: e.o.Vendor, Version: version, Title: e.title(backendHdiutil)}
}

// title is how output names a backend, never plain "hdiutil".
func (e *Engine) title(backend string) string {
	if backend == backendHdiutil && !e.can.hdiutil {
		backend = backendDiskutil
	}
	switch {
	case e.o.Vendor == "dmgbench":
		return backend + " (dmgbench work-alike)"
	case e.o.System != "":
		return fmt.Sprintf("%s (%s, %s)", backend, e.o.Vendor, e.o.System)
	}
	return fmt.Sprintf("%s (%s)", backend, e.o.Vendor)
}

// Supports refuses what neither tool can make.
func (e *Engine) Supports(s engine.Spec) error {
	_, err := e.choose(s)
	return err
}

// slack is what tables, journals and half-used bands may take beyond live bytes.
const slack = 64 << 20

// PeakBytes is the whole size for kinds that are written in full, and for
// kinds that grow the live bytes, in whole bands, with a thousandth and 64 MiB for tables.
func (e *Engine) PeakBytes(s engine.Spec, live int64) int64 {
	unit := int64(1 << 20)
	switch canonical(s.Format) {
	case "UDSB":
		unit = s.BandSize
		if unit == 0 {
			unit = 8 << 20
		}
	case "UDSP", "ASIF":
	default:
		return s.Size
	}
	grown := (live+unit-1)/unit*unit + 4*unit + s.Size/1000 + slack
	return min(grown, s.Size+s.Size/1000+slack)
}

// Open finds a container that Create, Convert or Transfer made; name may end in the extension.
func (e *Engine) Open(ctx context.Context, dir *hostio.Dir, name string, s engine.Spec) (engine.Container, error) {
	c, err := e.chooseKind(s, kinds[canonical(s.Format)])
	if err != nil {
		return nil, err
	}
	return opened(e.find(ctx, dir, withExtension(name, c.kind.ext), e.keyed(s), c))
}

// keyed gives a spec without a passphrase the run's.
func (e *Engine) keyed(s engine.Spec) engine.Spec {
	if len(s.Passphrase) == 0 {
		s.Passphrase = e.o.Passphrase
	}
	return s
}

// opened makes a missing image a missing interface.
func opened(i *image, err error) (engine.Container, error) {
	if err != nil {
		return nil, err
	}
	return i, nil
}
