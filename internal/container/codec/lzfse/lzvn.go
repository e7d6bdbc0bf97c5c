package lzfse

import (
	"encoding/binary"
)

// decodeLZVN decodes the payload of a bvxn block to dst[at:] and reports
// whether it is valid and fills dst exactly. A payload that ends without the
// end opcode, but with dst full, is accepted as the reference does.
func decodeLZVN(dst []byte, at int, src []byte) bool {
	distance := 0
	for len(src) > 0 {
		op := src[0]
		if op == 0x06 {
			return at == len(dst)
		}
		if op == 0x0e || op == 0x16 {
			src = src[1:]
			continue
		}
		size, l, m, d, ok := lzvnOp(src)
		if !ok || l > len(src)-size || l+m > len(dst)-at {
			return false
		}
		if d != 0 {
			distance = d
		}
		at += copy(dst[at:], src[size:size+l])
		src = src[size+l:]
		if m == 0 {
			continue
		}
		if distance == 0 || distance > at {
			return false
		}
		copyMatch(dst, at, distance, m)
		at += m
	}
	return at == len(dst)
}

// lzvnOp decodes the opcode at the start of src, which is not empty: its own
// length, how many literals follow it, the length of its match and its
// distance, 0 for the previous one. It refuses undefined ones and those cut
// short.
func lzvnOp(src []byte) (size, l, m, d int, ok bool) {
	op := int(src[0])
	switch {
	case op >= 0xf0:
		m = op & 15
		if size = 1; m == 0 {
			if size = 2; len(src) < 2 {
				return 0, 0, 0, 0, false
			}
			m = int(src[1]) + 16
		}
		return size, 0, m, 0, true
	case op >= 0xe0:
		l = op & 15
		if size = 1; l == 0 {
			if size = 2; len(src) < 2 {
				return 0, 0, 0, 0, false
			}
			l = int(src[1]) + 16
		}
		return size, l, 0, 0, true
	case op >= 0xa0 && op < 0xc0:
		if len(src) < 3 {
			return 0, 0, 0, 0, false
		}
		w := int(binary.LittleEndian.Uint16(src[1:]))
		d = w >> 2
		return 3, op >> 3 & 3, (op&7<<2 | w&3) + 3, d, d != 0
	case op&0xf0 == 0x70 || op&0xf0 == 0xd0:
		return 0, 0, 0, 0, false
	}
	return lzvnShort(src)
}

// lzvnShort decodes the forms that share LLMMM: with a previous, a 16-bit or an
// 11-bit distance.
func lzvnShort(src []byte) (size, l, m, d int, ok bool) {
	op := int(src[0])
	l, m = op>>6, op>>3&7+3
	switch op & 7 {
	case 6:
		return 1, l, m, 0, l > 0
	case 7:
		if len(src) < 3 {
			return 0, 0, 0, 0, false
		}
		d = int(binary.LittleEndian.Uint16(src[1:]))
		return 3, l, m, d, d != 0
	}
	if len(src) < 2 {
		return 0, 0, 0, 0, false
	}
	d = op&7<<8 | int(src[1])
	return 2, l, m, d, d != 0
}

// Limits of the LZVN encoder: its search, and the widest distances of the
// opcodes with 11, 14 and 16 bits.
const (
	lzvnBits   = 12
	lzvnDepth  = 16
	lzvnSmall  = 0x5ff // the high bits 110 and 111 mean other opcodes
	lzvnMedium = 0x3fff
	lzvnLarge  = 0xffff
)

// lzvnEncoder finds matches through chains of positions with equal hashes;
// positions are kept plus one.
type lzvnEncoder struct {
	head  [1 << lzvnBits]int32
	chain []int32
	last  int
}

// encode appends the LZVN payload for src, its end mark included, to dst.
func (e *lzvnEncoder) encode(dst, src []byte) []byte {
	clear(e.head[:])
	if cap(e.chain) < len(src) {
		e.chain = make([]int32, max(len(src), minLZFSE))
	}
	e.chain, e.last = e.chain[:len(src)], 0
	anchor := 0
	for at := 0; at+4 <= len(src); {
		n, distance := e.find(src, at)
		if n == 0 {
			at++
			continue
		}
		dst = e.emit(dst, src[anchor:at], n, distance)
		for end := at + n; at < end; at++ {
			if at > anchor && at+4 <= len(src) && at != end-n {
				e.insert(src, at)
			}
		}
		anchor = at
	}
	dst = lzvnLiterals(dst, src[anchor:])
	return append(dst, 0x06, 0, 0, 0, 0, 0, 0, 0)
}

// insert makes src[at:] known and gives the position with the same hash before
// it, or −1.
func (e *lzvnEncoder) insert(src []byte, at int) int {
	h := (binary.LittleEndian.Uint32(src[at:]) << 8) * 0x9e3779b1 >> (32 - lzvnBits)
	before := e.head[h]
	e.chain[at], e.head[h] = before, int32(at+1)
	return int(before) - 1
}

// find looks for the match at src[at:] that saves the most bytes, and makes the
// position known. It gives 0 when none is shorter than the literals that it
// replaces.
func (e *lzvnEncoder) find(src []byte, at int) (length, distance int) {
	best := 0
	for from, depth := e.insert(src, at), 0; from >= 0 && depth < lzvnDepth; depth++ {
		d := at - from
		if d > lzvnLarge {
			break
		}
		n := common(src, at, from)
		cost := 3
		switch {
		case d == e.last:
			cost = 1
		case d <= lzvnSmall:
			cost = 2
		}
		if n >= 3 && n-cost > best {
			best, length, distance = n-cost, n, d
		}
		from = int(e.chain[from]) - 1
	}
	return length, distance
}

// emit appends the opcodes for literals and the match of n bytes after them.
func (e *lzvnEncoder) emit(dst, literals []byte, n, distance int) []byte {
	if len(literals) > 3 {
		dst, literals = lzvnLiterals(dst, literals), nil
	}
	l, part := len(literals), min(n, 10)
	if l > 0 {
		part = min(n, 10-2*l) // longer ones are where the opcodes of other forms lie
	}
	switch {
	case distance == e.last && l == 0:
		part = 0
	case distance == e.last:
		dst = append(dst, byte(l<<6|(part-3)<<3|6))
	case distance <= lzvnSmall && n <= part+15:
		dst = append(dst, byte(l<<6|(part-3)<<3|distance>>8), byte(distance))
	case distance <= lzvnMedium:
		part = min(n, 34)
		dst = append(dst, byte(0xa0|l<<3|(part-3)>>2), byte(distance<<2|(part-3)&3), byte(distance>>6))
	default:
		dst = append(dst, byte(l<<6|(part-3)<<3|7), byte(distance), byte(distance>>8))
	}
	dst = append(dst, literals...)
	e.last = distance
	return lzvnMore(dst, n-part)
}

// lzvnMore appends opcodes for n more bytes at the previous distance.
func lzvnMore(dst []byte, n int) []byte {
	for n > 0 {
		if n < 16 {
			return append(dst, 0xf0|byte(n))
		}
		part := min(n, 271)
		dst = append(dst, 0xf0, byte(part-16))
		n -= part
	}
	return dst
}

// lzvnLiterals appends opcodes for literals alone.
func lzvnLiterals(dst, literals []byte) []byte {
	for len(literals) > 0 {
		part := min(len(literals), 271)
		if part < 16 {
			dst = append(dst, 0xe0|byte(part))
		} else {
			dst = append(dst, 0xe0, byte(part-16))
		}
		dst = append(dst, literals[:part]...)
		literals = literals[part:]
	}
	return dst
}
