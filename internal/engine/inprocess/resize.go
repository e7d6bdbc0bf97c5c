package inprocess

import (
	"context"
	"fmt"

	"dmgbench/internal/blockdev"
	"dmgbench/internal/container"
	"dmgbench/internal/engine"
	"dmgbench/internal/exfat"
	"dmgbench/internal/gpt"
)

// Resize changes the length of device, partition and volume to size bytes,
// rounded up to a sector. Growing goes from the outside in, shrinking from the
// inside out, so that no layer ever reaches beyond the one below.
func (c *image) Resize(ctx context.Context, size int64) (engine.Report, error) {
	if err := c.engine.Allows(c.spec, engine.Action{Do: "resize"}); err != nil {
		return engine.Report{}, err
	}
	size = (size + container.SectorSize - 1) / container.SectorSize * container.SectorSize
	err := c.with(ctx, "resizing", false, func(img container.Image) error {
		old, part, _, err := partition(img)
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
		if err := c.volumeSize(part, end); err != nil {
			return err
		}
		if _, err := gpt.Resize(img, size, old.Index); err != nil {
			return err
		}
		return img.Resize(size)
	})
	if err != nil {
		return engine.Report{}, fmt.Errorf("resizing %q: %w", c.file, err)
	}
	c.spec.Size = size
	return engine.Report{}, nil
}

// grow asks the volume first whether its FAT has room: afterwards it is too late.
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
	_, part, _, err = partition(img)
	if err != nil {
		return err
	}
	return c.volumeSize(part, part.Size())
}

func (c *image) volumeSize(part blockdev.Device, size int64) error {
	vol, err := exfat.Mount(part, exfat.MountOptions{Now: c.engine.Now})
	if err != nil {
		return err
	}
	err = vol.Resize(size)
	if e := vol.Unmount(); err == nil {
		err = e
	}
	return err
}

// Compact deletes the bands that hold nothing of the volume, as `hdiutil
// compact` does; UDRW has nothing to compact. Free parts of bands
// that are in use stay allocated: trimming is for those.
func (c *image) Compact(ctx context.Context, _ engine.CompactOptions) (engine.Report, error) {
	if err := c.same(ctx, "compacting", true); err != nil {
		return engine.Report{}, err
	}
	if err := c.engine.Allows(c.spec, engine.Action{Do: "compact"}); err != nil {
		return engine.Report{}, err
	}
	var r engine.Report
	err := c.with(ctx, "compacting", false, func(img container.Image) error {
		free, err := freeSpans(img)
		if err != nil {
			return err
		}
		used := free.Used
		if free == nil { // what a file has may be free in the bitmap: only zeros are nothing
			used = nil
		}
		r.Freed, err = img.Compact(used)
		return err
	})
	if err != nil {
		return r, fmt.Errorf("compacting %q: %w", c.file, err)
	}
	return r, nil
}

// freeSpans asks the volume what it would trim; nil for one that was not unmounted cleanly.
func freeSpans(img container.Image) (exfat.Spans, error) {
	p, part, _, err := partition(img)
	if err != nil {
		return nil, err
	}
	free, _, err := exfat.FreeSpace(part, p.Offset())
	return free, err
}
