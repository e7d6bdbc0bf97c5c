package inprocess

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"dmgbench/internal/blockdev"
	"dmgbench/internal/container"
	"dmgbench/internal/container/files"
	"dmgbench/internal/engine"
	"dmgbench/internal/exfat"
	"dmgbench/internal/gpt"
	"dmgbench/internal/hostio"
)

// Convert makes another container of the other (or the same) format with the
// same device content. Parts that are zero are left out. Read-only formats are
// compressed on every processor.
func (c *image) Convert(ctx context.Context, dir *hostio.Dir, name string, s engine.Spec) (engine.Container, error) {
	s.Size = c.spec.Size
	s, err := normal(s)
	if err == nil {
		s, err = c.engine.keyed(s)
	}
	if err != nil {
		return nil, err
	}
	file := withExtension(name, s.Format)
	err = c.with(ctx, "converting", true, func(src container.Image) error {
		return c.engine.convert(ctx, src, dir, file, name, s)
	})
	if err != nil {
		return nil, fmt.Errorf("converting %q: %w", c.file, err)
	}
	made, err := c.engine.find(dir, file, s)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("converting %q: %w", c.file, err), container.Remove(dir, file))
	}
	return made, nil
}

// Check looks at the container and its partition table ("container"), at the
// volume ("volume"), or at all (""). The container may be attached, but not its
// volume mounted, as when fsck is run on the device of a Mac's image.
func (c *image) Check(ctx context.Context, o engine.CheckOptions) (engine.Report, error) {
	var r engine.Report
	unmounted := c.open != nil && c.open.vol == nil
	if err := c.same(ctx, "checking", !unmounted); err != nil {
		return r, err
	}
	if err := c.engine.Allows(c.spec, engine.Action{Do: "check", Repair: o.Repair}); err != nil {
		return r, err
	}
	if o.What != "" && o.What != "container" && o.What != "volume" {
		return r, refuse("checking "+o.What, "check the container or the volume")
	}
	if o.What != "volume" {
		if err := c.verify(o.Repair && !unmounted, &r); err != nil {
			return r, fmt.Errorf("checking %q: %w", c.file, gone(err))
		}
	}
	look := func(img container.Image) error { return inspect(img, o, &r) }
	var err error
	if unmounted {
		err = gone(errors.Join(look(c.open.img), c.open.img.Flush()))
	} else {
		err = c.with(ctx, "checking", !o.Repair, look)
	}
	switch {
	case errors.Is(err, container.ErrCorrupt):
		r.Findings, err = append(r.Findings, err.Error()), nil
	case err != nil:
		err = fmt.Errorf("checking %q: %w", c.file, err)
	}
	return r, err
}

// verify looks at the container's own structure, and repairs it; what is
// attached, others have open.
func (c *image) verify(repair bool, r *engine.Report) error {
	list, err := container.VerifyWith(c.dir, c.file, c.unlocked())
	if err != nil {
		return err
	}
	left := list
	if repair && len(list) > 0 && !slices.ContainsFunc(list, func(f container.Finding) bool { return f.Fatal }) {
		if err := container.RepairWith(c.dir, c.file, c.unlocked()); err != nil {
			return err
		}
		if left, err = container.VerifyWith(c.dir, c.file, c.unlocked()); err != nil {
			return err
		}
	}
	for _, f := range list {
		if slices.Contains(left, f) {
			r.Findings = append(r.Findings, f.String())
		} else {
			r.Warnings = append(r.Warnings, "repaired: "+f.String())
		}
	}
	return nil
}

func inspect(img container.Image, o engine.CheckOptions, r *engine.Report) error {
	t, list, err := gpt.Read(img)
	if errors.Is(err, gpt.ErrNoTable) || errors.Is(err, gpt.ErrDamaged) || errors.Is(err, gpt.ErrInvalid) || errors.Is(err, gpt.ErrTooSmall) {
		r.Findings = append(r.Findings, err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	if o.Repair && len(list) > 0 {
		if err := repairTable(img, t, list); err != nil {
			return err
		}
	}
	for _, w := range list {
		if o.Repair {
			r.Warnings = append(r.Warnings, "repaired: "+string(w))
		} else {
			r.Findings = append(r.Findings, string(w))
		}
	}
	if o.What == "container" {
		return nil
	}
	_, part, _, err := partition(img)
	if errors.Is(err, gpt.ErrInvalid) || errors.Is(err, blockdev.ErrOutOfRange) {
		r.Findings = append(r.Findings, err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	return inspectVolume(part, o, r)
}

// repairTable writes both tables anew, the second one at the end of the device.
func repairTable(img container.Image, t *gpt.Table, list []gpt.Warning) error {
	if slices.Contains(list, gpt.WarnBackupMoved) {
		_, err := gpt.Grow(img)
		return err
	}
	return gpt.Write(img, t)
}

func inspectVolume(part blockdev.Device, o engine.CheckOptions, r *engine.Report) error {
	found, err := exfat.Check(part, exfat.CheckOptions{Repair: o.Repair})
	if errors.Is(err, exfat.ErrNotExFAT) || errors.Is(err, exfat.ErrCorrupt) {
		r.Findings = append(r.Findings, err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	for _, f := range found.Findings {
		if f.Repaired {
			r.Warnings = append(r.Warnings, f.String())
		} else {
			r.Findings = append(r.Findings, f.String())
		}
	}
	if found.More > 0 {
		r.Findings = append(r.Findings, fmt.Sprintf("%d more", found.More))
	}
	r.Reported = map[string]string{"files": fmt.Sprint(found.Files), "folders": fmt.Sprint(found.Dirs), "used": fmt.Sprint(found.Used), "free": fmt.Sprint(found.Free)}
	return nil
}

// Evict drops the cached pages of the file, or of all files of the bundle.
func (c *image) Evict(ctx context.Context) error {
	if err := c.same(ctx, "evicting", true); err != nil {
		return err
	}
	return gone(files.Evict(ctx, c.dir, c.file))
}

// Remove deletes the container, unless something else took its place.
func (c *image) Remove(ctx context.Context) error {
	if err := c.same(ctx, "removing", true); err != nil {
		return err
	}
	err := gone(container.Remove(c.dir, c.file))
	if err == nil {
		clear(c.spec.Passphrase)
	}
	return err
}
