// Package engine declares the interfaces of engines, which make and attach
// images, and the errors and helpers that all engines share.
//
// An [Engine] makes a [Container]. Attaching that gives an [Attachment] with a
// volume for files. The engines are in the packages below: inprocess, directory
// (the native baseline), hdiutil and simulated. An engine's behaviour does not
// depend on the plan, and engines do not measure: the runner does.
package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"dmgbench/internal/bench/workload"
	"dmgbench/internal/image"
	"dmgbench/internal/image/container"
	"dmgbench/internal/image/container/files"
	"dmgbench/internal/system/hostio"
)

// Info names an engine.
type Info struct {
	Name    string // hdiutil | inprocess | directory | simulated
	Vendor  string // Apple | dmgbench
	Version string
	Title   string // as output names it, never plain "hdiutil"
}

// Spec describes the requested image.
type Spec struct {
	Format      string   // Apple's four letters; "" for a directory
	Encryption  string   // none | AES-128 | AES-256
	Filesystems []string // preference; the first one the engine can make is used
	Size        int64    // bytes
	BandSize    int64    // bytes, 0 = default
	VolumeName  string
	Backend     string           // auto | hdiutil | diskutil
	ServedBy    string           // auto | kernel | helper: what serves the blocks of the attached image
	Cache       hostio.CacheMode // how the container's host files are opened
	Preallocate bool             // directory: reserve a file's space before its timed write
	Passphrase  []byte
}

// Encrypted reports whether the image is to be encrypted.
func (s Spec) Encrypted() bool { return s.Encryption != "" && s.Encryption != image.NotEncrypted }

// WithPassphrase returns the spec with a passphrase: that of the spec, else
// pass, and none for an image that is not encrypted.
func (s Spec) WithPassphrase(pass []byte) (Spec, error) {
	switch {
	case !s.Encrypted():
		s.Passphrase = nil
	case len(s.Passphrase) == 0 && len(pass) == 0:
		return s, fmt.Errorf("encryption %s without a passphrase: %w", s.Encryption, container.ErrPassphrase)
	case len(s.Passphrase) == 0:
		s.Passphrase = pass
	}
	return s, nil
}

// Action is what a step does to an existing container, as far as engines differ
// in it.
type Action struct {
	Do     string // compact | resize | convert | transfer | damage | check | xattr | stream
	To     Spec   // convert: what is made
	Kind   string // damage: what is damaged; stream: the codec
	Repair bool   // check
}

// Engine makes containers. Its methods are not safe for concurrent use.
type Engine interface {
	Info() Info
	// Supports is nil, or an *UnsupportedError with the reason that an image
	// cannot be made so.
	Supports(Spec) error
	// Allows is nil, or an *UnsupportedError with the reason that an action
	// cannot be done to an image made so. The methods of containers refuse by
	// the same rules: what is refused is known before anything is made.
	Allows(Spec, Action) error
	// Create makes the container and its file system in dir, without attaching
	// it.
	Create(ctx context.Context, dir *hostio.Dir, name string, s Spec) (Container, error)
	// Open opens a container that Create made earlier.
	Open(ctx context.Context, dir *hostio.Dir, name string, s Spec) (Container, error)
}

// Container is one image (or plain directory) on the host.
type Container interface {
	// Name is the file or folder inside the place, extension included.
	Name() string
	// Made is what was made: file system, size, band size.
	Made() Made
	Attach(ctx context.Context, o AttachOptions) (Attachment, error)
	Usage(ctx context.Context) (Usage, error)
	// Compact frees what the volume does not use; Freed is what the host got
	// back.
	Compact(ctx context.Context, o CompactOptions) (Report, error)
	Resize(ctx context.Context, size int64) (Report, error)
	Convert(ctx context.Context, dir *hostio.Dir, name string, s Spec) (Container, error)
	// Transfer copies the container byte for byte.
	Transfer(ctx context.Context, dir *hostio.Dir, name string) (Container, error)
	Check(ctx context.Context, o CheckOptions) (Report, error)
	// Damage damages this container on purpose; the runner calls it on copies
	// only.
	Damage(ctx context.Context, kind string) error
	Xattr(ctx context.Context, action, name, value string) (Report, error)
	// Evict drops the host's cached pages of the container; only while
	// detached.
	Evict(ctx context.Context) error
	// Identity changes when the container is replaced by another one.
	Identity(ctx context.Context) (string, error)
	// OpenWith are command lines with which a person opens the container at
	// path.
	OpenWith(path string) []string
	Remove(ctx context.Context) error
}

// Made is what was made of a Spec.
type Made struct {
	Filesystem string
	Size       int64
	BandSize   int64 // 0: no bands
	Backend    string
	// ServedBy is what served it when it was attached last: loop, fuse+loop,
	// fuse, or as requested kernel or helper; "" where that is not known.
	ServedBy string
}

// AttachOptions of one attach.
type AttachOptions struct {
	ReadOnly bool
	NoMount  bool
	NoVerify bool
	Cache    hostio.CacheMode
}

// CompactOptions of one compaction.
type CompactOptions struct{ AllowBattery bool }

// CheckOptions of one check.
type CheckOptions struct {
	What   string // container | volume
	Repair bool
}

// Usage is what a container occupies.
type Usage = files.Usage

// Report is the outcome of an action.
type Report struct {
	Freed    int64             // bytes given back to the host
	Findings []string          // of a check; none means clean
	Reported map[string]string // the tool's own messages and figures
	Warnings []string
	// Retried is the time that failed tries and the pauses after them took, as
	// part of the action.
	Retried time.Duration
}

// Warn adds a warning.
func (r *Report) Warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// Find adds a finding of a check.
func (r *Report) Find(text string) { r.Findings = append(r.Findings, text) }

// Note sets a reported figure; an empty value is left out.
func (r *Report) Note(key, value string) {
	if value == "" {
		return
	}
	if r.Reported == nil {
		r.Reported = map[string]string{}
	}
	r.Reported[key] = value
}

// Add appends another report.
func (r *Report) Add(o Report) {
	r.Freed += o.Freed
	r.Retried += o.Retried
	r.Findings = append(r.Findings, o.Findings...)
	r.Warnings = append(r.Warnings, o.Warnings...)
	for k, v := range o.Reported {
		r.Note(k, v)
	}
}

// Take returns the report and empties it.
func (r *Report) Take() Report {
	taken := *r
	*r = Report{}
	return taken
}

// Attachment is an attached image.
type Attachment interface {
	// Volume is the mounted file system, nil when attached without mounting.
	Volume() workload.Volume
	// Trim gives the volume's free space back to the container, in bytes.
	Trim(ctx context.Context) (Report, error)
	// Detach unmounts and detaches; after an error it may be tried again with
	// force.
	Detach(ctx context.Context, force bool) (Report, error)
}

// Reporter is a [Container] or an [Attachment] with a report of its making,
// since Create, Convert and Attach return none: retries, the tool's figures and
// messages. TakeReport returns it once.
type Reporter interface{ TakeReport() Report }

// PostDetachReporter is an [Attachment] about which the system reports more
// after it ended, and slowly. ReportAfterDetach asks for that after the detach
// and outside of timed steps. It has no error: the report has the reason if
// that is missing.
type PostDetachReporter interface {
	ReportAfterDetach(ctx context.Context) Report
}

// Releaser is an [Engine] whose containers stay attached when the process that
// attached them ends.
type Releaser interface {
	// Release detaches, if necessary by force, the containers below the folder
	// (an absolute path) and those mounted below it, whichever process attached
	// them, and returns their names.
	Release(ctx context.Context, dir string) ([]string, error)
}

// Simulated is the name of the engine that simulates the whole disk by a given
// law: it also serves native folders and the canary, takes no space on the host,
// and its numbers do not depend on the host's disk.
const Simulated = "simulated"

// UnsupportedError is what an engine cannot do. The case is skipped with this
// reason.
type UnsupportedError struct {
	Engine string // title
	What   string // "format UDSP", "encryption AES-256", "resize"
	Hint   string // what helps, may be empty
}

// Error names the engine and what it cannot do.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s does not support %s", e.Engine, e.What)
}

// Advice is the hint.
func (e *UnsupportedError) Advice() string { return e.Hint }

// Advised is the text of an error with its hint, if the error or one that it
// wraps has an Advice that is not in the text yet. Results contain this text,
// since their readers see no separate hint.
func Advised(err error) string {
	text := err.Error()
	if a, ok := errors.AsType[interface {
		error
		Advice() string
	}](err); ok && a.Advice() != "" && !strings.Contains(text, a.Advice()) {
		text += "; hint: " + a.Advice()
	}
	return text
}

// ErrGone means that a container was deleted, or that its name is now that of
// another file.
var ErrGone = errors.New("the container is gone or was replaced")

// Gone adds [ErrGone] to errors that mean it: a file that is missing, was
// replaced while it was open, or became something else. It returns other errors
// as they are.
func Gone(err error) error {
	missing := errors.Is(err, hostio.ErrReplaced) || errors.Is(err, fs.ErrNotExist) ||
		errors.Is(err, hostio.ErrNotRegular)
	if missing && !errors.Is(err, ErrGone) {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	return err
}

const (
	probeSize  = 16 << 20 // bytes of the image that Probe makes
	probeWrite = 4096     // bytes of the file that it writes
)

// Probe tries whether e works in dir: it makes a small image (16 MB UDRW, or a
// native folder if e supports no UDRW), attaches it, writes a file, flushes,
// detaches and removes everything. The error names what failed.
func Probe(ctx context.Context, e Engine, dir *hostio.Dir) (err error) {
	s := Spec{Format: "UDRW", Size: probeSize, VolumeName: "probe"}
	if no := e.Supports(s); no != nil {
		if e.Supports(Spec{}) != nil {
			return fmt.Errorf("probing engine %q: %w", e.Info().Name, no)
		}
		s = Spec{}
	}
	c, err := e.Create(ctx, dir, ".dmgbench-probe", s)
	if err == nil {
		clean := context.WithoutCancel(ctx)
		err = errors.Join(probeFile(ctx, clean, c), c.Remove(clean))
	}
	if err != nil {
		return fmt.Errorf("probing engine %q: %w", e.Info().Name, err)
	}
	return nil
}

// probeFile writes a file while c is attached.
func probeFile(ctx, clean context.Context, c Container) error {
	a, err := c.Attach(ctx, AttachOptions{})
	if err != nil {
		return err
	}
	f, err := a.Volume().Create("probe", probeWrite, workload.FileOptions{})
	if err == nil {
		_, err = f.WriteAt(make([]byte, probeWrite), 0)
		if err == nil {
			_, err = f.Sync(hostio.SyncFull)
		}
		err = errors.Join(err, f.Close())
	}
	_, e := a.Detach(clean, err != nil)
	return errors.Join(err, e)
}
