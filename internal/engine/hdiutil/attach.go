package hdiutil

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/engine"
	"dmgbench/internal/engine/hdiutil/command"
	"dmgbench/internal/hostio"
	"dmgbench/internal/workload"
	"dmgbench/internal/workload/folder"
)

// cleanupTime bounds the clean-up after a failure.
const cleanupTime = 5 * time.Minute

// attachment is an attached image.
type attachment struct {
	c        *image
	disk     string         // the image's whole disk, which is detached
	device   command.Entity // that carries the volume
	point    string         // our mount point, "" if attached without mounting
	mounted  Mount          // as in the system's table
	root     *hostio.Dir
	vol      *folder.Volume
	readOnly bool
	start    time.Time // of attaching
	report   reportBuilder
	detached bool
	foreign  bool // another process had attached the image: not ours to detach
}

var (
	_ engine.Attachment         = (*attachment)(nil)
	_ engine.Reporter           = (*attachment)(nil)
	_ engine.PostDetachReporter = (*attachment)(nil)
)

// Attach attaches the image and mounts its volume on a private folder. After an
// error the image is not attached, or the error says so and Remove refuses. An
// image that another process has attached is an error and stays attached.
func (c *image) Attach(ctx context.Context, o engine.AttachOptions) (engine.Attachment, error) {
	if err := c.checkDetached(ctx, "attaching"); err != nil {
		return nil, err
	}
	a := &attachment{c: c, readOnly: o.ReadOnly || c.format.ReadOnly, start: c.e.d.clock.Wall()}
	if !o.NoMount {
		var err error
		if a.point, err = c.e.makeMountPoint(); err != nil {
			return nil, err
		}
	}
	if err := a.attach(ctx, o); err != nil {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		left := a.abandon(clean, err)
		c.left = left != nil || a.foreign
		return nil, errors.Join(err, left)
	}
	c.open = a
	return a, nil
}

// makeMountPoint makes an empty folder for one mount.
func (e *Engine) makeMountPoint() (string, error) {
	e.mounts++
	dir := filepath.Join(e.o.WorkDir, "mnt"+strconv.Itoa(e.mounts))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("making a mount point: %w", err)
	}
	return dir, nil
}

func (a *attachment) attach(ctx context.Context, o engine.AttachOptions) error {
	c := a.c
	served := c.spec.ServedBy
	if served == auto {
		served = ""
	}
	verify := !o.NoVerify && c.format.UDIF
	ao := command.AttachOptions{Image: c.path(), MountPoint: a.point, ReadOnly: a.readOnly, Verify: verify,
		ServedBy: served, Passphrase: c.passphrase()}
	k := call{doing: "attaching", object: c.File, cmd: command.Attach(ao)}
	if c.backend == backendDiskutil {
		k.cmd = command.AttachDiskutil(ao)
	}
	if verify {
		k.bytes = c.size
	}
	var got command.Attached
	k.check = func(out []byte) (err error) {
		var around string
		got, around, err = command.ParseAttach(out)
		a.report.note("attach_around", strings.Join(command.ParseMessages(around).Lines, "\n"))
		return err
	}
	if _, err := c.e.d.run(ctx, &a.report, k); err != nil {
		return err
	}
	var err error
	if a.disk, err = got.Disk(); err != nil {
		return err
	}
	a.report.note("device", a.disk)
	a.report.note("scheme", got.Scheme())
	a.device, _ = got.Candidate()
	c.servedBy = served
	if a.point != "" {
		return a.openMount(got)
	}
	if elsewhere := got.MountPoints(); len(elsewhere) > 0 {
		return a.foreignError(elsewhere[0])
	}
	return nil
}

// foreignError is the error of an image that another process has attached.
func (a *attachment) foreignError(where string) error {
	a.foreign = true
	return fmt.Errorf("attaching %q: %w: it was attached already and is mounted on %q", a.c.File, ErrNoResult, where)
}

// openMount checks that the volume is mounted as requested, and opens it.
func (a *attachment) openMount(got command.Attached) error {
	c := a.c
	v, ok := got.Volume(func(p string) bool { return sameFile(p, a.point) })
	switch elsewhere := got.MountPoints(); {
	case len(elsewhere) == 0:
		return fmt.Errorf("attaching %q: %w: the image was attached without a mount", c.File, ErrNoResult)
	case !ok || !sameFile(v.MountPoint, a.point):
		return a.foreignError(elsewhere[0])
	}
	a.device = v
	m, ok, err := c.e.host.mountedOn(a.point)
	switch {
	case err != nil:
		return fmt.Errorf("attaching %q: %w", c.File, err)
	case !ok:
		return fmt.Errorf("attaching %q: %w: the tool reports a mount that the system's table does not have", c.File,
			ErrNoResult)
	case m.ReadOnly && !a.readOnly:
		return fmt.Errorf("attaching %q: %w: the volume was mounted read-only", c.File, ErrNoResult)
	}
	a.mounted = m
	if c.e.host.ServedBy != nil {
		c.servedBy = cmp.Or(c.e.host.ServedBy(a.disk, m.Kind, c.path()), c.servedBy)
	}
	a.report.note("mounted_as", m.Kind)
	if len(c.fs.types) > 0 && !slices.Contains(c.fs.types, m.Kind) && !strings.HasPrefix(m.Kind, "fuse") {
		a.report.warn("the volume is mounted as %s, %s was asked for", m.Kind, c.fs.name)
	}
	return a.openVolume()
}

func (a *attachment) openVolume() error {
	root, err := hostio.OpenDir(a.point)
	if err != nil {
		return fmt.Errorf("opening the volume of %q: %w", a.c.File, err)
	}
	if err := checkWritable(a.point); err != nil && !a.readOnly {
		root.Close()
		return fmt.Errorf("opening the volume of %q: this user may not write to it: %w", a.c.File, err)
	}
	a.root = root
	a.vol = folder.New(root, folder.Options{Preallocate: a.c.spec.Preallocate, ReadOnly: a.readOnly})
	return nil
}

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
func (a *attachment) TakeReport() engine.Report { return a.report.take() }

// Device is the device that carries the volume.
func (a *attachment) Device() string { return a.device.Device }
