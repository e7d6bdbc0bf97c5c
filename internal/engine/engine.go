// Package engine says what makes and attaches images, and keeps the errors that
// all engines share.
//
// An [Engine] makes a [Container]; attached, that is an [Attachment] with a
// volume that files are put on. The engines themselves live below: inprocess,
// directory (the native baseline), hdiutil, simulated. No engine's behaviour
// depends on the plan, and none measures anything: timing is the runner's.
package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"dmgbench/internal/hostio"
	"dmgbench/internal/workload"
)

// Info names an engine.
type Info struct {
	Name    string // hdiutil | inprocess | directory | simulated
	Vendor  string // Apple | dmgbench
	Version string
	Title   string // as output names it, never plain "hdiutil"
}

// Spec is the image that is asked for.
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

// Action is what a step does to a container that there is, as far as engines differ in it.
type Action struct {
	Do     string // compact | resize | convert | transfer | damage | check | xattr | stream
	To     Spec   // convert: what is made
	Kind   string // damage: what is damaged; stream: the codec
	Repair bool   // check
}

// Engine makes containers. Its methods are not safe for concurrent use.
type Engine interface {
	Info() Info
	// Supports is nil, or an *UnsupportedError with the reason that an image cannot be made so.
	Supports(Spec) error
	// Allows is nil, or an *UnsupportedError with the reason that an action cannot be done to an image made so.
	// The methods of containers refuse by the same rules: what is refused is known before anything is made.
	Allows(Spec, Action) error
	// PeakBytes is what the container can occupy at most on the host while live bytes of files are on it.
	PeakBytes(s Spec, live int64) int64
	// Create makes the container and its file system in dir, and nothing else: it is not attached.
	Create(ctx context.Context, dir *hostio.Dir, name string, s Spec) (Container, error)
	// Open finds a container that Create made earlier.
	Open(ctx context.Context, dir *hostio.Dir, name string, s Spec) (Container, error)
}

// Container is one image (or plain directory) on the host.
type Container interface {
	// Name is the file or folder inside the place, extension included.
	Name() string
	// Made is what was really made: file system, band size used.
	Made() Made
	Attach(ctx context.Context, o AttachOptions) (Attachment, error)
	Usage(ctx context.Context) (Usage, error)
	// Compact frees what the volume does not use and says how many bytes went back to the host.
	Compact(ctx context.Context, o CompactOptions) (Report, error)
	Resize(ctx context.Context, size int64) (Report, error)
	Convert(ctx context.Context, dir *hostio.Dir, name string, s Spec) (Container, error)
	// Transfer copies the container byte for byte.
	Transfer(ctx context.Context, dir *hostio.Dir, name string) (Container, error)
	Check(ctx context.Context, o CheckOptions) (Report, error)
	// Damage harms this container on purpose; the runner only calls it on copies.
	Damage(ctx context.Context, kind string) error
	Xattr(ctx context.Context, action, name, value string) (Report, error)
	// Evict drops the host's cached pages of the container; only while detached.
	Evict(ctx context.Context) error
	// Identity changes when somebody swaps the container for another one.
	Identity(ctx context.Context) (string, error)
	// OpenWith are the command lines by which a person opens the container at path.
	OpenWith(path string) []string
	Remove(ctx context.Context) error
}

// Made is what the tool made of a Spec.
type Made struct {
	Filesystem string
	Size       int64
	BandSize   int64 // 0: no bands
	Backend    string
	ServedBy   string // when it was attached last: loop, fuse+loop, fuse, or as asked kernel or helper; "" where that is not known
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
type Usage struct {
	Allocated, Apparent int64 // bytes
	Sparse              bool
	Bands, BandsFull    int
}

// Report is what an action said of itself.
type Report struct {
	Freed    int64             // bytes given back to the host
	Findings []string          // of a check; none means clean
	Reported map[string]string // the tool's own words and figures
	Warnings []string
	// Retried is how long tries that failed, and the pauses between tries, took inside the action.
	Retried time.Duration
}

// Attachment is an attached image.
type Attachment interface {
	// Volume is the mounted file system, nil when attached without mounting.
	Volume() workload.Volume
	// Trim gives the volume's free space back to the container, in bytes.
	Trim(ctx context.Context) (Report, error)
	// Detach unmounts and detaches; after an error it may be tried again with force.
	Detach(ctx context.Context, force bool) (Report, error)
}

// Reporter is a [Container] or an [Attachment] that keeps what its making said of
// itself, since Create, Convert and Attach return no report: retries, the
// tool's own figures and words. TakeReport hands it over once.
type Reporter interface{ TakeReport() Report }

// PostDetachReporter is an [Attachment] of which the system tells something only when it is
// over, and slowly. ReportAfterDetach asks for that once the attachment is detached, outside
// of whatever is timed; it has no error, but may report why there is nothing to tell.
type PostDetachReporter interface {
	ReportAfterDetach(ctx context.Context) Report
}

// Releaser is an [Engine] whose containers stay attached when the process that
// attached them ends.
type Releaser interface {
	// Release detaches by force what lies below the folder (an absolute path), or is
	// mounted below it, whoever attached it, and names the containers.
	Release(ctx context.Context, dir string) ([]string, error)
}

// Simulator is an [Engine] that stands in for the whole disk by a stated law:
// plain folders and the canary are its own as well, nothing of it takes space on
// the host, and nothing of the host's disk is in its numbers.
type Simulator interface {
	Engine
	// Simulated names the law in one line.
	Simulated() string
}

// UnsupportedError says what an engine cannot do; the case is skipped with this reason.
type UnsupportedError struct {
	Engine string // title
	What   string // "format UDSP", "encryption AES-256", "resize"
	Hint   string // what would help, may be empty
}

// Error names the engine and what it cannot do.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s does not support %s", e.Engine, e.What)
}

// Advice is what would help.
func (e *UnsupportedError) Advice() string { return e.Hint }

// Advised is the text of an error with what would help against it, where the
// error or one that it wraps gives an Advice that the text has not yet. It is
// what stands in a result, where nobody prints the advice beside the text.
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

// ErrGone says that a container is no longer what it was: deleted, or another file under its name.
var ErrGone = errors.New("the container is gone or was replaced")

// Gone adds [ErrGone] to errors that mean it: something that is missing, was
// replaced while it was open, or is no file or folder any more. Others stay as they are.
func Gone(err error) error {
	if err == nil || errors.Is(err, ErrGone) || !errors.Is(err, hostio.ErrReplaced) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, hostio.ErrNotRegular) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrGone, err)
}
