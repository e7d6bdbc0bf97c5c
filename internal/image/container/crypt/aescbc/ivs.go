package aescbc

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding"
	"encoding/binary"
	"slices"
)

// IVKey makes the IVs of blocks: the first 16 bytes of HMAC-SHA1 of the block's
// number as four big-endian bytes. Its methods may be called at once from many
// goroutines, Wipe excepted. Make one with NewIVKey.
type IVKey struct {
	fill   func(v *IVKey, dst []byte, first uint32)
	states [2][5]uint32 // SHA-1 after the inner and the outer pad of HMAC, for the sets with their own SHA-1
	own    []byte       // the HMAC key, of the generic set only
}

// ivSet is one way to make IVs; the sets of a CPU are listed by supportedIVs,
// the best first.
type ivSet struct {
	name string
	fill func(v *IVKey, dst []byte, first uint32)
}

var genericIVs = ivSet{"generic", (*IVKey).fillGeneric}

// NewIVKey takes an HMAC key of any length. The caller may wipe key afterwards.
func NewIVKey(key []byte) *IVKey { return newIVKey(key, supportedIVs()[0]) }

// newIVKey takes an HMAC key for one set.
func newIVKey(key []byte, use ivSet) *IVKey {
	v := &IVKey{fill: use.fill}
	if use.name == genericIVs.name {
		v.own = slices.Clone(key)
	} else {
		v.states = padStates(key)
	}
	return v
}

// Fill writes the IVs of len(dst)/Size blocks with rising numbers from first;
// after 2^32-1 comes 0.
func (v *IVKey) Fill(dst []byte, first uint32) {
	if len(dst)%Size != 0 {
		panic("aescbc: room for a part of an IV")
	}
	if len(dst) > 0 {
		v.fill(v, dst, first)
	}
}

// Wipe overwrites the key. No other method may be running or be called
// afterwards. What the standard library holds for the generic set is out of
// reach and only let go of.
func (v *IVKey) Wipe() {
	v.states = [2][5]uint32{}
	clear(v.own)
	v.fill = func(*IVKey, []byte, uint32) { panic("aescbc: key was wiped") }
}

// fillGeneric uses the standard library.
func (v *IVKey) fillGeneric(dst []byte, first uint32) {
	h := hmac.New(sha1.New, v.own)
	var number [4]byte
	var sum [sha1.Size]byte
	for i := range len(dst) / Size {
		h.Reset()
		binary.BigEndian.PutUint32(number[:], first+uint32(i))
		h.Write(number[:])
		copy(dst[i*Size:], h.Sum(sum[:0])[:Size])
	}
}

// padStates hashes the two padded keys of HMAC (RFC 2104), the part of every IV
// that is always the same.
func padStates(key []byte) (states [2][5]uint32) {
	var padded [sha1.BlockSize]byte
	if len(key) > len(padded) {
		sum := sha1.Sum(key)
		copy(padded[:], sum[:])
	} else {
		copy(padded[:], key)
	}
	for i, pad := range []byte{0x36, 0x5c} {
		block := padded
		for j := range block {
			block[j] ^= pad
		}
		h := sha1.New()
		h.Write(block[:])
		// The state follows four bytes of version.
		saved, _ := h.(encoding.BinaryMarshaler).MarshalBinary()
		for j := range states[i] {
			states[i][j] = binary.BigEndian.Uint32(saved[4+4*j:])
		}
		h.Reset()
		clear(saved)
		clear(block[:])
	}
	clear(padded[:])
	return states
}
