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
	Mount       string           // private | finder: whether Finder and Spotlight see the volume
	Cache       hostio.CacheMode // how the container's host files are opened
	Passphrase  []byte           `json:"-"`
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
	Do     string // compact | resize | convert | transfer | damage | recover | check | xattr | stream
	To     Spec   // convert: what is made
	Kind   string // damage: what is damaged; stream: the codec
	Band   int    // damage: as in [Damage]
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
	// only. The kind [Killed] is not done by it, but by a [Killer].
	Damage(ctx context.Context, d Damage) error
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

// Damage is a way to damage a container.
type Damage = container.Damage

// Killed is the kind of damage of a container whose serving process is killed
// while files are written.
const Killed = "killed"

// Killer is an [Attachment] of [AttachOptions].Killable.
type Killer interface {
	Attachment
	// Kill ends what serves the image, as SIGKILL ends a process: what it has
	// not passed to the host by then is lost, what the host has in its cache is
	// not. Afterwards only Detach with force is left. It is safe to call while
	// files of the volume are in use, which then fail.
	Kill() error
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
	// Mount is how the volume was mounted last, [MountPrivate] or [MountFinder];
	// "" if it was not, which is private.
	Mount string
	// Owners is [OwnersIgnored] or [OwnersKept]; "" where that is not known.
	Owners string
}

// Values of [Made]: how a volume is mounted, and what becomes of the owners of
// its files.
const (
	MountPrivate  = "private"
	MountFinder   = "finder"
	OwnersIgnored = "ignored"
	OwnersKept    = "kept"
)

// AttachOptions of one attach.
type AttachOptions struct {
	ReadOnly bool
	NoMount  bool
	NoVerify bool
	Killable bool // the result is a [Killer]
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
	Retries int // failed tries before the last one
	// Asked is the time in which the engine asked, or waited to ask, whether the
	// image is attached: it is no part of the action.
	Asked time.Duration
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
	r.Retries += o.Retries
	r.Asked += o.Asked
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
	text, advice := err.Error(), Advice(err)
	if advice != "" && !strings.Contains(text, advice) {
		text += "; hint: " + advice
	}
	return text
}

// advisor is an error with advice for the user, "" without any.
type advisor interface {
	error
	Advice() string
}

// Advice is the first advice in the chain of an error, "" without any.
func Advice(err error) (advice string) {
	for e, ok := errors.AsType[advisor](err); ok && advice == ""; e, ok = errors.AsType[advisor](errors.Unwrap(e)) {
		advice = e.Advice()
	}
	return advice
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

// Probe tries whether e works in dir: it makes a small image (16 MB UDRW),
// attaches it, writes a file, flushes, detaches and removes everything. The error
// names what failed.
func Probe(ctx context.Context, e Engine, dir *hostio.Dir) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("probing engine %q: %w", e.Info().Name, err)
		}
	}()
	c, err := e.Create(ctx, dir, ".dmgbench-probe", Spec{Format: image.UDRW, Size: probeSize, VolumeName: "probe"})
	if err != nil {
		return err
	}
	clean := context.WithoutCancel(ctx)
	defer func() { err = errors.Join(err, c.Remove(clean)) }()
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
	_, failed := a.Detach(clean, err != nil)
	return errors.Join(err, failed)
}

// HostFile is the file of an image, or the folder of a bundle, on the host. It
// remembers which one was opened, so that another one under the same name is
// never used in its place. The containers of image engines embed it.
type HostFile struct {
	Dir      *hostio.Dir
	File     string // name in Dir, with extension
	Attached bool   // by this process: kept by the engine
	id       string
}

// FileName is the name of an image with the extension of its format.
func FileName(name string, f image.Format) string {
	return strings.TrimSuffix(name, f.Extension) + f.Extension
}

// OpenHostFile notes the identity of the file.
func OpenHostFile(dir *hostio.Dir, file string) (HostFile, error) {
	f := HostFile{Dir: dir, File: file}
	return f, f.Renew()
}

// Renew notes the identity of the file anew, after a tool that may have
// replaced it.
func (f *HostFile) Renew() (err error) {
	f.id, err = f.Identity(context.Background())
	return err
}

// Name is the name of the file or folder.
func (f *HostFile) Name() string { return f.File }

// Identity is the device and inode of the file, or of the bundle's folder and
// its token.
func (f *HostFile) Identity(context.Context) (string, error) {
	id, err := files.Identity(f.Dir, f.File)
	return id, Gone(err)
}

// CheckSame fails with [ErrGone] if the file is missing or another one.
func (f *HostFile) CheckSame(ctx context.Context, doing string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	now, err := f.Identity(ctx)
	if err == nil && now != f.id {
		err = ErrGone
	}
	if err != nil {
		return fmt.Errorf("%s %q: %w", doing, f.File, err)
	}
	return nil
}

// CheckDetached is CheckSame for what only a detached image allows; the error
// of an attached one is container.ErrInUse.
func (f *HostFile) CheckDetached(ctx context.Context, doing string) error {
	if f.Attached && ctx.Err() == nil {
		return fmt.Errorf("%s %q: it is attached: %w", doing, f.File, container.ErrInUse)
	}
	return f.CheckSame(ctx, doing)
}

// Evict drops the host's cached pages of the file, or of all files of the
// bundle.
func (f *HostFile) Evict(ctx context.Context) error {
	if err := f.CheckDetached(ctx, "evicting"); err != nil {
		return err
	}
	return Gone(files.Evict(ctx, f.Dir, f.File))
}

// CopyTo copies the file, or the bundle's folder with all its files, byte for
// byte, and flushes the copy; holes stay holes. A copy that failed is deleted.
func (f *HostFile) CopyTo(ctx context.Context, dir *hostio.Dir, file string) error {
	if err := f.CheckDetached(ctx, "copying"); err != nil {
		return err
	}
	if err := files.Copy(ctx, f.Dir, f.File, dir, file); err != nil {
		return fmt.Errorf("copying %q: %w", f.File, Gone(err))
	}
	return nil
}

// Xattr lists the extended attributes of the file with their values, or sets or
// removes one. Links are not followed.
func (f *HostFile) Xattr(ctx context.Context, action, name, value string) (Report, error) {
	if err := f.CheckSame(ctx, "attributes of"); err != nil {
		return Report{}, err
	}
	all, err := files.Xattr(f.Dir, f.File, action, name, value)
	if errors.Is(err, errors.ErrUnsupported) {
		err = &UnsupportedError{Engine: "this host", What: "extended attributes: " + action,
			Hint: "list, set or remove, on a disk that keeps them"}
	}
	return Report{Reported: all}, err
}

// CanDamage reports whether an image of the format contains what the damage
// changes.
func CanDamage(f image.Format, kind string, band int) bool {
	switch kind {
	case "header", "truncated", "tail", "volume":
		return true
	case "table":
		return !f.UDIF
	case "flipped":
		return band == 0 || f.Folder
	case Killed:
		return !f.ReadOnly
	}
	return kind == "band-missing" && f.Folder
}

// DamageHint names the kinds of damage.
const DamageHint = "the kinds are header, volume, truncated, tail, flipped, band-missing (and flipped with a band) " +
	"for UDSB, table for all but UDIF images, and killed for formats that can be written to"

// ShellQuote is a path as a shell takes it, for commands that users copy: without
// quotes where none are needed, and with "./" before a leading "-", which would
// make it an option.
func ShellQuote(path string) string {
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%"
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	if path != "" && strings.Trim(path, safe) == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// NoImage has the methods of a [Container] that only images have. Each returns
// the refusal of its action.
type NoImage struct{ Refuse func(Action) error }

// Compact refuses.
func (n NoImage) Compact(context.Context, CompactOptions) (Report, error) {
	return Report{}, n.Refuse(Action{Do: "compact"})
}

// Resize refuses.
func (n NoImage) Resize(context.Context, int64) (Report, error) {
	return Report{}, n.Refuse(Action{Do: "resize"})
}

// Convert refuses.
func (n NoImage) Convert(context.Context, *hostio.Dir, string, Spec) (Container, error) {
	return nil, n.Refuse(Action{Do: "convert"})
}

// Transfer refuses.
func (n NoImage) Transfer(context.Context, *hostio.Dir, string) (Container, error) {
	return nil, n.Refuse(Action{Do: "transfer"})
}

// Check refuses.
func (n NoImage) Check(context.Context, CheckOptions) (Report, error) {
	return Report{}, n.Refuse(Action{Do: "check"})
}

// Damage refuses.
func (n NoImage) Damage(_ context.Context, d Damage) error {
	return n.Refuse(Action{Do: "damage", Kind: d.Kind, Band: d.Band})
}

// Xattr refuses.
func (n NoImage) Xattr(context.Context, string, string, string) (Report, error) {
	return Report{}, n.Refuse(Action{Do: "xattr"})
}
