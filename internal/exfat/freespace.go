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

// FreeSpace returns the clusters that the unmounted volume on dev does not use, as spans moved by offset (that of dev
// in the image), and their size in bytes. It does not write. The spans are nil for a volume that was not unmounted
// cleanly, since its bitmap may lack clusters of files, and not nil for any other. The errors are those of [Mount].
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

// Trim discards all free space on the device, in pieces of neighbouring clusters, and returns the number of bytes.
// Pieces shorter than smallest bytes are left out. Allocation waits meanwhile; reading and writing files does not.
func (v *Volume) Trim(smallest int64) (done int64, err error) {
	defer annotate(&err, "trimming volume")
	if v.readOnly {
		return 0, ErrReadOnly
	}
	if err := v.quiesce(); err != nil { // no entry on the device may name what is given away
		return 0, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return 0, ErrClosed
	}
	for _, r := range v.alloc.freeRuns() {
		n := int64(r.count) * v.g.clusterSize()
		if n < smallest {
			continue
		}
		if err := v.dev.Discard(v.g.at(r.first), n); err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}
