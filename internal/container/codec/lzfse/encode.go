package lzfse

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"sync"
)

// Sizes that decide the kind of block, as Apple's encoder has them.
const (
	minLZVN  = 8    // shorter inputs are stored
	minLZFSE = 4096 // shorter inputs become LZVN
)

// Sizes of the match finder's tables, in bits: long ones find matches of 8 bytes and more, short ones those of 5.
const (
	longBits  = 16
	shortBits = 15
	skipShift = 7 // misses in a row, as a power of two, after which the finder looks at one position less
)

// encoder is the state of one Encode, pooled: what the match finder knows, and the block that it is filling.
type encoder struct {
	src   []byte
	out   []byte
	long  [1 << longBits]uint32
	short [1 << shortBits]uint32
	block block
	lzvn  lzvnEncoder
}

var encoders = sync.Pool{New: func() any { return new(encoder) }}

// Encode appends src as an LZFSE stream to dst and returns the extended slice. It is at most 12 bytes longer than
// src, whose length is not limited; matches reach back MaxDistance at most.
func Encode(dst, src []byte) []byte {
	e := encoders.Get().(*encoder)
	e.src, e.out = src, dst
	switch {
	case len(src) >= minLZFSE && uint64(len(src)) < 1<<31:
		e.encode()
		if len(e.out)-len(dst) >= len(src)+8 {
			e.out = e.out[:len(dst)]
			e.store(0, len(src))
		}
	case len(src) >= minLZVN && len(src) < minLZFSE:
		e.small()
	default:
		e.store(0, len(src))
	}
	out := binary.LittleEndian.AppendUint32(e.out, magicEnd)
	e.src, e.out = nil, nil
	encoders.Put(e)
	return out
}

// small writes the whole input as one bvxn block, or stores it when that is no longer.
func (e *encoder) small() {
	start := len(e.out)
	e.out = append(e.out, make([]byte, 12)...)
	e.out = e.lzvn.encode(e.out, e.src)
	if len(e.out)-start >= len(e.src)+8 {
		e.out = e.out[:start]
		e.store(0, len(e.src))
		return
	}
	le := binary.LittleEndian
	le.PutUint32(e.out[start:], magicLZVN)
	le.PutUint32(e.out[start+4:], uint32(len(e.src)))
	le.PutUint32(e.out[start+8:], uint32(len(e.out)-start-12))
}

// store writes src[from:to] as bvx- blocks. Nothing at all makes no block.
func (e *encoder) store(from, to int) {
	for from < to {
		n := min(to-from, 1<<30)
		e.out = binary.LittleEndian.AppendUint32(e.out, magicUncompressed)
		e.out = binary.LittleEndian.AppendUint32(e.out, uint32(n))
		e.out = append(e.out, e.src[from:from+n]...)
		from += n
	}
}

// encode finds the matches of the whole input and writes them block by block.
//
// Two hash tables hold the last position of each 8 and each 5 bytes; the longer match is preferred, and a short one
// gives way to a long one that begins a byte later. The previous distance is tried first, since it costs next to
// nothing. Where nothing matches, the steps grow, so that random bytes pass quickly.
func (e *encoder) encode() {
	clear(e.long[:])
	clear(e.short[:])
	e.block.reset()
	src, anchor, last := e.src, 0, 0
	limit := len(src) - 16 // 8 bytes can be read from every position that the finder looks at, and from the next one
	for at := 1; at < limit; {
		v := binary.LittleEndian.Uint64(src[at:])
		long, short := hashLong(v), hashShort(v)
		candidate, other := int(e.long[long]), int(e.short[short])
		e.long[long], e.short[short] = uint32(at), uint32(at)
		from := 0
		switch {
		case last > 0 && binary.LittleEndian.Uint32(src[at+1-last:]) == uint32(v>>8):
			at++
			from = at - last
		case at-candidate <= maxD && binary.LittleEndian.Uint64(src[candidate:]) == v:
			from = candidate
		case at-other <= maxD && (binary.LittleEndian.Uint64(src[other:])^v)<<24 == 0:
			from = other
			next := binary.LittleEndian.Uint64(src[at+1:])
			h := hashLong(next)
			better := int(e.long[h])
			e.long[h] = uint32(at + 1)
			if at+1-better <= maxD && binary.LittleEndian.Uint64(src[better:]) == next {
				at, from = at+1, better
			}
		default:
			at += 1 + (at-anchor)>>skipShift
			continue
		}
		distance := at - from
		for at > anchor && from > 0 && src[at-1] == src[from-1] {
			at, from = at-1, from-1
		}
		end := at + 4 + common(src, at+4, from+4)
		e.match(anchor, at-anchor, end-at, distance)
		if end < limit {
			e.insert(at + 2)
			e.insert(end - 2)
		}
		at, anchor, last = end, end, distance
	}
	e.match(anchor, len(src)-anchor, 0, 0)
	e.flush()
}

// insert makes the position known to the match finder.
func (e *encoder) insert(at int) {
	v := binary.LittleEndian.Uint64(e.src[at:])
	e.long[hashLong(v)], e.short[hashShort(v)] = uint32(at), uint32(at)
}

func hashLong(v uint64) uint64  { return v * 0x9e3779b97f4a7c15 >> (64 - longBits) }
func hashShort(v uint64) uint64 { return v << 24 * 0x9e3779b185ebca87 >> (64 - shortBits) }

// common is how many bytes from a on equal those from b on, b < a.
func common(src []byte, a, b int) int {
	start := a
	for a+8 <= len(src) {
		if x := binary.LittleEndian.Uint64(src[a:]) ^ binary.LittleEndian.Uint64(src[b:]); x != 0 {
			return a - start + bits.TrailingZeros64(x)>>3
		}
		a, b = a+8, b+8
	}
	for a < len(src) && src[a] == src[b] {
		a, b = a+1, b+1
	}
	return a - start
}

// match adds l literals from src[anchor:] and m bytes at the distance behind them to the block, in as many triples
// as the limits of L and M ask for.
func (e *encoder) match(anchor, l, m, distance int) {
	for l > maxL {
		e.triple(anchor, maxL, 0, 0)
		anchor, l = anchor+maxL, l-maxL
	}
	for first := true; first || m > 0; first = false {
		if l == 0 && m == 0 {
			return
		}
		part := min(m, maxM)
		e.triple(anchor, l, part, distance)
		anchor, l, m = anchor+l+part, 0, m-part
	}
}

// triple adds one triple; a full block is written out first. Without a match the distance is free: any valid one
// does, and that of before costs least.
func (e *encoder) triple(anchor, l, m, distance int) {
	b := &e.block
	if b.matches == maxMatches || b.literals+l > maxLiterals {
		e.flush()
	}
	if m == 0 {
		distance = max(1, b.distance)
	}
	d := uint32(distance)
	if distance == b.distance {
		d = 0
	}
	b.distance = distance
	copyLiterals(b.literal[b.literals:], e.src[anchor:], l)
	b.literals += l
	b.raw += l + m
	b.l[b.matches], b.m[b.matches], b.d[b.matches] = uint16(l), uint16(m), d
	b.matches++
}

// copyLiterals copies n ≤ maxL bytes; dst has room for wide more.
func copyLiterals(dst, src []byte, n int) {
	if n <= wide && len(src) >= wide {
		*(*[wide]byte)(dst) = *(*[wide]byte)(src)
		return
	}
	copy(dst[:n], src[:n])
}

// flush writes the block and begins another. One that does not shrink stays bvx2 all the same, as in Apple's encoder:
// 7-Zip 26.02 fails on a bvx- block that follows another one.
func (e *encoder) flush() {
	b := &e.block
	if b.matches == 0 {
		return
	}
	e.out = b.append(slices.Grow(e.out, maxSizeV2+b.literals+8*b.matches))
	b.reset()
}
