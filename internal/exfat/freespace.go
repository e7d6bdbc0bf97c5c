package exfat

import (
	"cmp"
	"fmt"
	"slices"

	"dmgbench/internal/blockdev"
)

// Spans are parts of a device in ascending order, with gaps between them.
type Spans []Span

// Span is a part of a device: the bytes from Off to before End.
type Span struct{ Off, End int64 }

// Used reports whether any of the n bytes from off is outside the spans; of free spans: whether any is used.
func (s Spans) Used(off, n int64) bool {
	i, found := slices.BinarySearchFunc(s, off, func(s Span, off int64) int { return cmp.Compare(s.Off, off) })
	if !found {
		i--
	}
	return i < 0 || off+n > s[i].End
}

// FreeSpace returns the clusters that the unmounted volume on dev does not use, as spans moved by offset (that of dev in
// the image), and their size in bytes. Nothing is written. Of a volume that was not unmounted cleanly, whose bitmap may
// lack clusters of files, the spans are nil; of any other they are not. The errors are those of [Mount].
func FreeSpace(dev blockdev.Device, offset int64) (free Spans, bytes int64, err error) {
	v, err := Mount(dev, MountOptions{ReadOnly: true})
	if err != nil {
		return nil, 0, err
	}
	if v.state.BackupBoot {
		return nil, 0, fmt.Errorf("main boot region: %w", ErrCorrupt)
	}
	free = Spans{}
	for _, r := range v.alloc.freeRuns() {
		off, n := offset+v.g.at(r.first), int64(r.count)*v.g.clusterSize()
		free = append(free, Span{off, off + n})
		bytes += n
	}
	if v.state.Dirty {
		free = nil
	}
	return free, bytes, v.Unmount()
}
