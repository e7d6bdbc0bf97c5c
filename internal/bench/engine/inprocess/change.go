package inprocess

import (
	"context"
	"errors"
	"fmt"

	"dmgbench/internal/bench/engine"
	diskimage "dmgbench/internal/image"
	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/container"
	"dmgbench/internal/image/exfat"
	"dmgbench/internal/image/gpt"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/units"
)

// Resize changes the length of device, partition and volume to size bytes,
// rounded up to a sector. Growing goes from the outside in, shrinking from the
// inside out, so that no layer ever reaches beyond the one below.
func (c *image) Resize(ctx context.Context, size int64) (engine.Report, error) {
	if err := c.engine.Allows(c.spec, engine.Action{Do: "resize"}); err != nil {
		return engine.Report{}, err
	}
	size = units.RoundUp(size, container.SectorSize)
	err := c.with(ctx, "resizing", false, func(img container.Image) error {
		old, part, _, err := openPartition(img)
		if err != nil {
			return err
		}
		t, err := gpt.Single(size, gpt.GUID{1}, gpt.BasicData, gpt.GUID{2}, "", old.First)
		if err != nil {
			return err
		}
		end := t.Partitions[0].Size()
		if size >= img.Size() {
			return c.grow(img, part, size, end, old.Index)
		}
		if err := c.resizeVolume(part, end); err != nil {
			return err
		}
		if _, err := gpt.Resize(img, size, old.Index); err != nil {
			return err
		}
		return img.Resize(size)
	})
	if err != nil {
		return engine.Report{}, fmt.Errorf("resizing %q: %w", c.File, err)
	}
	c.spec.Size = size
	return engine.Report{}, nil
}

// grow first checks that the FAT of the volume has room: later the device would
// already have grown.
func (c *image) grow(img container.Image, part blockdev.Device, size, end int64, index int) error {
	vol, err := exfat.Mount(part, exfat.MountOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	limit := vol.MaxSize()
	if err := vol.Unmount(); err != nil {
		return err
	}
	if end > limit {
		return fmt.Errorf("growing the volume to %d bytes, at most %d: %w", end, limit, exfat.ErrFATTooSmall)
	}
	if err := img.Resize(size); err != nil {
		return err
	}
	if _, err := gpt.Resize(img, size, index); err != nil {
		return err
	}
	_, part, _, err = openPartition(img)
	if err != nil {
		return err
	}
	return c.resizeVolume(part, part.Size())
}

// resizeVolume mounts the volume of a partition, changes its size in bytes, and
// unmounts it.
func (c *image) resizeVolume(part blockdev.Device, size int64) error {
	vol, err := exfat.Mount(part, exfat.MountOptions{Now: c.engine.Now})
	if err != nil {
		return err
	}
	return errors.Join(vol.Resize(size), vol.Unmount())
}

// Compact deletes the bands without data of the volume, as `hdiutil compact`
// does; UDRW has no bands. Free parts of bands in use stay allocated: Trim
// frees those.
func (c *image) Compact(ctx context.Context, _ engine.CompactOptions) (r engine.Report, err error) {
	if err := c.engine.Allows(c.spec, engine.Action{Do: "compact"}); err != nil {
		return r, err
	}
	err = c.with(ctx, "compacting", false, func(img container.Image) error {
		p, part, _, err := openPartition(img)
		if err != nil {
			return err
		}
		free, _, err := exfat.FreeSpace(part, p.Offset())
		if err != nil {
			return err
		}
		used := free.Used
		if free == nil { // not unmounted cleanly, data of files may be marked free in the bitmap: delete only zeros
			used = nil
		}
		r.Freed, err = img.Compact(used)
		return err
	})
	if err != nil {
		err = fmt.Errorf("compacting %q: %w", c.File, err)
	}
	return r, err
}

// Convert makes another container of the other (or the same) format with the
// same device content. Parts that are zero are left out. Read-only formats are
// compressed on every processor.
func (c *image) Convert(ctx context.Context, dir *hostio.Dir, name string, s engine.Spec) (engine.Container, error) {
	s.Size = c.spec.Size
	s, err := normalize(s)
	if err == nil {
		s, err = s.WithPassphrase(c.engine.Passphrase)
	}
	if err != nil {
		return nil, err
	}
	file := engine.FileName(name, formatOf(s.Format))
	err = c.with(ctx, "converting", true, func(src container.Image) error {
		return c.engine.convert(ctx, src, dir, file, name, s)
	})
	if err != nil {
		return nil, fmt.Errorf("converting %q: %w", c.File, err)
	}
	made, err := c.engine.openImage(dir, file, s)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("converting %q: %w", c.File, err), container.Remove(dir, file))
	}
	return made, nil
}

// convert writes the content of src to a new container. After an error it is
// deleted.
func (e *Engine) convert(ctx context.Context, src container.Image, dir *hostio.Dir, file, seed string,
	s engine.Spec) (err error) {
	spec := e.containerSpec(seed, s)
	switch {
	case s.Format == diskimage.UDTO:
		spec.Format = container.UDRW
	case formatOf(s.Format).ReadOnly:
		return container.CreateUDIF(ctx, dir, file, src,
			container.UDIFSpec{Format: s.Format, Encryption: spec.Encryption})
	}
	if err := container.Create(dir, file, spec); err != nil {
		return err
	}
	dst, err := container.Open(dir, file, container.OpenOptions{Cache: s.Cache, Passphrase: s.Passphrase})
	// Close reports writes that failed later, as the host's cache may delay them.
	if err == nil {
		err = errors.Join(container.Copy(ctx, dst, src, nil), dst.Close())
	}
	if err != nil {
		err = errors.Join(err, container.Remove(dir, file))
	}
	return err
}

// Damage damages the container on purpose: "header" (the file's first sectors,
// the trailer of UDIF, the bundle's Info.plist), "band-missing" (a band in the
// middle), "truncated" (half of the file, or of the longest band), "volume"
// (the main boot region, what UDIF stores of it), and but for UDIF "table"
// (both partition tables).
func (c *image) Damage(ctx context.Context, kind string) error {
	if err := c.CheckDetached(ctx, "damaging"); err != nil {
		return err
	}
	if err := c.engine.Allows(c.spec, engine.Action{Do: "damage", Kind: kind}); err != nil {
		return err
	}
	firstSector := func(img container.Image) (offsets []int64, n int, err error) {
		p, _, _, err := openPartition(img)
		return []int64{p.Offset()}, container.SectorSize, err
	}
	err := container.Corrupt(c.Dir, c.File, container.Corruption{Kind: kind, UDIF: formatOf(c.spec.Format).UDIF,
		Passphrase: c.spec.Passphrase, Places: firstSector})
	if err != nil {
		return fmt.Errorf("damaging %q: %w", c.File, engine.Gone(err))
	}
	return nil
}
