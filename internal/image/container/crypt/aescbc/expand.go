package aescbc

import (
	"encoding/binary"
	"math/bits"
)

// sbox is the substitution table of AES, FIPS 197 section 5.1.1, computed from
// its definition: the inverse in GF(2^8), then an affine map.
var sbox = func() (box [256]byte) {
	p, q := byte(1), byte(1)
	for {
		p ^= double(p) // p runs through all elements but 0 as powers of 3, q through their inverses
		q ^= q << 1
		q ^= q << 2
		q ^= q << 4
		if q&0x80 != 0 {
			q ^= 0x09
		}
		rotate := bits.RotateLeft8
		box[p] = q ^ rotate(q, 1) ^ rotate(q, 2) ^ rotate(q, 3) ^ rotate(q, 4) ^ 0x63
		if p == 1 {
			break
		}
	}
	box[0] = 0x63
	return box
}()

// double multiplies by x in GF(2^8) modulo x^8+x^4+x^3+x+1.
func double(b byte) byte { return b<<1 ^ b>>7*0x1b }

// expand fills both schedules as in FIPS 197, section 5.2. The standard library
// has the same code, but does not export its round keys. The table look-ups
// depend on the key; this happens once for each image that is opened.
func (k *Key) expand(key []byte) {
	words, total := len(key)/4, (k.rounds+1)*4
	var w [60]uint32
	for i := range words {
		w[i] = binary.BigEndian.Uint32(key[4*i:])
	}
	rcon := byte(1)
	for i := words; i < total; i++ {
		t := w[i-1]
		switch {
		case i%words == 0:
			t = substitute(bits.RotateLeft32(t, 8)) ^ uint32(rcon)<<24
			rcon = double(rcon)
		case words > 6 && i%words == 4:
			t = substitute(t)
		}
		w[i] = w[i-words] ^ t
	}
	for i, word := range w[:total] {
		binary.BigEndian.PutUint32(k.enc[4*i:], word)
		round, column := i/4, i%4
		if round > 0 && round < k.rounds {
			word = unmix(word)
		}
		binary.BigEndian.PutUint32(k.dec[(k.rounds-round)*Size+4*column:], word)
	}
	clear(w[:])
}

// substitute applies the table to each byte of a word.
func substitute(w uint32) uint32 {
	return uint32(sbox[w>>24])<<24 | uint32(sbox[w>>16&0xff])<<16 | uint32(sbox[w>>8&0xff])<<8 | uint32(sbox[w&0xff])
}

// unmix is InvMixColumns on one column: MixColumns three times over, since its
// fourth power is the identity.
func unmix(w uint32) uint32 {
	for range 3 {
		var d uint32
		for shift := 0; shift < 32; shift += 8 {
			d |= uint32(double(byte(w>>shift))) << shift
		}
		rotate := bits.RotateLeft32
		w = d ^ rotate(d^w, 8) ^ rotate(w, 16) ^ rotate(w, 24)
	}
	return w
}
