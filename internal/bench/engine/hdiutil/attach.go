package hdiutil

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/hdiutil/command"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/bench/workload/folder"
	diskimage "dmgbench/internal/image"
	"dmgbench/internal/system/host"
	"dmgbench/internal/system/hostio"
)

// cleanupTime bounds the clean-up after a failure.
const cleanupTime = 5 * time.Minute

// attachment is an attached image.
type attachment struct {
	c        *image
	disk     string         // the image's whole disk, which is detached
	device   command.Entity // that carries the volume
	point    string         // our mount point, "" if attached without mounting
	mounted  host.Mount     // as in the system's table
	root     *hostio.Dir
	vol      *folder.Volume
	readOnly bool
	start    time.Time // of attaching
	report   engine.Report
	detached bool
	foreign  bool // another process had attached the image: not ours to detach
}

var (
	_ engine.Attachment         = (*attachment)(nil)
	_ engine.Reporter           = (*attachment)(nil)
	_ engine.PostDetachReporter = (*attachment)(nil)
)

// Attach attaches the image and mounts its volume on a private folder. After an
// error it detaches the image again; if that fails, the error names what is still
// attached, and Remove refuses. An image that another process has attached is an
// error and stays attached.
func (c *image) Attach(ctx context.Context, o engine.AttachOptions) (engine.Attachment, error) {
	if err := c.CheckDetached(ctx, "attaching"); err != nil {
		return nil, err
	}
	a := &attachment{c: c, readOnly: o.ReadOnly || c.format.ReadOnly, start: c.e.o.Clock.Wall()}
	if !o.NoMount {
		var err error
		if a.point, err = os.MkdirTemp(c.e.o.WorkDir, "mnt*"); err != nil {
			return nil, fmt.Errorf("making a mount point: %w", err)
		}
	}
	if err := a.attach(ctx, o); err != nil {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		left := a.abandon(clean, err)
		c.left = left != nil || a.foreign
		return nil, errors.Join(err, left)
	}
	c.open, c.Attached = a, true
	return a, nil
}

// attach runs the tool, finds out what it attached, and opens the volume. After
// an error abandon has to detach what is left.
func (a *attachment) attach(ctx context.Context, o engine.AttachOptions) error {
	c, line := a.c, "hdiutil attach"
	if c.backend == backendDiskutil {
		line = "diskutil image attach"
	}
	args := command.Args{Image: c.path, MountPoint: a.point, ReadOnly: a.readOnly, Secrets: c.secrets(),
		Verify: !o.NoVerify && c.format.UDIF, Kernel: c.spec.ServedBy == kernel, Helper: c.spec.ServedBy == helper}
	var got command.Attached
	k := call{doing: "attaching", object: c.File, cmd: command.New(line, args), check: func(out []byte) (err error) {
		got, err = command.ParseAttach(out)
		return err
	}}
	if args.Verify {
		k.bytes = c.size
	}
	if err := c.e.run(ctx, &a.report, k); err != nil {
		return err
	}
	a.disk, _ = got.Disk() // the parser refuses a list without it
	a.device = got.Candidate()
	a.report.Note("device", a.disk)
	a.report.Note("scheme", got.Scheme())
	if c.servedBy = c.spec.ServedBy; c.servedBy == auto {
		c.servedBy = ""
	}
	for _, e := range got.Entities {
		if a.isPoint(e.MountPoint) {
			a.device = e
			return a.openMount()
		}
	}
	// Mounted elsewhere: another process attached it since CheckDetached.
	points := got.MountPoints()
	a.foreign = len(points) > 0
	switch {
	case a.foreign:
		return a.unusable("it was attached already and is mounted on %q", points[0])
	case a.point != "":
		return a.unusable("the image was attached without a mount")
	}
	return nil
}

// isPoint reports whether a path is that of our mount point.
func (a *attachment) isPoint(path string) bool {
	return a.point != "" && path != "" && sameFile(path, a.point)
}

// unusable is the error of an attach that succeeded without the requested
// result.
func (a *attachment) unusable(format string, args ...any) error {
	return fmt.Errorf("attaching %q: %w: %s", a.c.File, ErrNoResult, fmt.Sprintf(format, args...))
}

// openMount checks that the volume is mounted as requested, and opens it.
func (a *attachment) openMount() error {
	c := a.c
	m, ok, err := c.e.host.mountedOn(a.point)
	switch {
	case err != nil:
		return fmt.Errorf("attaching %q: %w", c.File, err)
	case !ok:
		return a.unusable("the tool reports a mount that the system's table does not have")
	case m.ReadOnly && !a.readOnly:
		return a.unusable("the volume was mounted read-only")
	}
	a.mounted = m
	if c.e.host.ServedBy != nil {
		c.servedBy = cmp.Or(c.e.host.ServedBy(a.disk, m.Type, c.path), c.servedBy)
	}
	a.report.Note("mounted_as", m.Type)
	if len(c.fs.types) > 0 && !slices.Contains(c.fs.types, m.Type) && !strings.HasPrefix(m.Type, "fuse") {
		a.report.Warn("the volume is mounted as %s, %s was asked for", m.Type, c.fs.name)
	}
	return a.openVolume()
}

// openVolume opens the mount point for files. A volume that only another user
// may write to is refused here, and not by the first file of a timed step.
func (a *attachment) openVolume() error {
	root, err := hostio.OpenDir(a.point)
	if err != nil {
		return fmt.Errorf("opening the volume of %q: %w", a.c.File, err)
	}
	if err := unix.Access(a.point, unix.W_OK|unix.X_OK); err != nil && !a.readOnly {
		root.Close()
		return fmt.Errorf("opening the volume of %q: this user may not write to it: %w", a.c.File, err)
	}
	a.root = root
	a.vol = folder.New(root, folder.Options{Preallocate: a.c.spec.Preallocate, ReadOnly: a.readOnly})
	return nil
}

// closeVolume closes the mount point; files that are open on it stay open.
func (a *attachment) closeVolume() {
	if a.root != nil {
		a.root.Close()
	}
	a.root, a.vol = nil, nil
}

// Volume is the mounted file system, nil if attached without mounting.
func (a *attachment) Volume() workload.Volume {
	if a.vol == nil {
		return nil
	}
	return a.vol
}

// TakeReport returns what attaching reported: retries as warnings, figures and
// messages of the tool.
func (a *attachment) TakeReport() engine.Report { return a.report.Take() }

// Trim asks the system to release the unused blocks of the volume, so that the
// image takes less space on the host, and reports how much less. macOS has no such
// call: it trims while mounting, which the report notes.
func (a *attachment) Trim(ctx context.Context) (t engine.Report, err error) {
	c := a.c
	if err := c.CheckSame(ctx, "trimming"); err != nil {
		return t, err
	}
	switch {
	case a.vol == nil || a.readOnly:
		return t, fmt.Errorf("trimming %q: the volume is not mounted for writing", c.File)
	case c.e.isApple():
		t.Note("trim", "not asked for: macOS trims a volume of its own accord, when it mounts it")
		return t, nil
	// If our volume were gone, the call would trim the file system of the mount
	// point.
	case !a.isMounted():
		return t, fmt.Errorf("trimming %q: its volume is no longer mounted", c.File)
	}
	before, err := c.Usage(ctx)
	if err != nil {
		return t, err
	}
	n, err := c.e.host.Trim(ctx, a.point)
	switch {
	case errors.Is(err, errors.ErrUnsupported) && c.spec.Encrypted() && c.format.Name == diskimage.UDRW:
		t.Warn("free space was not given back: every block of an encrypted raw image is written when it is made")
	case err != nil:
		return t, fmt.Errorf("trimming %q: %w", c.File, err)
	default:
		t.Note("trimmed", strconv.FormatInt(n, 10))
	}
	after, err := c.Usage(ctx)
	if err == nil {
		t.Freed = max(0, before.Allocated-after.Allocated)
	}
	return t, err
}

// logMargin is how much earlier than the wanted time the log is read from: the
// query has whole seconds.
const logMargin = time.Second

// ReportAfterDetach is what APFS logged of trimming the volume while it was
// attached ("trim_log"), or why that is not known ("trim_log_unknown"):
// accounts without administrator rights may not read the log. Reading the log
// takes seconds: the caller does it once for each attachment, outside of timed
// steps, and this engine does not try again after a failure.
func (a *attachment) ReportAfterDetach(ctx context.Context) (t engine.Report) {
	e := a.c.e
	if len(e.o.Log) == 0 || a.mounted.Type != "apfs" || a.readOnly {
		return t
	}
	if e.noLog == "" {
		list, err := e.readTrimLog(ctx, a.start.Add(-logMargin), a.device.Device)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			e.noLog = "the system's log could not be read: " + classOf(err).name
			if te, ok := errors.AsType[*ToolError](err); ok && te.Message != "" && te.Class != NoResult {
				e.noLog += ": " + te.Message
			}
		case len(list) == 0:
			t.Note("trim_log_unknown", "the system's log has no line of trimming this volume")
		}
		t.Note("trim_log", strings.Join(list, "\n"))
	}
	// An empty value is no note.
	t.Note("trim_log_unknown", e.noLog)
	return t
}

// CheckLog returns why APFS's messages in the system's log cannot be read, as
// [attachment.ReportAfterDetach] does; nil if they can. Without a log the error
// matches [errors.ErrUnsupported].
func (e *Engine) CheckLog(ctx context.Context) error {
	if len(e.o.Log) == 0 {
		return fmt.Errorf("reading the system's log: this system does not log trims: %w", errors.ErrUnsupported)
	}
	_, err := e.readTrimLog(ctx, e.o.Clock.Wall().Add(-logMargin), "/dev/disk0") // any device: the lines are not used
	return err
}

// readTrimLog asks log(1) once: more tries would keep the run waiting.
func (e *Engine) readTrimLog(ctx context.Context, since time.Time, device string) (list []string, err error) {
	err = e.run(ctx, &engine.Report{}, call{doing: "reading", object: "the system's log", tries: 1,
		cmd: command.TrimLog(since), check: func(out []byte) (err error) {
			list, err = command.ParseTrims(out, device)
			return err
		}})
	return list, err
}
