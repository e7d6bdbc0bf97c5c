package codec

import "math/bits"

// values is the meaning of the symbols of one of L, M and D: symbol s is
// base[s] and the next extra[s] bits.
type values struct {
	base  []uint32
	extra []uint8
}

var (
	lValues = makeValues(append(make([]uint8, 16), 2, 3, 5, 8))
	mValues = makeValues(append(make([]uint8, 16), 3, 5, 8, 11))
	dValues = makeValues(fourOfEach(16))

	literalValues = makeValues(make([]uint8, literalSymbols))

	lSymbol = symbolsOf(lValues, maxL)
	mSymbol = symbolsOf(mValues, maxM)
)

// makeValues lines the symbols' ranges up from 0, each of 2^extra values.
func makeValues(extra []uint8) values {
	v := values{base: make([]uint32, len(extra)), extra: extra}
	next := uint32(0)
	for i, e := range extra {
		v.base[i] = next
		next += 1 << e
	}
	return v
}

// fourOfEach is 0 to n-1, each four times.
func fourOfEach(n int) []uint8 {
	extra := make([]uint8, 4*n)
	for i := range extra {
		extra[i] = uint8(i / 4)
	}
	return extra
}

// symbolsOf lists the symbol of each value 0..highest.
func symbolsOf(v values, highest int) []uint8 {
	symbols := make([]uint8, highest+1)
	symbol := 0
	for value := range symbols {
		for symbol+1 < len(v.base) && v.base[symbol+1] <= uint32(value) {
			symbol++
		}
		symbols[value] = uint8(symbol)
	}
	return symbols
}

// dSymbol is the symbol of distance value d, 0..maxD: four symbols for each
// number of extra bits.
func dSymbol(d uint32) uint32 {
	e := uint32(bits.Len32(d+4)) - 3
	return 4*e + (d+4)>>e&3
}

// An entry of a decoding table for literals, from the low bits up: bits to pull
// (6), unused (2), the literal (8), the next state before the pulled bits are
// added (16), the mask of the pulled bits (16). An entry for L, M and D: bits
// to pull, those of state and value together (6), unused (2), those of the
// value (8), the next state likewise (16), the value's base (32).

// literalTable fills table from the frequencies. It reports whether they fit;
// states that no symbol owns decode to literal 0 and state 0.
func literalTable(table *[literalStates]uint64, freq []uint16) bool {
	ok := valueTable(table[:], freq, &literalValues)
	for i, e := range table {
		table[i] = e&0x3f | e>>32<<8 | e&0xffff0000 | (1<<(e&0x3f)-1)<<32
	}
	return ok
}

// valueTable fills table likewise for one of L, M and D; unowned states decode
// to value 0 and state
// 0.
func valueTable(table []uint64, freq []uint16, v *values) bool {
	at, states := 0, uint32(len(table))
	for symbol, f := range freq {
		if f == 0 {
			continue
		}
		if at+int(f) > len(table) {
			return false
		}
		k, j0 := spread(uint32(f), states)
		own := table[at : at+int(f)]
		extra := v.extra[symbol]
		for i := range own {
			j := uint32(i)
			n, next := k, (uint32(f)+j)<<k-states // bits to pull, the lowest next state
			if j >= j0 {
				n, next = k-1, (j-j0)<<(k-1)
			}
			own[j] = uint64(n+uint32(extra)) | uint64(extra)<<8 | uint64(next)<<16 | uint64(v.base[symbol])<<32
		}
		at += int(f)
	}
	clear(table[at:])
	return true
}

// spread returns for a symbol of frequency f among n states how many bits its
// first j0 states pull; the others pull one bit less.
func spread(f, n uint32) (k, j0 uint32) {
	k = uint32(bits.LeadingZeros32(f) - bits.LeadingZeros32(n))
	return k, 2*n>>k - f
}

// pusher is an entry of an encoding table. In state s (0..n−1, kept as S =
// n+s), the symbol pushes nb = (S + bits) >> 16 low bits of S and goes to S =
// next + S>>nb: the two cases of the format in one expression, since n is a
// multiple of 2^nb.
type pusher struct {
	bits uint32
	next int32
}

// pushers fills table from frequencies that add up to n.
func pushers(table []pusher, freq []uint16, n uint32) {
	off := int32(0)
	for symbol, f := range freq {
		if f == 0 {
			continue
		}
		k, _ := spread(uint32(f), n)
		table[symbol] = pusher{bits: k<<16 - uint32(f)<<k, next: int32(n) + off - int32(f)}
		off += int32(f)
	}
}

// normalize scales counts to frequencies that add up to n, where every counted
// symbol keeps at least 1.
func normalize(freq []uint16, counts []uint32, n uint32) {
	total, most := uint64(0), 0
	for i, c := range counts {
		total += uint64(c)
		if c > counts[most] {
			most = i
		}
	}
	clear(freq)
	if total == 0 {
		freq[0] = uint16(n)
		return
	}
	rest := int(n)
	for i, c := range counts {
		if c == 0 {
			continue
		}
		f := max(1, (uint64(c)*uint64(n)+total/2)/total)
		freq[i] = uint16(f)
		rest -= int(f)
	}
	if rest >= 0 || -rest < int(freq[most])/4 {
		freq[most] = uint16(int(freq[most]) + rest)
		return
	}
	for ; rest < 0; rest++ { // take one from the symbol that is the most frequent now
		most = 0
		for i, f := range freq {
			if f > freq[most] {
				most = i
			}
		}
		freq[most]--
	}
}
