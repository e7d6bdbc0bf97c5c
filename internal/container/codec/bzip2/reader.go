package bzip2

import "encoding/binary"

// reader reads bits, highest first: acc holds the next have of them at its top, at is behind them. Behind its input it
// reads zeros.
type reader struct {
	src  []byte
	at   int
	acc  uint64
	have uint
}

// refill takes input in until at least 56 bits are there.
func (r *reader) refill() {
	if len(r.src)-r.at >= 8 {
		r.acc |= binary.BigEndian.Uint64(r.src[r.at:]) >> (r.have & 63)
		r.at += int((63 - r.have) >> 3)
		r.have |= 56
		return
	}
	for ; r.have < 56; r.have += 8 {
		if r.at < len(r.src) {
			r.acc |= uint64(r.src[r.at]) << (56 - r.have)
		}
		r.at++
	}
}

// take reads n bits, 1 ≤ n ≤ 32.
func (r *reader) take(n uint) uint32 {
	if r.have < n {
		r.refill()
	}
	v := uint32(r.acc >> (64 - n))
	r.acc, r.have = r.acc<<n, r.have-n
	return v
}

// over reports whether more was read than there was.
func (r *reader) over() bool { return r.at-int(r.have>>3) > len(r.src) }

// sums are the tables of the CRC-32 of bzip2, which takes bits highest first, for eight bytes at once.
var sums = func() (tables [8][256]uint32) {
	for i := range tables[0] {
		sum := uint32(i) << 24
		for range 8 {
			carry := sum >> 31
			sum = sum<<1 ^ carry*0x04c11db7
		}
		tables[0][i] = sum
	}
	for k := 1; k < len(tables); k++ {
		for i, sum := range tables[k-1] {
			tables[k][i] = sum<<8 ^ tables[0][sum>>24]
		}
	}
	return tables
}()

func checksum(src []byte) uint32 {
	sum := ^uint32(0)
	for ; len(src) >= 8; src = src[8:] {
		v := binary.BigEndian.Uint64(src) ^ uint64(sum)<<32
		sum = sums[7][v>>56] ^ sums[6][v>>48&255] ^ sums[5][v>>40&255] ^ sums[4][v>>32&255] ^
			sums[3][v>>24&255] ^ sums[2][v>>16&255] ^ sums[1][v>>8&255] ^ sums[0][v&255]
	}
	for _, b := range src {
		sum = sum<<8 ^ sums[0][byte(sum>>24)^b]
	}
	return ^sum
}
