package imagetool

import (
	"errors"
	"fmt"
	"slices"

	"dmgbench/internal/blockdev"
	"dmgbench/internal/container"
	"dmgbench/internal/exfat"
)

// compact deletes bands that hold nothing.
func (c *call) compact() error {
	return c.change(c.operands[0], func(p place, img container.Image) error {
		if img.BandSize() == 0 {
			_, err := img.Compact(nil) // which says that it cannot
			return err
		}
		plain := !c.has("-plist")
		if plain {
			fmt.Fprint(c.out, "Starting to compact…\n")
		}
		progress := c.newProgress(0)
		free, possible, err := freeSpace(img)
		if err != nil {
			return err
		}
		if free == nil && possible > 0 {
			fmt.Fprintf(c.err, "hdiutil: compact: WARNING: the volume was not unmounted cleanly: only bands of zeros are given back. Check it first.\n")
		}
		if plain {
			fmt.Fprint(c.out, "Reclaiming free space…\n")
		}
		used := free.used
		if free == nil {
			used = nil
		}
		got, err := img.Compact(used)
		if err != nil {
			return err
		}
		progress.at(0)
		if !plain {
			return c.printPlist(list{"reclaimed-bytes": got, "possible-bytes": max(got, possible)})
		}
		fmt.Fprintf(c.out, "Finishing compaction…\nReclaimed %s out of %s possible.\n", appleSize(got), appleSize(max(got, possible)))
		return nil
	})
}

// freeSpace is what the ExFAT volume of a device does not use, with what lies outside of
// every partition and table, and how many bytes the volume has free. It is nil for other
// contents, and of a volume that was not unmounted cleanly, whose bitmap may lack what a file has:
// then only zeros are known to be nothing.
func freeSpace(img container.Image) (ranges, int64, error) {
	vol, p, err := volume(img)
	if err != nil || vol == nil || identify(vol).name != ours {
		return nil, 0, nil // a table or content that is not understood is left as it is
	}
	l := &listener{Device: vol}
	v, err := exfat.Mount(l, exfat.MountOptions{})
	if err != nil {
		return nil, 0, nil
	}
	dirty := v.State().Dirty
	possible, err := v.Trim(0)
	if err = errors.Join(err, v.Unmount()); err != nil {
		return nil, 0, err
	}
	if dirty {
		return nil, possible, nil
	}
	offset := int64(0)
	if p != nil {
		offset = p.Offset()
	}
	return joined(l.spans, offset), possible, nil
}

// span is part of a device, from off to before end, in bytes.
type span struct{ off, end int64 }

// ranges are free parts of a device, ascending and not touching one another.
type ranges []span

// used says whether anything of n bytes from off is not free.
func (r ranges) used(off, n int64) bool {
	i, found := slices.BinarySearchFunc(r, off, func(s span, off int64) int { return compare(s.off, off) })
	if !found {
		i--
	}
	return i < 0 || off+n > r[i].end
}

func compare(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func joined(spans []span, offset int64) ranges {
	slices.SortFunc(spans, func(a, b span) int { return compare(a.off, b.off) })
	free := ranges{}
	for _, s := range spans {
		s.off, s.end = s.off+offset, s.end+offset
		if last := len(free) - 1; last >= 0 && free[last].end >= s.off {
			free[last].end = max(free[last].end, s.end)
			continue
		}
		free = append(free, s)
	}
	return free
}

// listener notes what a volume would discard and lets nothing be written: a volume that is only asked has nothing to write.
type listener struct {
	blockdev.Device
	spans []span
}

func (l *listener) Discard(off, n int64) error {
	l.spans = append(l.spans, span{off, off + n})
	return nil
}

func (l *listener) WriteAt([]byte, int64) (int, error) { return 0, container.ErrReadOnly }
