package udif

import "math/bits"

// The CRC-32 of two pieces follows from those of each (Mark Adler's method in zlib): appending n
// bytes multiplies the register by x^(8n) modulo the polynomial. Polynomials are bit-reversed, as
// hash/crc32 keeps them: x^0 is the top bit.

// polynomial is that of IEEE 802.3, reversed.
const polynomial = 0xEDB88320

// squares holds x^(2^n) modulo the polynomial; x^(2^32) is x again, since the polynomial is
// primitive.
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

// combineCRC is the CRC-32 of a piece with the first value, followed by one of length bytes with
// the second.
func combineCRC(first, second uint32, length int64) uint32 {
	return multiply(power(uint64(length)), first) ^ second
}

// zeroCRC is the CRC-32 of that many zero bytes.
func zeroCRC(length int64) uint32 {
	return ^multiply(power(uint64(length)), 0xFFFFFFFF)
}
