package udif

import (
	"context"
	"hash/crc32"
	"math/bits"
	"slices"
	"sync/atomic"
)

// The CRC-32 of two pieces follows from those of each (Mark Adler's method in
// zlib): appending n bytes multiplies the register by x^(8n) modulo the
// polynomial. Polynomials are bit-reversed, as hash/crc32 keeps them: x^0 is
// the top bit.

// polynomial is that of IEEE 802.3, reversed.
const polynomial = 0xEDB88320

// squares holds x^(2^n) modulo the polynomial; x^(2^32) is x again, since the
// polynomial is primitive.
var squares = func() (table [32]uint32) {
	table[0] = 1 << 30
	for n := 1; n < len(table); n++ {
		table[n] = multiply(table[n-1], table[n-1])
	}
	return table
}()

// multiply is a·b modulo the polynomial.
func multiply(a, b uint32) (product uint32) {
	for ; a != 0; a <<= 1 {
		product ^= b & -(a >> 31)
		b = b>>1 ^ polynomial&-(b&1)
	}
	return product
}

// power is x^(8n) modulo the polynomial.
func power(n uint64) uint32 {
	result := uint32(1) << 31
	for ; n != 0; n &= n - 1 {
		result = multiply(squares[(bits.TrailingZeros64(n)+3)%32], result)
	}
	return result
}

// combineCRC is the CRC-32 of a piece with the first value, followed by one of
// length bytes with the second.
func combineCRC(first, second uint32, length int64) uint32 {
	return multiply(power(uint64(length)), first) ^ second
}

// zeroCRC is the CRC-32 of that many zero bytes.
func zeroCRC(length int64) uint32 {
	return ^multiply(power(uint64(length)), 0xFFFFFFFF)
}

// maxSums bounds for how many pieces of an image sums are kept, at 8 bytes
// each: a sparse file may claim any length of raw data.
const maxSums = 16 << 20

// readSums are the CRC-32s of the pieces of an image that were read, cut as
// pass cuts them.
type readSums struct {
	first []int64         // piece of each run
	sums  []atomic.Uint64 // summed and the CRC-32; 0 for a piece that was not read
}

// summed marks a sum that was computed: a CRC-32 may be 0.
const summed = 1 << 32

// KeepSums makes the image sum up what is read from now on, so that VerifyRead
// need not read it again. It must not be called while something reads. An image
// of too many pieces keeps no sums.
func (im *Image) KeepSums() {
	first, pieces := make([]int64, len(im.runs)), int64(0)
	for i := range im.runs {
		first[i] = pieces
		switch r := &im.runs[i]; {
		case r.kind == KindRaw:
			pieces += (r.bytes() + pieceSize - 1) / pieceSize
		case !r.kind.hole():
			pieces++
		}
	}
	if pieces <= maxSums {
		im.sums = &readSums{first: first, sums: make([]atomic.Uint64, pieces)}
	}
}

// keepSum sums up data, which was read of run i from byte inside on: the pieces
// that are whole in it.
func (im *Image) keepSum(i int, inside int64, data []byte) {
	if im.sums == nil {
		return
	}
	r := &im.runs[i]
	if r.kind.Compressed() {
		im.sums.sums[im.sums.first[i]].Store(summed | uint64(crc32.ChecksumIEEE(data)))
		return
	}
	for at := (inside + pieceSize - 1) / pieceSize * pieceSize; ; at += pieceSize {
		end := min(at+pieceSize, r.bytes())
		if at >= end || end > inside+int64(len(data)) {
			return
		}
		sum := crc32.ChecksumIEEE(data[at-inside : end-inside])
		im.sums.sums[im.sums.first[i]+at/pieceSize].Store(summed | uint64(sum))
	}
}

// keptSum is the sum of the piece of run i at byte inside, if that was read.
func (im *Image) keptSum(i int, inside int64) (sum uint32, ok bool) {
	if im.sums == nil || im.runs[i].kind.hole() {
		return 0, false
	}
	kept := im.sums.sums[im.sums.first[i]+inside/pieceSize].Load()
	return uint32(kept), kept&summed != 0
}

// VerifyRead is Verify after the device was read with KeepSums: only what was
// not is read, and the data fork only where a region has no checksum that is
// known.
func (im *Image) VerifyRead(ctx context.Context, o StreamOptions) (*Report, error) {
	fork := len(im.listed) == 0 || slices.ContainsFunc(im.listed, func(g *Region) bool {
		return g.Checksum.Type != ChecksumCRC32 && g.Checksum.Type != ChecksumMD5
	})
	return im.verify(ctx, o, fork)
}
