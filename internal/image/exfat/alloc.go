package exfat

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"dmgbench/internal/system/units"
)

// errFragments reports that there is room, but not in one piece, or only after
// freed clusters have been released.
var errFragments = errors.New("free space is fragmented")

// arena is where one stripe of writers puts its files: clusters [next, end),
// counted from 0. Writers with arenas of their own do not wait for each other
// on devices that lock an extent, such as a band, while they write it.
type arena struct{ next, end uint32 }

// allocator hands out clusters of the bitmap. All of it is under Volume.mu.
type allocator struct {
	*bitmap
	// cursor is where the last allocation ended: next fit, which keeps files
	// that are written one after another together and leaves what was freed for
	// later.
	cursor uint32
	// extent is the length of the device's extents, such as the bands of a
	// sparse bundle, in bytes (0: none); phase is where the heap starts on
	// their grid.
	extent, phase int64
	// cluster is the size of a cluster in bytes.
	cluster int64
	arenas  map[int]*arena
	// frontier is the extent in which the search for the next arena starts.
	frontier int64
}

// allocate takes n > 0 clusters. It tries the clusters directly after `after`
// (if that is not 0), then the arena of the stripe (if that is not 0), then the
// first room in one piece after the last allocation. If there is none, it
// gathers pieces, or fails with errFragments when whole is set. Too few free
// clusters are ErrNoSpace.
func (a *allocator) allocate(n, after uint32, stripe int, whole bool) ([]run, error) {
	if n > a.free {
		return nil, ErrNoSpace
	}
	if at, ok := a.place(n, after, stripe); ok {
		a.put(at, n, true)
		a.cursor = at + n
		return []run{{at + firstData, n}}, nil
	}
	if whole {
		return nil, errFragments
	}
	return a.gather(n, after), nil
}

// place finds n clusters in one piece.
func (a *allocator) place(n, after uint32, stripe int) (uint32, bool) {
	if after >= firstData {
		at := after - firstData + 1
		if at < a.n && n <= a.n-at && a.nextUsed(at, at+n)-at >= n {
			return at, true
		}
	}
	if stripe != 0 && a.extent > 0 {
		if at, ok := a.striped(n, stripe); ok {
			return at, true
		}
	}
	if at, ok := a.find(n, a.cursor, a.n); ok {
		return at, true
	}
	return a.find(n, 0, a.n)
}

// gather takes n clusters wherever they are, in the order of the device,
// starting after `after` or after the last allocation.
func (a *allocator) gather(n, after uint32) []run {
	var runs []run
	at := a.cursor
	if after >= firstData {
		at = after - firstData + 1
	}
	for n > 0 {
		at = a.nextFree(at, a.n)
		if at >= a.n {
			at = 0
			continue
		}
		count := a.nextUsed(at, at+min(n, a.n-at)) - at
		a.put(at, count, true)
		runs = append(runs, run{at + firstData, count})
		n -= count
		at += count
	}
	a.cursor = at
	return runs
}

// striped places n clusters in the stripe's own arena. When that is full, the
// stripe gets a new one that starts with an extent in which no other stripe
// writes and that is as many extents long as the file needs.
func (a *allocator) striped(n uint32, stripe int) (uint32, bool) {
	if own := a.arenas[stripe]; own != nil {
		if at, ok := a.find(n, own.next, own.end); ok {
			own.next = at + n
			return at, true
		}
	}
	extents := (a.phase + int64(a.n)*a.cluster + a.extent - 1) / a.extent
	for i := range extents {
		e := (a.frontier + i) % extents
		from, to := a.span(e, n)
		if from >= a.n || n > a.n-from || a.nextUsed(from, from+n) != from+n {
			continue
		}
		claimed := false
		for s, o := range a.arenas {
			claimed = claimed || s != stripe && o.next < to && from < o.end
		}
		if claimed {
			continue
		}
		a.arenas[stripe] = &arena{from + n, to}
		a.frontier = e + 1
		return from, true
	}
	return 0, false
}

// span is the clusters of extent e and of as many after it as n clusters need.
func (a *allocator) span(e int64, n uint32) (from, to uint32) {
	first := max(0, (e*a.extent-a.phase+a.cluster-1)/a.cluster)
	if first+int64(n) > int64(a.n) {
		return a.n, a.n
	}
	bytes := a.phase + (first+int64(n))*a.cluster
	end := (units.RoundUp(bytes, a.extent) - a.phase) / a.cluster
	return uint32(first), uint32(min(max(end, first+int64(n)), int64(a.n)))
}

// release frees clusters at once: only for those that no directory entry on the
// device names. For others see [Volume.discardLater].
func (a *allocator) release(runs []run) {
	for _, r := range runs {
		a.put(r.first-firstData, r.count, false)
	}
}

// freeRuns are all free clusters, joined.
func (a *allocator) freeRuns() []run {
	var runs []run
	for at := a.nextFree(0, a.n); at < a.n; {
		end := a.nextUsed(at, a.n)
		runs = append(runs, run{at + firstData, end - at})
		at = a.nextFree(end, a.n)
	}
	return runs
}

// bitmap is the allocation bitmap (section 7.1). Clusters are counted from 0
// here, not from 2 as in the FAT.
type bitmap struct {
	paged
	// n is the number of clusters, free how many of them are free.
	n    uint32
	free uint32
}

// newBitmap takes over data, which is padded to 8 bytes; bits beyond n are
// treated as taken but not changed.
func newBitmap(data []byte, n uint32) *bitmap {
	b := &bitmap{n: n}
	b.data = data
	b.free = n - b.count()
	return b
}

// count is the number of clusters in use.
func (b *bitmap) count() uint32 {
	var used uint32
	for i := uint32(0); i < b.n; i += 64 {
		used += uint32(bits.OnesCount64(b.word(i)))
	}
	if over := b.n % 64; over != 0 { // word sets the bits beyond the end
		used -= 64 - over
	}
	return used
}

// word is the 64 bits from cluster i, a multiple of 64; bits beyond the end are
// set.
func (b *bitmap) word(i uint32) uint64 {
	w := binary.LittleEndian.Uint64(b.data[i/8:])
	if over := int64(i) + 64 - int64(b.n); over > 0 {
		w |= ^uint64(0) << (64 - over)
	}
	return w
}

// taken reports whether a cluster is in use.
func (b *bitmap) taken(i uint32) bool { return b.data[i/8]>>(i%8)&1 != 0 }

// nextFree is the first free cluster from i, or limit.
func (b *bitmap) nextFree(i, limit uint32) uint32 { return b.next(i, limit, ^uint64(0)) }

// nextUsed is the first cluster in use from i, or limit.
func (b *bitmap) nextUsed(i, limit uint32) uint32 { return b.next(i, limit, 0) }

// next finds the first bit that is set in the bitmap XOR invert.
func (b *bitmap) next(i, limit uint32, invert uint64) uint32 {
	limit = min(limit, b.n)
	for base := int64(i) &^ 63; base < int64(limit); base += 64 {
		w := b.word(uint32(base)) ^ invert
		if base < int64(i) {
			w &= ^uint64(0) << (int64(i) - base)
		}
		if w != 0 {
			return min(uint32(base)+uint32(bits.TrailingZeros64(w)), limit)
		}
	}
	return limit
}

// find returns the first run of n free clusters within [from, to).
func (b *bitmap) find(n, from, to uint32) (uint32, bool) {
	to = min(to, b.n)
	for i := b.nextFree(from, to); i < to && to-i >= n; {
		end := b.nextUsed(i, i+n)
		if end-i >= n {
			return i, true
		}
		i = b.nextFree(end, to)
	}
	return 0, false
}

// put marks clusters as taken or free; clusters that are so already are not
// counted twice.
func (b *bitmap) put(first, n uint32, taken bool) {
	for i, end := int64(first), int64(first)+int64(n); i < end; i = (i/8 + 1) * 8 {
		mask := byte(0xFF) << (i % 8)
		if end < (i/8+1)*8 {
			mask &= 1<<(end%8) - 1
		}
		was := b.data[i/8]
		if taken {
			b.data[i/8] |= mask
			b.free -= uint32(bits.OnesCount8(mask &^ was))
		} else {
			b.data[i/8] &^= mask
			b.free += uint32(bits.OnesCount8(mask & was))
		}
	}
	if n > 0 {
		b.mark(int(first/8), int((first+n-1)/8-first/8)+1)
	}
}
