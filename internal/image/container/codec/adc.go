package codec

import (
	"encoding/binary"
	"sync"
)

// Limits of the codes of Apple Data Compression: literal runs and copies in
// whole bytes, without header, end mark or checksum (docs/formats.md).
const (
	adcDistance  = 1 << 16 // the longest, in bytes
	adcLiterals  = 128
	minShort     = 3
	maxShort     = 18
	nearDistance = 1 << 10
	minLong      = 4
	maxLong      = 67
)

// adcDecode decodes the stream at the start of src, which ends when dst is
// full: bytes after that are ignored. It takes time proportional to len(dst) +
// len(src).
func adcDecode(dst, src []byte) (int, error) {
	at, in := 0, 0
	for at < len(dst) {
		if in >= len(src) {
			return at, damaged(in, "ends too early")
		}
		code := int(src[in])
		if code >= 0x80 {
			n := code - 0x7f
			if n > len(src)-in-1 || n > len(dst)-at {
				return at, damaged(in, "literals that do not fit")
			}
			at += copy(dst[at:], src[in+1:in+1+n])
			in += 1 + n
			continue
		}
		size := 2 + code>>6
		if len(src)-in < size {
			return at, damaged(in, "ends too early")
		}
		n, distance := code>>2+minShort, code&3<<8+int(src[in+1])+1
		if size == 3 {
			n, distance = code&0x3f+minLong, int(src[in+1])<<8+int(src[in+2])+1
		}
		if distance > at || n > len(dst)-at {
			return at, damaged(in, "a copy that does not fit")
		}
		copyMatch(dst, at, distance, n)
		at, in = at+n, in+size
	}
	return at, nil
}

// Size of the match finder: buckets by the hash of three bytes, and how many
// earlier positions of a bucket it looks at.
const (
	hashBits = 15
	depth    = 12
	maxSkip  = 15 // positions that are not looked at in noise, so that it passes quickly
)

// adcEncoder finds matches through chains of positions with equal hashes.
// Positions are kept plus one, so that zero means none; the chain is a ring
// over the last adcDistance positions.
type adcEncoder struct {
	src   []byte
	head  [1 << hashBits]uint32
	chain [adcDistance]uint32
}

var adcEncoders = sync.Pool{New: func() any { return new(adcEncoder) }}

// copyOf is a copy that is possible at a position; saved counts the bytes that
// it saves against literals.
type copyOf struct {
	n, distance, saved int
}

// adcEncode appends src as an ADC stream to dst: at most len(src) +
// len(src)/128 + 1 bytes more. A match is not taken when a better one starts at
// the next byte.
func adcEncode(dst, src []byte, _ int) ([]byte, error) {
	e := adcEncoders.Get().(*adcEncoder)
	defer adcEncoders.Put(e)
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
		if d := c.distance - 1; d < nearDistance && c.n <= maxShort { // the shorter code where both are possible
			dst = append(dst, byte((c.n-minShort)<<2|d>>8), byte(d))
		} else {
			dst = append(dst, byte(0x40|(c.n-minLong)), byte(d>>8), byte(d))
		}
		at += c.n
		anchor = at
	}
	e.src = nil
	return appendLiterals(dst, src[anchor:]), nil
}

// insert makes src[at:] known and gives the position with the same hash before
// it, plus one.
func (e *adcEncoder) insert(at int) uint32 {
	h := binary.LittleEndian.Uint32(e.src[at:]) << 8 * 0x9e3779b1 >> (32 - hashBits)
	before := e.head[h]
	e.head[h], e.chain[at%adcDistance] = uint32(at+1), before
	return before
}

// find looks for the copy that saves the most at src[at:], where four bytes can
// be read, and makes the position known.
func (e *adcEncoder) find(at int) copyOf {
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
		if distance <= 0 || distance > adcDistance {
			break
		}
		if best.n == 0 || best.n < limit && e.src[from+best.n] == here[best.n] {
			best = better(best, common(here, e.src[from:]), distance)
			if best.n == limit {
				break
			}
		}
		before := e.chain[from%adcDistance]
		if before >= link {
			break // a ring entry that has been written over
		}
		link = before
	}
	return best
}

// better is the copy of n bytes at the distance if it saves more than best, and
// best otherwise.
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

// appendLiterals appends codes of at most 128 literals.
func appendLiterals(dst, src []byte) []byte {
	for len(src) > 0 {
		n := min(len(src), adcLiterals)
		dst = append(append(dst, byte(0x7f+n)), src[:n]...)
		src = src[n:]
	}
	return dst
}
