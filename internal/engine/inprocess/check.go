package inprocess

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"dmgbench/internal/blockdev"
	"dmgbench/internal/container"
	"dmgbench/internal/engine"
	"dmgbench/internal/exfat"
	"dmgbench/internal/gpt"
)

// Check checks the container and its partition table ("container"), the volume
// ("volume"), or both (""). The container may be attached without a mount, as
// when fsck runs on the device of a Mac's image.
func (c *image) Check(ctx context.Context, o engine.CheckOptions) (engine.Report, error) {
	var r engine.Report
	unmounted := c.open != nil && c.open.vol == nil
	check := c.checkDetached
	if unmounted {
		check = c.CheckSame
	}
	if err := check(ctx, "checking"); err != nil {
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
			return r, fmt.Errorf("checking %q: %w", c.File, engine.Gone(err))
		}
	}
	look := func(img container.Image) error { return inspect(img, o, &r) }
	var err error
	if unmounted {
		err = engine.Gone(errors.Join(look(c.open.img), c.open.img.Flush()))
	} else {
		err = c.with(ctx, "checking", !o.Repair, look)
	}
	switch {
	case errors.Is(err, container.ErrCorrupt):
		r.Findings, err = append(r.Findings, err.Error()), nil
	case err != nil:
		err = fmt.Errorf("checking %q: %w", c.File, err)
	}
	return r, err
}

// verify checks the container's structure, and repairs it unless it is
// attached.
func (c *image) verify(repair bool, r *engine.Report) error {
	list, err := container.Verify(c.Dir, c.File, container.OpenOptions{Passphrase: passphraseOf(c.spec)})
	if err != nil {
		return err
	}
	left := list
	if repair && len(list) > 0 && !slices.ContainsFunc(list, func(f container.Finding) bool { return f.Fatal }) {
		if err := container.Repair(c.Dir, c.File,
			container.OpenOptions{Passphrase: passphraseOf(c.spec)}); err != nil {
			return err
		}
		if left, err = container.Verify(c.Dir, c.File,
			container.OpenOptions{Passphrase: passphraseOf(c.spec)}); err != nil {
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
	if errors.Is(err, gpt.ErrNoTable) || errors.Is(err, gpt.ErrDamaged) || errors.Is(err,
		gpt.ErrInvalid) || errors.Is(err, gpt.ErrTooSmall) {
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
	_, part, _, err := openPartition(img)
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
		_, err := gpt.Resize(img, img.Size(), -1)
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
	r.Reported = map[string]string{"files": fmt.Sprint(found.Files), "folders": fmt.Sprint(found.Dirs),
		"used": fmt.Sprint(found.Used), "free": fmt.Sprint(found.Free)}
	return nil
}

// verifyChecksums computes the checksums that the image carries; other images
// have none.
func (c *image) verifyChecksums(ctx context.Context) error {
	if !formatOf(c.spec.Format).UDIF {
		return nil
	}
	list, err := container.Verify(c.Dir, c.File, container.OpenOptions{Passphrase: passphraseOf(c.spec)})
	if err == nil && len(list) > 0 {
		err = fmt.Errorf("%s: %w", list[0], container.ErrCorrupt)
	}
	return errors.Join(err, ctx.Err())
}
