package udif

import (
	"hash/crc32"
	"math/bits"
	"sync"
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

// maxSums bounds for how many pieces of an image sums are kept, at some 50 bytes
// each: a sparse file may claim any length of raw data.
const maxSums = 4 << 20

// readSums are the CRC-32s of the pieces of an image that were read, by the
// byte of the device at which the piece, cut as pass cuts them, starts.
type readSums struct {
	mu   sync.Mutex
	sums map[int64]uint32
}

// KeepSums makes the image sum up what is read from now on, so that Verify need
// not read it again. It must not be called while something reads.
func (im *Image) KeepSums() { im.sums = &readSums{sums: map[int64]uint32{}} }

// keepSum sums up data, which was read of run r from byte inside on: the pieces
// that are whole in it.
func (im *Image) keepSum(r *run, inside int64, data []byte) {
	if im.sums == nil {
		return
	}
	step := r.pieceLength()
	for at := (inside + step - 1) / step * step; ; at += step {
		end := min(at+step, r.bytes())
		if at >= end || end > inside+int64(len(data)) {
			return
		}
		sum := crc32.ChecksumIEEE(data[at-inside : end-inside])
		im.sums.mu.Lock()
		if len(im.sums.sums) < maxSums {
			im.sums.sums[r.deviceOffset()+at] = sum
		}
		im.sums.mu.Unlock()
	}
}

// keptSum is the sum of the piece that starts at a byte of the device, if that
// was read.
func (im *Image) keptSum(off int64) (sum uint32, ok bool) {
	if im.sums == nil {
		return 0, false
	}
	im.sums.mu.Lock()
	defer im.sums.mu.Unlock()
	sum, ok = im.sums.sums[off]
	return sum, ok
}
