package codec

import "encoding/binary"

// lzfseHeader is the header of a bvx1 or bvx2 block: counts, the start states of
// the entropy coder, the number of unused bits in the last byte of either bit
// stream (−7..0), and the frequencies of all symbols.
type lzfseHeader struct {
	lzfseV1
	size int // of the header, in bytes, with its magic
}

// lzfseV1 is the header of a bvx1 block after its magic.
type lzfseV1 struct {
	Raw, Payload, Literals, Matches, LiteralPayload, LMDPayload int32

	LiteralBits            int32
	LiteralState           [4]uint16
	LMDBits                int32
	LState, MState, DState uint16
	LFreq                  [lSymbols]uint16
	MFreq                  [mSymbols]uint16
	DFreq                  [dSymbols]uint16
	LiteralFreq            [literalSymbols]uint16
}

// Lengths of the header without and with the longest frequency table.
const (
	minSizeV2 = 32
	maxSizeV2 = minSizeV2 + ((lSymbols+mSymbols+dSymbols+literalSymbols)*14+7)/8
)

// freqs are the four tables in the order in which the header holds them.
func (h *lzfseHeader) freqs() [4][]uint16 {
	return [4][]uint16{h.LFreq[:], h.MFreq[:], h.DFreq[:], h.LiteralFreq[:]}
}

// parse reads the header at the start of src, of a bvx2 or bvx1 block, and
// reports whether it is complete; valid checks its values.
func (h *lzfseHeader) parse(src []byte) bool {
	le := binary.LittleEndian
	if le.Uint32(src) == magicV1 {
		n, err := binary.Decode(src[4:], le, &h.lzfseV1)
		h.size = 4 + n
		return err == nil
	}
	if len(src) < minSizeV2 {
		return false
	}
	field := func(v uint64, at, bits int) int32 { return int32(v >> at & (1<<bits - 1)) }
	v0, v1, v2 := le.Uint64(src[8:]), le.Uint64(src[16:]), le.Uint64(src[24:])
	h.Raw, h.Literals, h.LiteralPayload = int32(le.Uint32(src[4:])), field(v0, 0, 20), field(v0, 20, 20)
	h.Matches, h.LiteralBits = field(v0, 40, 20), field(v0, 60, 3)-7
	for i := range h.LiteralState {
		h.LiteralState[i] = uint16(field(v1, 10*i, 10))
	}
	h.LMDPayload, h.LMDBits, h.size = field(v1, 40, 20), field(v1, 60, 3)-7, int(uint32(v2))
	h.LState, h.MState, h.DState = uint16(field(v2, 32, 10)), uint16(field(v2, 42, 10)), uint16(field(v2, 52, 10))
	if h.size < minSizeV2 || h.size > maxSizeV2 || h.size > len(src) {
		return false
	}
	return h.readFreqs(src[minSizeV2:h.size])
}

// readFreqs reads the prefix-coded frequencies. No bytes mean tables of zeros,
// as in the reference.
func (h *lzfseHeader) readFreqs(src []byte) bool {
	var acc uint64
	var have, at int
	for _, table := range h.freqs() {
		if len(src) == 0 {
			clear(table)
			continue
		}
		for i := range table {
			for have < 14 && at < len(src) {
				acc |= uint64(src[at]) << have
				have, at = have+8, at+1
			}
			value, n := readFreq(acc)
			if n > have {
				return false
			}
			table[i], acc, have = value, acc>>n, have-n
		}
	}
	return have < 8 && at == len(src)
}

// readFreq decodes the prefix code in the low bits of acc to its value and its
// length in bits.
func readFreq(acc uint64) (value uint16, n int) {
	switch {
	case acc&1 == 0:
		return uint16(acc >> 1 & 1), 2
	case acc&2 == 0:
		return uint16(2 + acc>>2&1), 3
	case acc&4 == 0:
		return uint16(4 + acc>>3&3), 5
	case acc&8 == 0:
		return uint16(8 + acc>>4&15), 8
	}
	return uint16(24 + acc>>4&1023), 14
}

// writeFreq is the inverse of readFreq, for values up to 1047.
func writeFreq(value uint16) (code uint64, n int) {
	v := uint64(value)
	switch {
	case v < 2:
		return v << 1, 2
	case v < 4:
		return 1 + (v-2)<<2, 3
	case v < 8:
		return 3 + (v-4)<<3, 5
	case v < 24:
		return 7 + (v-8)<<4, 8
	}
	return 15 + (v-24)<<4, 14
}

// appendTo appends h as the header of a bvx2 block; it sets h.size.
func (h *lzfseHeader) appendTo(dst []byte) []byte {
	le := binary.LittleEndian
	start := len(dst)
	dst = append(dst, make([]byte, minSizeV2)...)
	var acc uint64
	have := 0
	for _, table := range h.freqs() {
		for _, f := range table {
			code, n := writeFreq(f)
			acc |= code << have
			for have += n; have >= 8; have -= 8 {
				dst = append(dst, byte(acc))
				acc >>= 8
			}
		}
	}
	if have > 0 {
		dst = append(dst, byte(acc))
	}
	h.size = len(dst) - start
	v0 := uint64(h.Literals) | uint64(h.LiteralPayload)<<20 | uint64(h.Matches)<<40 | uint64(h.LiteralBits+7)<<60
	v1 := uint64(h.LMDPayload)<<40 | uint64(h.LMDBits+7)<<60
	for i, s := range h.LiteralState {
		v1 |= uint64(s) << (10 * i)
	}
	v2 := uint64(h.size) | uint64(h.LState)<<32 | uint64(h.MState)<<42 | uint64(h.DState)<<52
	fixed := le.AppendUint32(le.AppendUint32(dst[:start], magicV2), uint32(h.Raw))
	for _, v := range []uint64{v0, v1, v2} {
		fixed = le.AppendUint64(fixed, v)
	}
	return dst
}

// valid reports whether the header keeps the format's limits and its payloads
// are within the rest bytes after it.
func (h *lzfseHeader) valid(rest int) bool {
	within := func(n, most int32) bool { return n >= 0 && n <= most }
	ok := h.Raw >= 0 && within(h.Literals, maxLiterals) && h.Literals%4 == 0 && within(h.Matches, maxMatches) &&
		h.LiteralPayload >= 0 && int(h.LiteralPayload) <= rest &&
		h.LMDPayload >= 0 && int(h.LMDPayload) <= rest-int(h.LiteralPayload) &&
		within(-h.LiteralBits, 7) && within(-h.LMDBits, 7) &&
		h.LState < lStates && h.MState < mStates && h.DState < dStates
	return ok && max(h.LiteralState[0], h.LiteralState[1], h.LiteralState[2], h.LiteralState[3]) < literalStates
}
