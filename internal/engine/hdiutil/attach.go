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
	"dmgbench/internal/engine/hdiutil/argv"
	"dmgbench/internal/engine/hdiutil/parse"
	"dmgbench/internal/engine/hdiutil/proc"
	"dmgbench/internal/hostio"
	"dmgbench/internal/workload"
	"dmgbench/internal/workload/folder"
)

// cleanupTime bounds what is done to leave nothing attached behind a failure.
const cleanupTime = 5 * time.Minute

// attachment is an attached image.
type attachment struct {
	c        *image
	disk     string       // the image's whole disk, which is detached
	device   parse.Entity // that carries the volume
	point    string       // our mount point, "" when attached without mounting
	mounted  Mount        // as the system's table had it
	root     *hostio.Dir
	vol      *folder.Volume
	readOnly bool
	since    time.Time // when attaching began
	told     tale
	off      bool // detached
	foreign  bool // found attached already: not ours to detach
}

var (
	_ engine.Attachment = (*attachment)(nil)
	_ engine.Reporter   = (*attachment)(nil)
)

// Attach attaches the image and mounts its volume on a private folder. After an
// error nothing is attached, or the error says so, and Remove refuses. The image must not be attached elsewhere: such an
// attachment is not ours, and is left alone.
func (c *image) Attach(ctx context.Context, o engine.AttachOptions) (engine.Attachment, error) {
	if err := c.same(ctx, "attaching", true); err != nil {
		return nil, err
	}
	a := &attachment{c: c, readOnly: o.ReadOnly || c.kind.fixed, since: c.e.d.clock.Wall()}
	if !o.NoMount {
		var err error
		if a.point, err = c.e.mountPoint(); err != nil {
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

// mountPoint makes an empty folder that nothing else uses.
func (e *Engine) mountPoint() (string, error) {
	e.mnt++
	dir := filepath.Join(e.o.WorkDir, "mnt"+strconv.Itoa(e.mnt))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("making a mount point: %w", err)
	}
	return dir, nil
}

func (a *attachment) attach(ctx context.Context, o engine.AttachOptions) error {
	c := a.c
	build := builder(argv.Attach{Image: c.path(), MountPoint: a.point, ReadOnly: a.readOnly, Verify: !o.NoVerify && c.kind.sums, ServedBy: c.asked(), Passphrase: c.pass()})
	if c.backend == backendDiskutil {
		build = argv.AttachImage{Image: c.path(), MountPoint: a.point, ReadOnly: a.readOnly, Passphrase: c.pass()}
	}
	bytes := int64(0)
	if c.kind.sums && !o.NoVerify {
		bytes = c.size
	}
	var got parse.Attached
	_, err := c.e.d.run(ctx, &a.told, call{doing: "attaching", object: c.file, build: build, bytes: bytes, check: func(r proc.Result) (err error) {
		var around string
		got, around, err = parse.Attach(r.Stdout)
		a.told.note("attach_around", strings.Join(parse.Talk(around).Words, "\n"))
		return err
	}})
	if err != nil {
		return err
	}
	if a.disk, err = got.Disk(); err != nil {
		return err
	}
	a.told.note("device", a.disk)
	a.told.note("scheme", got.Scheme())
	a.device, _ = got.Candidate()
	c.servedBy = c.asked()
	if a.point != "" {
		return a.mount(got)
	}
	if elsewhere := got.Mounted(); len(elsewhere) > 0 {
		return a.taken(elsewhere[0])
	}
	return nil
}

// asked is what the plan wants to serve the image, "" if that is the tool's to choose.
func (c *image) asked() string {
	if c.spec.ServedBy == auto {
		return ""
	}
	return c.spec.ServedBy
}

// taken is the error of an image that somebody else has attached.
func (a *attachment) taken(where string) error {
	a.foreign = true
	return fmt.Errorf("attaching %q: %w: it was attached already and is mounted on %q", a.c.file, ErrNoResult, where)
}

// mount checks that the volume is where it was asked for, and opens it.
func (a *attachment) mount(got parse.Attached) error {
	c := a.c
	v, ok := got.Volume(func(p string) bool { return sameFile(p, a.point) })
	switch elsewhere := got.Mounted(); {
	case len(elsewhere) == 0:
		return fmt.Errorf("attaching %q: %w: the image was attached and nothing was mounted", c.file, ErrNoResult)
	case !ok || !sameFile(v.MountPoint, a.point):
		return a.taken(elsewhere[0])
	}
	a.device = v
	m, ok, err := c.e.host.mountedOn(a.point)
	switch {
	case err != nil:
		return fmt.Errorf("attaching %q: %w", c.file, err)
	case !ok:
		return fmt.Errorf("attaching %q: %w: the tool says it is mounted, the system's table does not", c.file, ErrNoResult)
	case m.ReadOnly && !a.readOnly:
		return fmt.Errorf("attaching %q: %w: the volume was mounted read-only", c.file, ErrNoResult)
	}
	a.mounted = m
	if c.e.host.ServedBy != nil {
		c.servedBy = cmp.Or(c.e.host.ServedBy(a.disk, m.Kind, c.path()), c.servedBy)
	}
	a.told.note("mounted_as", m.Kind)
	if len(c.fs.types) > 0 && !slices.Contains(c.fs.types, m.Kind) && !strings.HasPrefix(m.Kind, "fuse") {
		a.told.warn("the volume is mounted as %s, %s was asked for", m.Kind, c.fs.name)
	}
	return a.openRoot()
}

func (a *attachment) openRoot() error {
	root, err := hostio.OpenDir(a.point)
	if err != nil {
		return fmt.Errorf("opening the volume of %q: %w", a.c.file, err)
	}
	if err := writable(a.point); err != nil && !a.readOnly {
		root.Close()
		return fmt.Errorf("opening the volume of %q: this user may not write to it: %w", a.c.file, err)
	}
	a.root = root
	a.vol = folder.New(root, folder.Options{Preallocate: a.c.spec.Preallocate, ReadOnly: a.readOnly})
	return nil
}

// abandon leaves nothing attached behind a failed attach. What is mounted
// elsewhere than on our mount point is not ours.
func (a *attachment) abandon(ctx context.Context, cause error) error {
	c := a.c
	a.closeRoot()
	if _, ran := errors.AsType[*ToolError](cause); a.foreign || a.disk == "" && (!ran || classOf(cause) == Missing) {
		return a.unpoint()
	}
	at, ok, err := c.e.attached(ctx, &a.told, c.path())
	switch {
	case err != nil:
		return errors.Join(fmt.Errorf("looking whether %q is still attached: %w", c.file, err), a.unpoint())
	case !ok:
		return a.unpoint()
	}
	for _, p := range at.Mounted() {
		if a.point == "" || !sameFile(p, a.point) {
			return errors.Join(fmt.Errorf("leaving %q alone: somebody has it mounted on %q", c.file, p), a.unpoint())
		}
	}
	if a.disk, err = at.Disk(); err != nil {
		return errors.Join(err, a.unpoint())
	}
	return a.detach(ctx, true)
}

// looks is how often the list of attached images is asked for: Apple's may be cut short while other images come and go,
// so that a miss there proves nothing.
func (e *Engine) looks() int {
	if e.o.Vendor == "dmgbench" {
		return 1
	}
	return 2
}

// attached is what the tool says of the image at path.
func (e *Engine) attached(ctx context.Context, t *tale, path string) (parse.Attached, bool, error) {
	var quiet tale
	for range e.looks() {
		var list []parse.Attached
		_, err := e.d.run(ctx, &quiet, call{doing: "listing", object: "attached images", build: argv.Info{}, check: func(r proc.Result) (err error) {
			list, _, err = parse.Info(r.Stdout)
			return err
		}})
		t.retried(quiet.report())
		if err != nil {
			return parse.Attached{}, false, err
		}
		for _, one := range list {
			if one.Image == path || sameFile(one.Image, path) {
				return one, true, nil
			}
		}
	}
	return parse.Attached{}, false, nil
}

// Volume is the mounted file system, nil when attached without mounting.
func (a *attachment) Volume() workload.Volume {
	if a.vol == nil {
		return nil
	}
	return a.vol
}

// TakeReport is what attaching said of itself: retries as warnings, the tool's own figures and words.
func (a *attachment) TakeReport() engine.Report { return a.told.report() }

// Device is the node that carries the volume.
func (a *attachment) Device() string { return a.device.Device }

func (a *attachment) closeRoot() {
	if a.root != nil {
		a.root.Close()
	}
	a.root, a.vol = nil, nil
}
