package exfat

import (
	"cmp"
	"errors"
	"slices"

	"dmgbench/internal/blockdev"
)

// Spans are parts of a device, ascending and not touching one another.
type Spans []Span

// Span is a part of a device: the bytes from Off to before End.
type Span struct{ Off, End int64 }

// Used says whether anything of n bytes from off lies outside of the spans: of free ones, whether anything is used.
func (s Spans) Used(off, n int64) bool {
	i, found := slices.BinarySearchFunc(s, off, func(s Span, off int64) int { return cmp.Compare(s.Off, off) })
	if !found {
		i--
	}
	return i < 0 || off+n > s[i].End
}

// FreeSpace asks the unmounted volume on dev what it does not use: the spans that a trim would tell the device, moved by
// offset (where dev lies in the image), and how many bytes those are. Nothing is written. Of a volume that was not
// unmounted cleanly, whose bitmap may lack what a file has, the spans are nil; else they are not. The errors are those of
// [Mount] and of reading.
func FreeSpace(dev blockdev.Device, offset int64) (free Spans, bytes int64, err error) {
	l := &listener{Device: dev}
	v, err := Mount(l, MountOptions{})
	if err != nil {
		return nil, 0, err
	}
	dirty := v.State().Dirty
	bytes, err = v.Trim(0)
	if err = errors.Join(err, v.Unmount()); err != nil || dirty {
		return nil, bytes, err
	}
	return joined(l.spans, offset), bytes, nil
}

func joined(spans []Span, offset int64) Spans {
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Compare(a.Off, b.Off) })
	free := Spans{}
	for _, s := range spans {
		s.Off, s.End = s.Off+offset, s.End+offset
		if last := len(free) - 1; last >= 0 && free[last].End >= s.Off {
			free[last].End = max(free[last].End, s.End)
			continue
		}
		free = append(free, s)
	}
	return free
}

// listener notes what a volume would discard and lets nothing be written: a volume that is only asked has nothing to
// write.
type listener struct {
	blockdev.Device
	spans []Span
}

func (l *listener) Discard(off, n int64) error {
	l.spans = append(l.spans, Span{off, off + n})
	return nil
}

func (l *listener) WriteAt([]byte, int64) (int, error) { return 0, ErrReadOnly }
