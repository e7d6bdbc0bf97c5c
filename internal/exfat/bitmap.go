package exfat

import (
	"encoding/binary"
	"math/bits"
)

// bitmap is the allocation bitmap. Clusters are counted from 0 here.
type bitmap struct {
	paged
	n    uint32 // clusters
	free uint32
}

// newBitmap takes over data, which is padded to 8 bytes; bits beyond n are treated as taken but not changed.
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
	if over := b.n % 64; over != 0 { // word sets what lies beyond the end
		used -= 64 - over
	}
	return used
}

// word is the 64 bits from cluster i, a multiple of 64; what lies beyond the end is set.
func (b *bitmap) word(i uint32) uint64 {
	w := binary.LittleEndian.Uint64(b.data[i/8:])
	if over := int64(i) + 64 - int64(b.n); over > 0 {
		w |= ^uint64(0) << (64 - over)
	}
	return w
}

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

// find returns the first run of n free clusters that lies within [from, to).
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

// put marks clusters as taken or free; clusters that are so already are not counted twice.
func (b *bitmap) put(first, n uint32, taken bool) {
	if n == 0 {
		return
	}
	for i := first; i-first < n; {
		if i%8 == 0 && n-(i-first) >= 8 {
			was := uint32(bits.OnesCount8(b.data[i/8]))
			if taken {
				b.data[i/8] = 0xFF
				b.free -= 8 - was
			} else {
				b.data[i/8] = 0
				b.free += was
			}
			i += 8
			continue
		}
		if b.taken(i) != taken {
			b.data[i/8] ^= 1 << (i % 8)
			if taken {
				b.free--
			} else {
				b.free++
			}
		}
		i++
	}
	b.mark(int(first/8), int((first+n-1)/8-first/8)+1)
}
