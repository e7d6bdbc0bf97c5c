package codec

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"sync"
)

// Of the match finder: a row of the latest positions for each hash of four
// bytes.
const (
	rowBits   = 15
	rowLength = 4
	skipShift = 7  // misses in a row, as a power of two, after which the finder looks at one position less
	enough    = 48 // bytes of a match that is taken without looking for a better one
	worth     = 8  // least score of a match, see score
)

// lzfseEncoder is the state of one lzfseEncode, pooled: what the match finder
// knows, and the block that it is filling.
type lzfseEncoder struct {
	src   []byte
	out   []byte
	rows  [1 << rowBits][rowLength]uint32
	block lzfseBlock
}

var lzfseEncoders = sync.Pool{New: func() any { return new(lzfseEncoder) }}

// lzfseEncode appends src as an LZFSE stream to dst: bvx2 blocks, or bvx- where
// they do not shrink it, which makes it 12 bytes longer.
func lzfseEncode(dst, src []byte, _ int) ([]byte, error) {
	if len(src) > math.MaxInt32 {
		return nil, ErrIncompressible
	}
	e := lzfseEncoders.Get().(*lzfseEncoder)
	e.src, e.out = src, dst
	e.encode()
	out := e.out
	e.src, e.out = nil, nil
	lzfseEncoders.Put(e)
	if len(out)-len(dst) >= len(src)+8 {
		out = out[:len(dst)]
		out = binary.LittleEndian.AppendUint32(out, magicUncompressed)
		out = binary.LittleEndian.AppendUint32(out, uint32(len(src)))
		out = append(out, src...)
	}
	return binary.LittleEndian.AppendUint32(out, magicEnd), nil
}

// found is a match: length bytes from src[from:].
type found struct{ from, length, score int }

// score estimates the bits that a match saves: what its bytes cost as literals,
// less the bits of its distance.
func score(length, distance int) int { return 6*length - bits.Len(uint(distance)) }

// encode finds the matches of the whole input and writes them block by block.
//
// The best of the latest positions with the same four bytes is taken, unless a
// better match starts at the next byte. The previous distance is tried first,
// since it costs almost no bits. Without matches the steps grow, so that random
// bytes pass quickly.
func (e *lzfseEncoder) encode() {
	clear(e.rows[:])
	e.block.reset()
	src, anchor, last := e.src, 0, 0
	limit := len(src) - 16 // 8 bytes can be read from every position that the finder looks at, and from the next one
	for at := 1; at < limit; {
		m := e.find(at, last)
		if m.score < worth {
			at += 1 + (at-anchor)>>skipShift
			continue
		}
		for m.length < enough && at+1 < limit {
			next := e.find(at+1, last)
			if next.score <= m.score+4 {
				break
			}
			at, m = at+1, next
		}
		distance, from, end := at-m.from, m.from, at+m.length
		for at > anchor && from > 0 && src[at-1] == src[from-1] {
			at, from = at-1, from-1
		}
		e.match(anchor, at-anchor, end-at, distance)
		e.insert(at+1, min(end, limit))
		at, anchor, last = end, end, distance
	}
	e.match(anchor, len(src)-anchor, 0, 0)
	e.flush()
}

// find is the best match at a position, which becomes known; last is the
// previous distance, or 0.
func (e *lzfseEncoder) find(at, last int) (best found) {
	src := e.src
	v := binary.LittleEndian.Uint32(src[at:])
	if last > 0 && at >= last && (binary.LittleEndian.Uint32(src[at-last:])^v)<<8 == 0 {
		n := 3 + common(src[at+3:], src[at-last+3:])
		best = found{at - last, n, 6 * n}
		if n >= enough {
			return best
		}
	}
	row := &e.rows[hash(v)]
	for _, c := range row {
		from := int(c)
		if binary.LittleEndian.Uint32(src[from:]) != v || at-from > maxD || at == from {
			continue
		}
		if end := best.length; end > 8 && at+end < len(src) && src[at+end] != src[from+end] {
			continue
		}
		n := 4 + common(src[at+4:], src[from+4:])
		if s := score(n, at-from); s > best.score {
			best = found{from, n, s}
		}
	}
	remember(row, at)
	return best
}

// remember makes a position the latest one of its row.
func remember(row *[rowLength]uint32, at int) {
	if row[0] != uint32(at) {
		row[3], row[2], row[1], row[0] = row[2], row[1], row[0], uint32(at)
	}
}

// insert makes positions known to the match finder: of a long match only some.
func (e *lzfseEncoder) insert(from, to int) {
	step := 1 + (to-from)>>6
	for at := from; at < to; at += step {
		remember(&e.rows[hash(binary.LittleEndian.Uint32(e.src[at:]))], at)
	}
}

// hash is the row of a position that starts with the four bytes v:
// multiplication by 2^32 divided by the golden ratio (Knuth).
func hash(v uint32) uint32 { return v * 0x9e3779b1 >> (32 - rowBits) }

// match adds l literals from src[anchor:] and m bytes at the distance after
// them to the block, in as many triples as the limits of L and M ask for.
func (e *lzfseEncoder) match(anchor, l, m, distance int) {
	for l > maxL {
		e.triple(anchor, maxL, 0, 0)
		anchor, l = anchor+maxL, l-maxL
	}
	for first := true; first || m > 0; first = false {
		if l == 0 && m == 0 {
			return
		}
		part := min(m, maxM)
		e.triple(anchor, l, part, distance)
		anchor, l, m = anchor+l+part, 0, m-part
	}
}

// triple adds one triple; a full block is written out first. Without a match
// the distance is free: any valid one does, and that of before costs least.
func (e *lzfseEncoder) triple(anchor, l, m, distance int) {
	b := &e.block
	if b.matches == maxMatches || b.literals+l > maxLiterals {
		e.flush()
	}
	if m == 0 {
		distance = max(1, b.distance)
	}
	d := uint32(distance)
	if distance == b.distance {
		d = 0
	}
	b.distance = distance
	// There is room for wide bytes more than the literals.
	if to, from := b.literal[b.literals:], e.src[anchor:]; l <= wide && len(from) >= wide {
		*(*[wide]byte)(to) = *(*[wide]byte)(from)
	} else {
		copy(to, from[:l])
	}
	b.literals += l
	b.raw += l + m
	b.l[b.matches], b.m[b.matches], b.d[b.matches] = uint16(l), uint16(m), d
	b.matches++
}

// flush writes the block and starts another. One that does not shrink stays
// bvx2, as in Apple's encoder: 7-Zip 26.02 fails on a bvx- block that follows
// another one.
func (e *lzfseEncoder) flush() {
	b := &e.block
	if b.matches == 0 {
		return
	}
	e.out = b.append(slices.Grow(e.out, maxSizeV2+b.literals+8*b.matches))
	b.reset()
}
