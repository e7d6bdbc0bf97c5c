package inprocess

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync/atomic"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/image/container"
	"dmgbench/internal/image/exfat"
	"dmgbench/internal/system/hostio"
)

// attachment is an open image, with its volume if that is mounted.
type attachment struct {
	image    *image
	img      container.Image // nil once closed
	vol      *volume         // nil when not mounted, or no longer
	readOnly bool
	report   engine.Report // warnings for the report of Detach
	life     lifeline      // of AttachOptions.Killable
}

// lifeline is between a killable image and its host: once cut, no operation
// reaches the host any more.
type lifeline struct {
	dir *hostio.Dir // of the image; nil: it cannot be killed
	cut atomic.Bool
}

var _ engine.Killer = (*attachment)(nil)

// errKilled is the error of every host operation after Kill.
var errKilled = errors.New("what serves the image was killed")

// Before fails after Kill.
func (l *lifeline) Before(hostio.Op) error {
	if l.cut.Load() {
		return errKilled
	}
	return nil
}

// After has no effect.
func (*lifeline) After(hostio.Op, int, error) {}

// Kill cuts the image off from its host between two system calls, as the end of a
// process does: caches of the volume, of the container and of this process are
// neither written back nor flushed.
func (a *attachment) Kill() error {
	a.life.cut.Store(true)
	return nil
}

// Attach opens the container and mounts its volume. From the second time on
// it trims the volume's free space first: the file systems of the Mac do so
// when they mount an image, which is why a read-write image there is a sparse
// file from its second attach on, and reattached images are what the published
// protocols measure. A container found by Open counts as attached before.
// Read-only formats are attached read-only, and before that their checksums are
// computed, unless NoVerify is set; the others carry none.
func (c *image) Attach(ctx context.Context, o engine.AttachOptions) (_ engine.Attachment, err error) {
	if err := c.CheckDetached(ctx, "attaching"); err != nil {
		return nil, err
	}
	a := &attachment{image: c, readOnly: o.ReadOnly || formatOf(c.spec.Format).ReadOnly}
	dir := c.Dir
	if o.Killable {
		dir, err = hostio.OpenDir(dir.Path(), hostio.WithHook(&a.life))
		a.life.dir = dir
		defer func() {
			if err != nil && dir != nil {
				dir.Close()
			}
		}()
	}
	// As with Apple's attach, damage is found before the volume is mounted. Only
	// UDIF images carry checksums.
	if err == nil && !o.NoVerify && formatOf(c.spec.Format).UDIF {
		var list []container.Finding
		list, err = container.Verify(c.Dir, c.File, container.OpenOptions{Passphrase: c.spec.Passphrase})
		if err == nil && len(list) > 0 {
			err = fmt.Errorf("%s: %w", list[0], container.ErrCorrupt)
		}
		err = errors.Join(err, ctx.Err())
	}
	if err == nil {
		a.img, err = container.Open(dir, c.File, container.OpenOptions{ReadOnly: a.readOnly,
			Cache: cmp.Or(o.Cache, c.spec.Cache), Sync: hostio.SyncFull, Passphrase: c.spec.Passphrase})
	}
	if err != nil {
		return nil, fmt.Errorf("attaching %q: %w", c.File, engine.Gone(err))
	}
	if w, ok := a.img.(container.Warner); ok {
		a.report.Warnings = w.Warnings()
	}
	if !o.NoMount {
		if err := a.mount(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("attaching %q: %w", c.File, err), a.img.Close())
		}
		c.mounted = true
	}
	c.open, c.Attached = a, true
	return a, nil
}

// mount mounts the volume, with warnings about its state.
func (a *attachment) mount(ctx context.Context) error {
	p, part, warnings, err := openPartition(a.img)
	if err != nil {
		return err
	}
	flush := hostio.SyncNone
	if !a.readOnly { // a read-only attachment writes no bytes that need a flush
		if flush, err = a.image.tryFlush(); err != nil {
			return err
		}
	}
	vol, err := exfat.Mount(part, exfat.MountOptions{ReadOnly: a.readOnly, Now: a.image.engine.Now})
	if err != nil {
		return err
	}
	a.vol = &volume{&mounted{vol: vol, img: a.img, start: p.Offset(), flush: flush, open: map[*file]bool{}}, &vol.Folder}
	a.report.Warnings = append(a.report.Warnings, warnings...)
	state := vol.State()
	if state.Dirty {
		a.report.Warn("the volume was not unmounted cleanly")
	}
	if state.MediaFailure {
		a.report.Warn("the volume is marked as stored on failing media")
	}
	if state.BackupBoot {
		a.report.Warn("the volume's main boot region is damaged, the backup was used")
	}
	if !a.image.mounted || a.readOnly {
		return nil
	}
	r, err := a.Trim(ctx)
	if err != nil {
		return errors.Join(err, vol.Unmount())
	}
	a.report.Warnings = append(a.report.Warnings, r.Warnings...)
	return nil
}

// tryFlush returns what a full flush achieves on this host, tried on a file of
// the container: images do not report it.
func (c *image) tryFlush() (hostio.SyncMode, error) {
	name := c.File
	if formatOf(c.spec.Format).Folder {
		name = path.Join(name, "Info.plist")
	}
	f, err := c.Dir.Open(name, hostio.OpenOptions{})
	if err != nil {
		return "", engine.Gone(err)
	}
	defer f.Close()
	return f.Sync(hostio.SyncFull)
}

// Volume is nil when attached without mounting, and after Detach.
func (a *attachment) Volume() workload.Volume {
	if a.vol == nil {
		return nil
	}
	return a.vol
}

// Trim gives all free space of the volume back. Freed is what the container
// got smaller on the host. A host without holes in files is a warning.
func (a *attachment) Trim(ctx context.Context) (r engine.Report, err error) {
	if err := ctx.Err(); err != nil {
		return r, err
	}
	if a.vol == nil {
		return r, fmt.Errorf("trimming %q: the volume is not mounted", a.image.File)
	}
	before, err := a.img.Usage()
	if err != nil {
		return r, engine.Gone(err)
	}
	n, err := a.vol.vol.Trim(0)
	r.Note("trimmed", fmt.Sprint(n))
	if errors.Is(err, errors.ErrUnsupported) {
		r.Warn("free space was not given back: %v", err)
		err = nil
	}
	if err != nil {
		return r, goneIfReplaced(err)
	}
	after, err := a.img.Usage()
	r.Freed = max(0, before.Allocated-after.Allocated)
	return r, engine.Gone(err)
}

// Detach unmounts and closes. With open files it fails without an effect,
// unless force closes them. With force it closes the container even if the
// volume could not write everything back. Further calls have no effect.
func (a *attachment) Detach(_ context.Context, force bool) (engine.Report, error) {
	if a.img == nil {
		return engine.Report{}, nil
	}
	var err error
	if a.vol != nil {
		a.vol.mu.Lock()
		forgotten := slices.SortedFunc(maps.Keys(a.vol.open),
			func(f, g *file) int { return strings.Compare(f.Name(), g.Name()) })
		a.vol.mu.Unlock()
		for i := 0; i < len(forgotten) && force; i++ {
			a.report.Warn("file %q was still open", forgotten[i].Name())
			if err := forgotten[i].Close(); err != nil {
				a.report.Warn("%v", err)
			}
		}
		if err = a.vol.vol.Unmount(); err != nil && !force {
			return engine.Report{}, fmt.Errorf("detaching %q: %w", a.image.File, goneIfReplaced(err))
		}
	}
	// Closing also flushes: after it the container has every write that the
	// volume made.
	err = errors.Join(err, a.img.Close())
	if a.life.dir != nil {
		err = errors.Join(err, a.life.dir.Close())
	}
	if a.life.cut.Load() { // no write back has succeeded, as intended
		a.report, err = engine.Report{}, nil
	}
	a.img, a.vol, a.image.open, a.image.Attached = nil, nil, nil, false
	if err != nil {
		err = fmt.Errorf("detaching %q: %w", a.image.File, goneIfReplaced(err))
	}
	return a.report.Take(), err
}

// goneIfReplaced is engine.Gone for errors in which a missing file is one of
// the volume.
func goneIfReplaced(err error) error {
	if errors.Is(err, hostio.ErrReplaced) {
		return fmt.Errorf("%w: %w", engine.ErrGone, err)
	}
	return err
}
