package hdiutil

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/hdiutil/command"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/bench/workload/folder"
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
// error the image is not attached, or the error names it and Remove refuses. An
// image that another process has attached is an error and stays attached.
func (c *image) Attach(ctx context.Context, o engine.AttachOptions) (engine.Attachment, error) {
	if err := c.CheckDetached(ctx, "attaching"); err != nil {
		return nil, err
	}
	a := &attachment{c: c, readOnly: o.ReadOnly || c.format.ReadOnly, start: c.e.o.Clock.Wall()}
	if !o.NoMount {
		var err error
		if a.point, err = os.MkdirTemp(c.e.o.WorkDir, mountPointPattern); err != nil {
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

// mountPointPattern names the mount points in the working folder.
const mountPointPattern = "mnt*"

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
		var around string
		got, around, err = command.ParseAttach(out)
		a.report.Note("attach_around", strings.Join(command.ParseMessages(around).Lines, "\n"))
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
	points := got.MountPoints()
	switch at := slices.IndexFunc(got.Entities, func(e command.Entity) bool { return a.isPoint(e.MountPoint) }); {
	case at >= 0:
		a.device = got.Entities[at]
		return a.openMount()
	case len(points) > 0:
		a.foreign = true
		return a.failed(fmt.Errorf("%w: it was attached already and is mounted on %q", ErrNoResult, points[0]))
	case a.point != "":
		return a.failed(fmt.Errorf("%w: the image was attached without a mount", ErrNoResult))
	}
	return nil
}

// isPoint reports whether a path is that of our mount point.
func (a *attachment) isPoint(path string) bool {
	return a.point != "" && path != "" && sameFile(path, a.point)
}

// failed is the error of this attach.
func (a *attachment) failed(err error) error { return fmt.Errorf("attaching %q: %w", a.c.File, err) }

// openMount checks that the volume is mounted as requested, and opens it.
func (a *attachment) openMount() error {
	c := a.c
	m, ok, err := c.e.host.mountedOn(a.point)
	switch {
	case err != nil:
		return a.failed(err)
	case !ok:
		return a.failed(fmt.Errorf("%w: the tool reports a mount that the system's table does not have", ErrNoResult))
	case m.ReadOnly && !a.readOnly:
		return a.failed(fmt.Errorf("%w: the volume was mounted read-only", ErrNoResult))
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
