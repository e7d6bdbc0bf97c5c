package codec

import (
	"encoding/binary"
	"math/bits"
)

// lzfseDecoder is the state of one lzfseDecode, pooled: the tables of the current block
// and its literals.
type lzfseDecoder struct {
	head     lzfseHeader
	l        [lStates]uint64
	m        [mStates]uint64
	d        [dStates]uint64
	literal  [literalStates]uint64
	literals [maxLiterals + wide]byte
}

// compressed decodes the bvx2 block at src[in:] to dst[at:].
func (d *lzfseDecoder) compressed(dst []byte, at int, src []byte, in int) (made, used int, err error) {
	h := &d.head
	if !h.parse(src[in:]) || !h.valid(len(src)-in-h.size) {
		return 0, 0, damaged(in, "bad header")
	}
	raw := int(h.Raw)
	if raw > len(dst)-at {
		return 0, 0, damaged(in, "decodes to more bytes than wanted")
	}
	if !literalTable(&d.literal, h.LiteralFreq[:]) || !valueTable(d.l[:], h.LFreq[:], &lValues) ||
		!valueTable(d.m[:], h.MFreq[:], &mValues) || !valueTable(d.d[:], h.DFreq[:], &dValues) {
		return 0, 0, damaged(in, "frequencies that do not fit")
	}
	// The streams are read backwards, eight bytes at a time: short ones reach
	// into the header in front of them, never before it.
	literalEnd := in + h.size + int(h.LiteralPayload)
	lmdEnd := literalEnd + int(h.LMDPayload)
	if !d.readLiterals(src[in:literalEnd]) {
		return 0, 0, damaged(in, "literals that run out of bits")
	}
	if !d.readMatches(dst[:at+raw], at, src[in:lmdEnd]) {
		return 0, 0, damaged(in, "bad matches")
	}
	return raw, lmdEnd - in, nil
}

// readLiterals decodes the literals from the bit stream that ends with src.
// Four states take turns, and four symbols pull at most 40 bits: one refill
// does for all of them.
func (d *lzfseDecoder) readLiterals(src []byte) bool {
	h, table := &d.head, &d.literal
	s0, s1 := uint64(h.LiteralState[0]), uint64(h.LiteralState[1])
	s2, s3 := uint64(h.LiteralState[2]), uint64(h.LiteralState[3])
	p, used := len(src)-8, uint64(-h.LiteralBits)
	out := d.literals[:h.Literals]
	for len(out) >= 4 {
		p -= int(used >> 3)
		used &= 7
		if p < 0 {
			return false
		}
		acc := binary.LittleEndian.Uint64(src[p:]) << used
		e0, e1 := table[s0&(literalStates-1)], table[s1&(literalStates-1)]
		e2, e3 := table[s2&(literalStates-1)], table[s3&(literalStates-1)]
		acc = bits.RotateLeft64(acc, int(e0&63))
		s0 = acc&(e0>>32) + uint64(uint16(e0>>16))
		acc = bits.RotateLeft64(acc, int(e1&63))
		s1 = acc&(e1>>32) + uint64(uint16(e1>>16))
		acc = bits.RotateLeft64(acc, int(e2&63))
		s2 = acc&(e2>>32) + uint64(uint16(e2>>16))
		acc = bits.RotateLeft64(acc, int(e3&63))
		s3 = acc&(e3>>32) + uint64(uint16(e3>>16))
		used += e0&63 + e1&63 + e2&63 + e3&63
		binary.LittleEndian.PutUint32(out, uint32(e0>>8&255|e1&0xff00|e2<<8&0xff0000|e3<<16&0xff000000))
		out = out[4:]
	}
	return p-int(used>>3)+8 >= 0
}

// readMatches decodes the L, M, D triples from the bit stream that ends with
// src, and carries them out at dst[at:]. It reports whether they are valid and
// fill dst exactly. A triple pulls at most 54 bits: one refill for each.
func (d *lzfseDecoder) readMatches(dst []byte, at int, src []byte) bool {
	h := &d.head
	ls, ms, ds := uint64(h.LState), uint64(h.MState), uint64(h.DState)
	p, used := len(src)-8, uint64(-h.LMDBits)
	literals := d.literals[:h.Literals+wide]
	distance := 0
	for range h.Matches {
		p -= int(used >> 3)
		used &= 7
		if p < 0 {
			return false
		}
		acc := binary.LittleEndian.Uint64(src[p:]) << used
		le, me, de := d.l[ls&(lStates-1)], d.m[ms&(mStates-1)], d.d[ds&(dStates-1)]
		used += le&63 + me&63 + de&63

		var v, l64, m64 uint64
		acc, ls, l64 = pull(acc, le)
		acc, ms, m64 = pull(acc, me)
		_, ds, v = pull(acc, de)
		if v != 0 {
			distance = int(v)
		}
		l, m := int(l64), int(m64)
		if l > len(literals)-wide || l+m > len(dst)-at {
			return false
		}
		if l > 0 {
			if len(dst)-at >= wide {
				*(*[wide]byte)(dst[at:]) = *(*[wide]byte)(literals)
				if l > wide {
					copy(dst[at+wide:at+l], literals[wide:])
				}
			} else {
				copy(dst[at:at+l], literals)
			}
			at, literals = at+l, literals[l:]
		}
		if m > 0 {
			if uint(distance-1) >= uint(at) {
				return false
			}
			copyMatch(dst, at, distance, m)
			at += m
		}
	}
	return at == len(dst) && p-int(used>>3)+8 >= 0
}

// pull takes the bits of an entry of a table for L, M or D from the top of acc,
// and returns the rest, the next state and the value.
func pull(acc, e uint64) (rest, state, value uint64) {
	acc = bits.RotateLeft64(acc, int(e&63))
	x, extra := acc&(1<<(e&63)-1), e>>8&63
	return acc, x>>extra + uint64(uint16(e>>16)), e>>32 + x&(1<<extra-1)
}
