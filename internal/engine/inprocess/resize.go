package inprocess

import (
	"context"
	"fmt"
	"slices"

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
	if sealed(c.spec.Format) {
		return engine.Report{}, refuse("resizing "+c.spec.Format, "convert it to UDRW first")
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
	if c.spec.Format == container.UDRW || sealed(c.spec.Format) {
		return engine.Report{}, refuse("compacting "+c.spec.Format, "use a sparse format, or let attaching trim the image")
	}
	var r engine.Report
	err := c.with(ctx, "compacting", false, func(img container.Image) error {
		free, err := freeRanges(img)
		if err != nil {
			return err
		}
		r.Freed, err = img.Compact(free.used)
		return err
	})
	if err != nil {
		return r, fmt.Errorf("compacting %q: %w", c.file, err)
	}
	return r, nil
}

// ranges are free parts of a device, ascending and not touching one another.
type ranges []span

type span struct{ off, end int64 }

// used says whether anything of n bytes from off is not free.
func (r ranges) used(off, n int64) bool {
	i, found := slices.BinarySearchFunc(r, off, func(s span, off int64) int { return int(min(1, max(-1, s.off-off))) })
	if !found {
		i--
	}
	return i < 0 || off+n > r[i].end
}

// freeRanges asks the volume what it would trim.
func freeRanges(img container.Image) (ranges, error) {
	p, part, _, err := partition(img)
	if err != nil {
		return nil, err
	}
	l := &listener{Device: part}
	vol, err := exfat.Mount(l, exfat.MountOptions{})
	if err != nil {
		return nil, err
	}
	_, err = vol.Trim(0)
	if e := vol.Unmount(); err == nil {
		err = e
	}
	slices.SortFunc(l.list, func(a, b span) int { return int(min(1, max(-1, a.off-b.off))) })
	var free ranges
	for _, s := range l.list {
		s.off, s.end = s.off+p.Offset(), s.end+p.Offset()
		if last := len(free) - 1; last >= 0 && free[last].end >= s.off {
			free[last].end = max(free[last].end, s.end)
			continue
		}
		free = append(free, s)
	}
	return free, err
}

// listener notes what is discarded instead of doing it, and lets nothing be
// written: a volume that is only asked has nothing to write.
type listener struct {
	blockdev.Device
	list []span
}

func (l *listener) Discard(off, n int64) error {
	l.list = append(l.list, span{off, off + n})
	return nil
}

func (l *listener) WriteAt([]byte, int64) (int, error) { return 0, container.ErrReadOnly }
