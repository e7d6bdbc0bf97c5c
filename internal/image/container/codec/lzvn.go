package codec

import "encoding/binary"

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
	case op >= 0xe0: // literals alone, or with bit 4 a match alone
		n := op & 15
		if size = 1; n == 0 {
			if size = 2; len(src) < 2 {
				return 0, 0, 0, 0, false
			}
			n = int(src[1]) + 16
		}
		if op >= 0xf0 {
			return size, 0, n, 0, true
		}
		return size, n, 0, 0, true
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
