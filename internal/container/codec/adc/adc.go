// Package adc reads and writes Apple Data Compression, the codec of UDCO
// images: literal runs and copies of up to 67 bytes from at most 64 KiB back,
// coded in whole bytes, without header, end mark or checksum. It turns one
// slice into another. The coding is that of docs/formats.md.
//
// Both directions are safe for concurrent use and allocate no memory once their
// pool is warm, except to extend dst.
package adc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"sync"
)

// ErrCorrupt is what every error of Decode wraps: the source is not an ADC
// stream, or one of another size.
var ErrCorrupt = errors.New("corrupt adc stream")

// MaxDistance is the longest distance, in bytes, that a copy can reach back.
const MaxDistance = 1 << 16

// Limits of the codes.
const (
	maxLiterals  = 128
	minShort     = 3
	maxShort     = 18
	nearDistance = 1 << 10
	minLong      = 4
	maxLong      = 67
)

// Decode decodes the stream at the start of src into dst, which has to have
// exactly the decoded length; it returns how many bytes it has written, which
// is less than len(dst) with every error. The stream ends when dst is full:
// bytes after that are ignored. It takes time proportional to len(dst) +
// len(src).
func Decode(dst, src []byte) (int, error) {
	at, in := 0, 0
	for at < len(dst) {
		if in >= len(src) {
			return at, corrupt(in, "ends too early")
		}
		code := int(src[in])
		if code >= 0x80 {
			n := code - 0x7f
			if n > len(src)-in-1 || n > len(dst)-at {
				return at, corrupt(in, "literals that do not fit")
			}
			at += copy(dst[at:], src[in+1:in+1+n])
			in += 1 + n
			continue
		}
		size := 2 + code>>6
		if len(src)-in < size {
			return at, corrupt(in, "ends too early")
		}
		n, distance := code>>2+minShort, code&3<<8+int(src[in+1])+1
		if size == 3 {
			n, distance = code&0x3f+minLong, int(src[in+1])<<8+int(src[in+2])+1
		}
		if distance > at || n > len(dst)-at {
			return at, corrupt(in, "a copy that does not fit")
		}
		repeat(dst[at:at+n], dst[at-distance:at])
		at, in = at+n, in+size
	}
	return at, nil
}

// repeat fills out with period, again and again; out follows period in memory.
func repeat(out, period []byte) {
	if len(out) <= len(period) {
		copy(out, period)
		return
	}
	for done := 0; done < len(out); {
		if done == 0 {
			done = copy(out, period)
			continue
		}
		// The bytes so far are whole periods, except the last time.
		done += copy(out[done:], out[:done])
	}
}

// corrupt makes an error that wraps ErrCorrupt, with the position in the
// source.
func corrupt(at int, cause string) error {
	return fmt.Errorf("decoding code at byte %d: %w: %s", at, ErrCorrupt, cause)
}

// Size of the match finder: buckets by the hash of three bytes, and how many
// earlier positions of a bucket it looks at.
const (
	hashBits = 15
	depth    = 12
	maxSkip  = 15 // positions that are not looked at in noise, so that it passes quickly
)

// encoder finds matches through chains of positions with equal hashes.
// Positions are kept plus one, so that zero means none; the chain is a ring
// over the last MaxDistance positions.
type encoder struct {
	src   []byte
	head  [1 << hashBits]uint32
	chain [MaxDistance]uint32
}

var encoders = sync.Pool{New: func() any { return new(encoder) }}

// copyOf is a copy that is possible at a position; saved counts the bytes that
// it saves against literals.
type copyOf struct {
	n, distance, saved int
}

// Encode appends src as an ADC stream to dst and returns the extended slice: at
// most len(src) + len(src)/128 + 1 bytes more. A match is not taken when a
// better one starts at the next byte.
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

// insert makes src[at:] known and gives the position with the same hash before
// it, plus one.
func (e *encoder) insert(at int) uint32 {
	h := binary.LittleEndian.Uint32(e.src[at:]) << 8 * 0x9e3779b1 >> (32 - hashBits)
	before := e.head[h]
	e.head[h], e.chain[at%MaxDistance] = uint32(at+1), before
	return before
}

// find looks for the copy that saves the most at src[at:], where four bytes can
// be read, and makes the position known.
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

// common is how many bytes from the start on are equal; b is at least as long
// as a.
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

// appendLiterals appends codes of at most 128 literals.
func appendLiterals(dst, src []byte) []byte {
	for len(src) > 0 {
		n := min(len(src), maxLiterals)
		dst = append(append(dst, byte(0x7f+n)), src[:n]...)
		src = src[n:]
	}
	return dst
}

// appendCopy appends the code of a copy, the shorter of the two where both are
// possible.
func appendCopy(dst []byte, c copyOf) []byte {
	d := c.distance - 1
	if d < nearDistance && c.n <= maxShort {
		return append(dst, byte((c.n-minShort)<<2|d>>8), byte(d))
	}
	return append(dst, byte(0x40|(c.n-minLong)), byte(d>>8), byte(d))
}
