package inflate

import "encoding/binary"

// Room that the fast loop needs in front of it: for what it takes in and puts out between two looks at the bounds.
const (
	wide     = 16
	fastIn   = 16
	fastOut  = 258 + 3 + wide + 8
	bitsKept = 56
)

// fast decodes symbols as long as there is room on both sides. It reports the end of the block, and what is wrong.
//
// After a refill there are at least 56 bits: enough for three literals of the first table, or for a length with its
// extra bits (20) and a distance with its (28).
func (d *decoder) fast() (done bool, cause string) {
	dst, src, out, in, acc, have := d.dst, d.src, d.out, d.in, d.acc, d.have
	for len(dst)-out >= fastOut && len(src)-in >= fastIn {
		acc |= binary.LittleEndian.Uint64(src[in:]) << (have & 63)
		in += int((63 - have) >> 3)
		have |= bitsKept
		e := d.literals[acc&(1<<literalBits-1)]
		if e&literal != 0 {
			acc, have = acc>>(e&63), have-uint(e&63)
			dst[out] = byte(e >> 16)
			e = d.literals[acc&(1<<literalBits-1)]
			if e&literal != 0 {
				acc, have = acc>>(e&63), have-uint(e&63)
				dst[out+1] = byte(e >> 16)
				e = d.literals[acc&(1<<literalBits-1)]
				if e&literal != 0 {
					acc, have = acc>>(e&63), have-uint(e&63)
					dst[out+2] = byte(e >> 16)
					out += 3
					continue
				}
				out++
			}
			out++
			acc |= binary.LittleEndian.Uint64(src[in:]) << (have & 63)
			in += int((63 - have) >> 3)
			have |= bitsKept
		}
		if e&exceptional != 0 {
			if e&subtable != 0 {
				acc, have = acc>>literalBits, have-literalBits
				e = d.literals[e>>16+uint32(acc)&(1<<(e>>8&15)-1)]
			}
			if e&literal != 0 {
				acc, have = acc>>(e&63), have-uint(e&63)
				dst[out] = byte(e >> 16)
				out++
				continue
			}
			if e&endOfBlock != 0 {
				acc, have = acc>>(e&63), have-uint(e&63)
				done = true
				break
			}
			if e&exceptional != 0 {
				cause = "a code that stands for nothing"
				break
			}
		}
		length := int(e>>16) + int(acc&(1<<(e&63)-1)>>(e>>8&15))
		acc, have = acc>>(e&63), have-uint(e&63)

		e = d.distances[acc&(1<<distanceBits-1)]
		if e&exceptional != 0 {
			if e&subtable != 0 {
				acc, have = acc>>distanceBits, have-distanceBits
				e = d.distances[e>>16+uint32(acc)&(1<<(e>>8&15)-1)]
			}
			if e&exceptional != 0 {
				cause = "a code that stands for nothing"
				break
			}
		}
		distance := int(e>>16) + int(acc&(1<<(e&63)-1)>>(e>>8&15))
		acc, have = acc>>(e&63), have-uint(e&63)
		if distance > out {
			cause = "a match from before the start"
			break
		}
		copyMatch(dst, out, distance, length)
		out += length
	}
	d.out, d.in, d.acc, d.have = out, in, acc&(1<<have-1), have
	return done, cause
}

// copyMatch copies n bytes from distance back; where they overlap, they repeat. It may write up to wide bytes more.
func copyMatch(dst []byte, out, distance, n int) {
	from := out - distance
	if distance >= wide {
		for end := out + n; ; {
			*(*[wide]byte)(dst[out:]) = *(*[wide]byte)(dst[from:])
			if out, from = out+wide, from+wide; out >= end {
				return
			}
		}
	}
	if distance >= 8 {
		for end := out + n; ; {
			binary.LittleEndian.PutUint64(dst[out:], binary.LittleEndian.Uint64(dst[from:]))
			if out, from = out+8, from+8; out >= end {
				return
			}
		}
	}
	if distance == 1 {
		pattern := uint64(dst[from]) * 0x0101010101010101
		for end := out + n; out < end; out += 8 {
			binary.LittleEndian.PutUint64(dst[out:], pattern)
		}
		return
	}
	for end := out + n; out < end; out++ {
		dst[out] = dst[out-distance]
	}
}
