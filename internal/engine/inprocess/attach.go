package inprocess

import (
	"context"
	"errors"
	"fmt"
	"path"

	"dmgbench/internal/container"
	"dmgbench/internal/engine"
	"dmgbench/internal/exfat"
	"dmgbench/internal/hostio"
	"dmgbench/internal/workload"
)

// attachment is an open image, with its volume if that is mounted.
type attachment struct {
	image    *image
	img      container.Image // nil once closed
	vol      *volume         // nil when not mounted, or no longer
	readOnly bool
	warnings []string // for the next report
}

// Attach opens the container and mounts its volume. From the second time on
// it trims the volume's free space first: the file systems of the Mac do so
// when they mount an image, which is why a read-write image there is a sparse
// file from its second attach on, and reattached images are what the published
// protocols measure. A container found by Open counts as attached before.
// Read-only formats are attached read-only, and before that their checksums are
// computed, unless NoVerify is set; the others carry none.
func (c *image) Attach(ctx context.Context, o engine.AttachOptions) (engine.Attachment, error) {
	if err := c.checkDetached(ctx, "attaching"); err != nil {
		return nil, err
	}
	cache := o.Cache
	if cache == "" {
		cache = c.spec.Cache
	}
	readOnly := o.ReadOnly || formatOf(c.spec.Format).ReadOnly
	if !o.NoVerify {
		if err := c.verifyChecksums(ctx); err != nil {
			return nil, fmt.Errorf("attaching %q: %w", c.File, engine.Gone(err))
		}
	}
	img, err := container.Open(c.Dir, c.File,
		container.OpenOptions{ReadOnly: readOnly, Cache: cache, Sync: hostio.SyncFull,
			Passphrase: passphraseOf(c.spec)})
	if err != nil {
		return nil, fmt.Errorf("attaching %q: %w", c.File, engine.Gone(err))
	}
	a := &attachment{image: c, img: img, readOnly: readOnly}
	if w, ok := img.(container.Warner); ok {
		a.warnings = w.Warnings()
	}
	if !o.NoMount {
		if err := a.mount(); err != nil {
			return nil, errors.Join(fmt.Errorf("attaching %q: %w", c.File, err), img.Close())
		}
		c.mounted = true
	}
	c.open = a
	return a, nil
}

func (a *attachment) mount() error {
	p, part, warnings, err := openPartition(a.img)
	if err != nil {
		return err
	}
	a.warnings = append(a.warnings, warnings...)
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
	a.vol = &volume{image: a.image, vol: vol, img: a.img, start: p.Offset(), flush: flush, open: map[*file]bool{}}
	a.warnings = append(a.warnings, stateWarnings(vol.State())...)
	if !a.image.mounted || a.readOnly {
		return nil
	}
	r, err := a.trim()
	a.warnings = append(a.warnings, r.Warnings...)
	if err != nil {
		return errors.Join(err, vol.Unmount())
	}
	return nil
}

// stateWarnings are warnings for whoever mounts the volume.
func stateWarnings(s exfat.State) (warnings []string) {
	for _, w := range []struct {
		is   bool
		text string
	}{
		{s.Dirty, "the volume was not unmounted cleanly"},
		{s.MediaFailure, "the volume is marked as stored on failing media"},
		{s.BackupBoot, "the volume's main boot region is damaged, the backup was used"},
	} {
		if w.is {
			warnings = append(warnings, w.text)
		}
	}
	return warnings
}

// tryFlush returns what a full flush achieves on this host, tried on a file of
// the container: images do not report it.
func (c *image) tryFlush() (hostio.SyncMode, error) {
	name := c.File
	if c.isBundle() {
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
func (a *attachment) Trim(ctx context.Context) (engine.Report, error) {
	if err := ctx.Err(); err != nil {
		return engine.Report{}, err
	}
	if a.vol == nil {
		return engine.Report{}, fmt.Errorf("trimming %q: %w", a.image.File, errNotMounted)
	}
	return a.trim()
}

var errNotMounted = errors.New("the volume is not mounted")

func (a *attachment) trim() (engine.Report, error) {
	before, err := a.img.Usage()
	if err != nil {
		return engine.Report{}, engine.Gone(err)
	}
	n, err := a.vol.vol.Trim(0)
	r := engine.Report{Reported: map[string]string{"trimmed": fmt.Sprint(n)}}
	if errors.Is(err, errors.ErrUnsupported) {
		r.Warnings = append(r.Warnings, fmt.Sprintf("free space was not given back: %v", err))
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
	r := engine.Report{Warnings: a.warnings}
	if a.img == nil {
		return engine.Report{}, nil
	}
	var err error
	if a.vol != nil {
		if force {
			r.Warnings = append(r.Warnings, a.vol.closeAll()...)
		}
		if err = a.vol.vol.Unmount(); err != nil && !force {
			return engine.Report{}, fmt.Errorf("detaching %q: %w", a.image.File, goneIfReplaced(err))
		}
	}
	err = errors.Join(err, a.img.Close())
	a.img, a.vol, a.warnings, a.image.open = nil, nil, nil, nil
	if err != nil {
		return r, fmt.Errorf("detaching %q: %w", a.image.File, goneIfReplaced(err))
	}
	return r, nil
}

// goneIfReplaced is engine.Gone for errors in which a missing file is one of
// the volume.
func goneIfReplaced(err error) error {
	if errors.Is(err, hostio.ErrReplaced) {
		return fmt.Errorf("%w: %w", engine.ErrGone, err)
	}
	return err
}
