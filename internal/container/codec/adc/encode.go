package adc

import (
	"encoding/binary"
	"math/bits"
	"sync"
)

// Size of the match finder: buckets by the hash of three bytes, and how many earlier positions of a
// bucket it looks at.
const (
	hashBits = 15
	depth    = 12
	maxSkip  = 15 // positions that are not looked at in noise, so that it passes quickly
)

// encoder finds matches through chains of positions with equal hashes. Positions are kept plus one,
// so that zero means none; the chain is a ring over the last MaxDistance positions.
type encoder struct {
	src   []byte
	head  [1 << hashBits]uint32
	chain [MaxDistance]uint32
}

var encoders = sync.Pool{New: func() any { return new(encoder) }}

// copyOf is a copy that is possible at a position; saved counts the bytes that it saves against
// literals.
type copyOf struct {
	n, distance, saved int
}

// Encode appends src as an ADC stream to dst and returns the extended slice: at most len(src) +
// len(src)/128 + 1 bytes more. A match is not taken when a better one starts at the next byte.
func Encode(dst, src []byte) []byte {
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	e.src = src
	clear(e.head[:])
	anchor, at := 0, 0
	for at+4 <= len(src) {
		c := e.find(at)
		if c.saved == 0 {
			at += 1 + min((at-anchor)>>9, maxSkip)
			continue
		}
		for at+5 <= len(src) && c.n < maxLong {
			next := e.find(at + 1)
			if next.saved <= c.saved {
				for i := at + 2; i < at+c.n && i+4 <= len(src); i++ {
					e.insert(i)
				}
				break
			}
			at, c = at+1, next
		}
		dst = appendLiterals(dst, src[anchor:at])
		dst = appendCopy(dst, c)
		at += c.n
		anchor = at
	}
	e.src = nil
	return appendLiterals(dst, src[anchor:])
}

// insert makes src[at:] known and gives the position with the same hash before it, plus one.
func (e *encoder) insert(at int) uint32 {
	h := binary.LittleEndian.Uint32(e.src[at:]) << 8 * 0x9e3779b1 >> (32 - hashBits)
	before := e.head[h]
	e.head[h], e.chain[at%MaxDistance] = uint32(at+1), before
	return before
}

// find looks for the copy that saves the most at src[at:], where four bytes can be read, and makes
// the position known.
func (e *encoder) find(at int) copyOf {
	var best copyOf
	limit := min(maxLong, len(e.src)-at)
	here := e.src[at : at+limit]
	link := e.insert(at)
	for range depth {
		if link == 0 {
			break
		}
		from := int(link) - 1
		distance := at - from
		if distance <= 0 || distance > MaxDistance {
			break
		}
		if best.n == 0 || best.n < limit && e.src[from+best.n] == here[best.n] {
			best = better(best, common(here, e.src[from:]), distance)
			if best.n == limit {
				break
			}
		}
		before := e.chain[from%MaxDistance]
		if before >= link {
			break // a ring entry that has been written over
		}
		link = before
	}
	return best
}

// better is the copy of n bytes at the distance if it saves more than best, and best otherwise.
func better(best copyOf, n, distance int) copyOf {
	cost := 3
	if distance <= nearDistance && n <= maxShort {
		cost = 2
	}
	if n < minShort || cost == 3 && n < minLong || n-cost <= best.saved {
		return best
	}
	return copyOf{n: n, distance: distance, saved: n - cost}
}

// common is how many bytes from the start on are equal; b is at least as long as a.
func common(a, b []byte) int {
	n := 0
	for ; n+8 <= len(a); n += 8 {
		if x := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); x != 0 {
			return n + bits.TrailingZeros64(x)>>3
		}
	}
	for n < len(a) && a[n] == b[n] {
		n++
	}
	return n
}

func appendLiterals(dst, src []byte) []byte {
	for len(src) > 0 {
		n := min(len(src), maxLiterals)
		dst = append(append(dst, byte(0x7f+n)), src[:n]...)
		src = src[n:]
	}
	return dst
}

func appendCopy(dst []byte, c copyOf) []byte {
	d := c.distance - 1
	if d < nearDistance && c.n <= maxShort {
		return append(dst, byte((c.n-minShort)<<2|d>>8), byte(d))
	}
	return append(dst, byte(0x40|(c.n-minLong)), byte(d>>8), byte(d))
}
