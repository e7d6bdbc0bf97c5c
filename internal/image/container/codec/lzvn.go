package codec

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
	op, b1, b2 := int(src[0]), 0, 0
	if len(src) > 2 {
		b1, b2 = int(src[1]), int(src[2])
	} else if len(src) > 1 {
		b1 = int(src[1])
	}
	l, m = op>>6, op>>3&7+3 // but for the first two forms
	switch {
	case op >= 0xe0: // literals alone, or with bit 4 a match alone
		size, l = 1, op&15
		if l == 0 {
			size, l = 2, b1+16
		}
		if m = 0; op >= 0xf0 {
			l, m = 0, l
		}
		return size, l, m, 0, size <= len(src)
	case op >= 0xa0 && op < 0xc0:
		size, l, m, d = 3, op>>3&3, (op&7<<2|b1&3)+3, b1>>2|b2<<6
	case op&0xf0 == 0x70 || op&0xf0 == 0xd0:
		return 0, 0, 0, 0, false
	case op&7 == 6: // the previous distance
		return 1, l, m, 0, l > 0
	case op&7 == 7:
		size, d = 3, b1|b2<<8
	default:
		size, d = 2, op&7<<8|b1
	}
	return size, l, m, d, d != 0 && size <= len(src)
}
