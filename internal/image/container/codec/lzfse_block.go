package codec

import "encoding/binary"

// lzfseBlock collects the triples and literals of one bvx2 block.
type lzfseBlock struct {
	raw      int // bytes that it decodes to
	literals int
	matches  int
	distance int // of the last match in this block; 0 before the first
	l, m     [maxMatches]uint16
	d        [maxMatches]uint32
	literal  [maxLiterals + wide]byte

	head                   lzfseHeader
	counts                 [4][literalSymbols]uint32
	lPush                  [lSymbols]pusher
	mPush                  [mSymbols]pusher
	dPush                  [dSymbols]pusher
	literalPush            [literalSymbols]pusher
	literalStream          [maxLiterals*10/8 + 16]byte
	matchStream            [maxMatches*7 + 24]byte
	lSymbol, mSymbol, dSym [maxMatches]uint8
}

// reset empties the block.
func (b *lzfseBlock) reset() {
	b.raw, b.literals, b.matches, b.distance = 0, 0, 0, 0
}

// append appends the block, as bvx2, to dst.
func (b *lzfseBlock) append(dst []byte) []byte {
	for b.literals%4 != 0 { // maxLiterals is a multiple of four, so there is room
		b.literal[b.literals] = b.literal[b.literals-1]
		b.literals++
	}
	h := &b.head
	h.Raw, h.Literals, h.Matches = int32(b.raw), int32(b.literals), int32(b.matches)
	b.countMatches()
	b.countLiterals()
	literals := b.pushLiterals()
	matches := b.pushMatches()
	h.LiteralPayload, h.LMDPayload = int32(len(literals)), int32(len(matches))
	dst = h.appendTo(dst)
	return append(append(dst, literals...), matches...)
}

// countMatches finds the symbols of all triples, and from how often each occurs
// the tables.
func (b *lzfseBlock) countMatches() {
	h := &b.head
	var l, m, d [dSymbols]uint32
	for i := range b.matches {
		ls, ms, ds := lSymbol[b.l[i]], mSymbol[b.m[i]], uint8(dSymbol(b.d[i]))
		b.lSymbol[i], b.mSymbol[i], b.dSym[i] = ls, ms, ds
		l[ls&63]++
		m[ms&63]++
		d[ds&63]++
	}
	normalize(h.LFreq[:], l[:lSymbols], lStates)
	normalize(h.MFreq[:], m[:mSymbols], mStates)
	normalize(h.DFreq[:], d[:], dStates)
	pushers(b.lPush[:], h.LFreq[:], lStates)
	pushers(b.mPush[:], h.MFreq[:], mStates)
	pushers(b.dPush[:], h.DFreq[:], dStates)
}

// countLiterals counts in four tables in turn: repeated bytes would otherwise
// wait for each other's increments.
func (b *lzfseBlock) countLiterals() {
	clear(b.counts[:])
	c := &b.counts
	for s := b.literal[:b.literals]; len(s) >= 4; s = s[4:] {
		c[0][s[0]]++
		c[1][s[1]]++
		c[2][s[2]]++
		c[3][s[3]]++
	}
	for i := range c[0] {
		c[0][i] += c[1][i] + c[2][i] + c[3][i]
	}
	normalize(b.head.LiteralFreq[:], c[0][:], literalStates)
	pushers(b.literalPush[:], b.head.LiteralFreq[:], literalStates)
}

// pushLiterals encodes the literals, last first, with four states in turn: 40
// bits at most between two flushes.
func (b *lzfseBlock) pushLiterals() []byte {
	table := &b.literalPush
	var acc uint64
	var have, out int
	s0, s1, s2, s3 := uint32(literalStates), uint32(literalStates), uint32(literalStates), uint32(literalStates)
	for s := b.literal[:b.literals]; len(s) >= 4; s = s[:len(s)-4] {
		four := s[len(s)-4:]
		e3, e2, e1, e0 := table[four[3]], table[four[2]], table[four[1]], table[four[0]]
		n3, n2, n1, n0 := (s3+e3.bits)>>16, (s2+e2.bits)>>16, (s1+e1.bits)>>16, (s0+e0.bits)>>16
		acc |= uint64(s3&(1<<(n3&31)-1)) << (have & 63)
		have += int(n3)
		acc |= uint64(s2&(1<<(n2&31)-1)) << (have & 63)
		have += int(n2)
		acc |= uint64(s1&(1<<(n1&31)-1)) << (have & 63)
		have += int(n1)
		acc |= uint64(s0&(1<<(n0&31)-1)) << (have & 63)
		have += int(n0)
		s3, s2 = uint32(int32(s3>>(n3&31))+e3.next), uint32(int32(s2>>(n2&31))+e2.next)
		s1, s0 = uint32(int32(s1>>(n1&31))+e1.next), uint32(int32(s0>>(n0&31))+e0.next)
		binary.LittleEndian.PutUint64(b.literalStream[out:], acc)
		out += have >> 3
		acc >>= have & 0x38
		have &= 7
	}
	b.head.LiteralState = [4]uint16{uint16(s0 - literalStates), uint16(s1 - literalStates),
		uint16(s2 - literalStates), uint16(s3 - literalStates)}
	return finish(b.literalStream[:], out, acc, have, &b.head.LiteralBits)
}

// pushMatches encodes the triples, last first: 54 bits at most between two
// flushes. The stream starts with eight zero bytes, so that a decoder that
// reads it backwards may read too far.
func (b *lzfseBlock) pushMatches() []byte {
	var acc uint64
	var have int
	ls, ms, ds := uint32(lStates), uint32(mStates), uint32(dStates)
	clear(b.matchStream[:8])
	out := 8
	for i := b.matches - 1; i >= 0; i-- {
		symbol := b.dSym[i] & (dSymbols - 1)
		e := b.dPush[symbol]
		acc |= uint64(b.d[i]-dValues.base[symbol]) << (have & 63)
		have += int(symbol >> 2)
		acc, have, ds = push(acc, have, ds, e)

		symbol = b.mSymbol[i]
		e = b.mPush[symbol]
		acc |= uint64(uint32(b.m[i])-mValues.base[symbol]) << (have & 63)
		have += int(mValues.extra[symbol])
		acc, have, ms = push(acc, have, ms, e)

		symbol = b.lSymbol[i]
		e = b.lPush[symbol]
		acc |= uint64(uint32(b.l[i])-lValues.base[symbol]) << (have & 63)
		have += int(lValues.extra[symbol])
		acc, have, ls = push(acc, have, ls, e)

		binary.LittleEndian.PutUint64(b.matchStream[out:], acc)
		out += have >> 3
		acc >>= have & 0x38
		have &= 7
	}
	b.head.LState, b.head.MState, b.head.DState = uint16(ls-lStates), uint16(ms-mStates), uint16(ds-dStates)
	return finish(b.matchStream[:], out, acc, have, &b.head.LMDBits)
}

// push encodes one symbol in state s (kept with the number of states added, see
// pusher).
func push(acc uint64, have int, s uint32, e pusher) (uint64, int, uint32) {
	n := (s + e.bits) >> 16
	acc |= uint64(s&(1<<(n&31)-1)) << (have & 63)
	return acc, have + int(n), uint32(int32(s>>(n&31)) + e.next)
}

// finish writes the last bits of a stream, and to unused minus the number of
// bits that its last byte has left.
func finish(stream []byte, out int, acc uint64, have int, unused *int32) []byte {
	*unused = 0
	if have > 0 {
		stream[out] = byte(acc)
		out++
		*unused = int32(have - 8)
	}
	return stream[:out]
}
