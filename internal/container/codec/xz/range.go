package xz

import "encoding/binary"

// rangeDecoder is the binary range coder. Behind its input it reads zeros, and remembers that it did.
type rangeDecoder struct {
	rng, code uint32
	src       []byte
	at        int
}

// begin starts on src, whose first byte is always zero.
func (r *rangeDecoder) begin(src []byte) bool {
	if len(src) < 5 || src[0] != 0 {
		return false
	}
	*r = rangeDecoder{rng: 1<<32 - 1, code: binary.BigEndian.Uint32(src[1:]), src: src, at: 5}
	return true
}

// over reports whether more was read than there was.
func (r *rangeDecoder) over() bool { return r.at > len(r.src) }

// finished reports whether all input was used up and nothing is left in the coder, as at the end of every stream.
func (r *rangeDecoder) finished() bool { return r.at == len(r.src) && r.code == 0 }

// shift takes the next byte of input in.
func (r *rangeDecoder) shift() {
	r.rng <<= 8
	r.code <<= 8
	if r.at < len(r.src) {
		r.code |= uint32(r.src[r.at])
	}
	r.at++
}

// bit decodes one bit and adapts its probability.
func (r *rangeDecoder) bit(p *uint16) (bit uint32) {
	prob := uint32(*p)
	bound := r.rng >> 11 * prob
	if r.code < bound {
		r.rng = bound
		*p = uint16(prob + (probOne-prob)>>probShift)
	} else {
		r.rng -= bound
		r.code -= bound
		*p = uint16(prob - prob>>probShift)
		bit = 1
	}
	if r.rng < topValue {
		r.shift()
	}
	return bit
}

// tree decodes a symbol of as many bits as the table has levels (its length is a power of two), highest bit first.
// The coder's state is kept in variables of its own meanwhile: this loop is where decoding spends its time.
func (r *rangeDecoder) tree(probs []uint16) uint32 {
	rng, code, at, src := r.rng, r.code, r.at, r.src
	i := uint32(1)
	for int(i) < len(probs) {
		prob := uint32(probs[i])
		bound := rng >> 11 * prob
		if code < bound {
			rng = bound
			probs[i] = uint16(prob + (probOne-prob)>>probShift)
			i <<= 1
		} else {
			rng, code = rng-bound, code-bound
			probs[i] = uint16(prob - prob>>probShift)
			i = i<<1 | 1
		}
		if rng < topValue {
			rng, code = rng<<8, code<<8
			if at < len(src) {
				code |= uint32(src[at])
			}
			at++
		}
	}
	r.rng, r.code, r.at = rng, code, at
	return i - uint32(len(probs))
}

// matched decodes a literal under the byte that was expected: as long as the bits agree, they choose other
// probabilities.
func (r *rangeDecoder) matched(probs *[0x300]uint16, expected byte) byte {
	rng, code, at, src := r.rng, r.code, r.at, r.src
	i, e, offset := uint32(1), uint32(expected), uint32(0x100)
	for i < 0x100 {
		e <<= 1
		bit := e & offset
		p := &probs[offset+bit+i]
		prob := uint32(*p)
		bound := rng >> 11 * prob
		if code < bound {
			rng = bound
			*p = uint16(prob + (probOne-prob)>>probShift)
			i <<= 1
			offset &^= bit
		} else {
			rng, code = rng-bound, code-bound
			*p = uint16(prob - prob>>probShift)
			i = i<<1 | 1
			offset &= bit
		}
		if rng < topValue {
			rng, code = rng<<8, code<<8
			if at < len(src) {
				code |= uint32(src[at])
			}
			at++
		}
	}
	r.rng, r.code, r.at = rng, code, at
	return byte(i)
}

// reverse decodes n bits, lowest first.
func (r *rangeDecoder) reverse(probs []uint16, n uint32) (v uint32) {
	i := uint32(1)
	for k := range n {
		bit := r.bit(&probs[i])
		i = i<<1 | bit
		v |= bit << k
	}
	return v
}

// direct decodes n bits of equal probability.
func (r *rangeDecoder) direct(n uint32) (v uint32) {
	for range n {
		r.rng >>= 1
		r.code -= r.rng
		t := 0 - r.code>>31
		r.code += r.rng & t
		if r.rng < topValue {
			r.shift()
		}
		v = v<<1 + t + 1
	}
	return v
}

// length decodes the length of a match.
func (r *rangeDecoder) length(l *lengths, pos uint) int {
	if r.bit(&l.choice) == 0 {
		return minMatch + int(r.tree(l.low[pos][:]))
	}
	if r.bit(&l.choice2) == 0 {
		return minMatch + 8 + int(r.tree(l.mid[pos][:]))
	}
	return minMatch + 16 + int(r.tree(l.high[:]))
}
