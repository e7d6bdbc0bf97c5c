package inprocess

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/container"
	"dmgbench/internal/image/exfat"
	"dmgbench/internal/image/gpt"
)

// Check checks the container and its partition table ("container"), the volume
// ("volume"), or both (""). The container may be attached without a mount, as
// when fsck runs on the device of a Mac's image.
func (c *image) Check(ctx context.Context, o engine.CheckOptions) (r engine.Report, err error) {
	unmounted := c.open != nil && c.open.vol == nil
	check := c.CheckDetached
	if unmounted {
		check = c.CheckSame
	}
	if err := check(ctx, "checking"); err != nil {
		return r, err
	}
	if err := c.engine.Allows(c.spec, engine.Action{Do: "check", Repair: o.Repair}); err != nil {
		return r, err
	}
	// findDamage is inspect with an error about the content as a finding.
	findDamage := func(img container.Image) error {
		err := inspect(img, o, &r)
		if gpt.IsUnusable(err) || errors.Is(err, blockdev.ErrOutOfRange) || errors.Is(err, exfat.ErrNotExFAT) ||
			errors.Is(err, exfat.ErrCorrupt) {
			r.Find(err.Error())
			return nil
		}
		return err
	}
	if o.What != "volume" {
		err = c.verify(o.Repair && !unmounted, &r)
	}
	switch {
	case err != nil:
	case unmounted:
		err = errors.Join(findDamage(c.open.img), c.open.img.Flush())
	default:
		err = c.with(ctx, "opening", !o.Repair, findDamage)
		if errors.Is(err, container.ErrCorrupt) {
			r.Find(err.Error())
			err = nil
		}
	}
	if err != nil {
		err = fmt.Errorf("checking %q: %w", c.File, engine.Gone(err))
	}
	return r, err
}

// verify checks the container's structure, and repairs it unless it is
// attached.
func (c *image) verify(repair bool, r *engine.Report) error {
	o := container.OpenOptions{Passphrase: c.spec.Passphrase}
	list, err := container.Verify(c.Dir, c.File, o)
	if err != nil {
		return err
	}
	// Only lost property lists of bundles can be repaired, from their copies. What
	// is fatal stays a finding.
	left := list
	if repair && len(list) > 0 && !slices.ContainsFunc(list, func(f container.Finding) bool { return f.Fatal }) {
		if err := container.Repair(c.Dir, c.File, o); err != nil {
			return err
		}
		if left, err = container.Verify(c.Dir, c.File, o); err != nil {
			return err
		}
	}
	for _, f := range list {
		addFinding(r, f.String(), !slices.Contains(left, f))
	}
	return nil
}

// addFinding adds a finding, or a warning that it was repaired.
func addFinding(r *engine.Report, text string, repaired bool) {
	if repaired {
		r.Warn("repaired: %s", text)
	} else {
		r.Find(text)
	}
}

// inspect checks the partition table and the exFAT volume of an open image. It
// checks the volume only if a table leads to it.
func inspect(img container.Image, o engine.CheckOptions, r *engine.Report) error {
	t, list, err := gpt.Read(img)
	switch {
	case err != nil || !o.Repair:
	case slices.Contains(list, gpt.WarnBackupMoved): // the second table belongs at the end of the device
		_, err = gpt.Resize(img, img.Size(), -1)
	case len(list) > 0:
		err = gpt.Write(img, t)
	}
	if err != nil {
		return err
	}
	for _, w := range list {
		addFinding(r, string(w), o.Repair)
	}
	if o.What == "container" {
		return nil
	}
	_, part, _, err := openPartition(img)
	if err != nil {
		return err
	}
	found, err := exfat.Check(part, exfat.CheckOptions{Repair: o.Repair})
	if err != nil {
		return err
	}
	for _, f := range found.Findings {
		if f.Repaired { // which its text says
			r.Warn("%s", f)
		} else {
			r.Find(f.String())
		}
	}
	if found.More > 0 {
		r.Find(fmt.Sprintf("%d more", found.More))
	}
	for key, n := range map[string]any{
		"files": found.Files, "folders": found.Dirs, "used": found.Used, "free": found.Free,
	} {
		r.Note(key, fmt.Sprint(n))
	}
	return nil
}
