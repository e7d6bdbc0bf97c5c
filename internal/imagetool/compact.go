package imagetool

import (
	"errors"
	"fmt"

	"dmgbench/internal/attach"
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
		used := free.Used
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
func freeSpace(img container.Image) (exfat.Spans, int64, error) {
	vol, p, err := volume(img)
	if err != nil || vol == nil || attach.Identify(vol).AppleName != ours {
		return nil, 0, nil // a table or content that is not understood is left as it is
	}
	offset := int64(0)
	if p != nil {
		offset = p.Offset()
	}
	free, possible, err := exfat.FreeSpace(vol, offset)
	if errors.Is(err, exfat.ErrNotExFAT) || errors.Is(err, exfat.ErrCorrupt) || errors.Is(err, exfat.ErrUnsupported) {
		return nil, 0, nil
	}
	return free, possible, err
}
