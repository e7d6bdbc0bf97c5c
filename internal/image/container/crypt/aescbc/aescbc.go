// Package aescbc does the two things an encrypted image needs for every block:
// AES-CBC over many independent blocks at once, and the IV of each block, the
// first 16 bytes of HMAC-SHA1 of its number. CBC chains within a block only, so
// blocks are interleaved until the AES units are full; a CPU without such units
// is served by the standard library.
//
// It holds all assembly of the module and knows no headers, no key wrapping and
// no passphrases (package crypt does). It refuses partial blocks, and slices
// that overlap without being the same: both are mistakes of the caller and
// panic.
package aescbc

import (
	"crypto/aes"
	"crypto/cipher"
	"fmt"
)

// Size is the length in bytes of an AES block, and of an IV.
const Size = aes.BlockSize

// kernel encrypts or decrypts len(ivs)/Size blocks of unit bytes each from src
// to dst, block i with ivs[i*Size:]. dst and src are exactly that long and
// either the same memory or disjoint; unit is a positive multiple of Size.
type kernel func(k *Key, dst, src, ivs []byte, unit int)

// set is one way to do the work; the sets of a CPU are listed by supported, the
// best first.
type set struct {
	name             string
	encrypt, decrypt kernel
}

var generic = set{"generic", genericKernel(cipher.NewCBCEncrypter), genericKernel(cipher.NewCBCDecrypter)}

// Key is an expanded AES key. Its methods may be called at once from many
// goroutines, Wipe excepted. Make one with NewKey: the zero Key has no key.
type Key struct {
	rounds int
	enc    [15 * Size]byte // round keys in the order of encryption
	dec    [15 * Size]byte // round keys of the equivalent inverse cipher in the order of decryption (FIPS 197, 5.3.5)
	use    set
	block  cipher.Block // of the generic set only
}

// NewKey expands key, of 16, 24 or 32 bytes. The caller may wipe key
// afterwards.
func NewKey(key []byte) (*Key, error) { return newKey(key, supported()[0]) }

// newKey expands a key for one set.
func newKey(key []byte, use set) (*Key, error) {
	k := &Key{use: use, rounds: len(key)/4 + 6}
	var err error
	switch {
	case len(key) != 16 && len(key) != 24 && len(key) != 32:
		err = aes.KeySizeError(len(key))
	case use.name == generic.name:
		k.block, err = aes.NewCipher(key)
	default:
		k.expand(key)
	}
	if err != nil {
		return nil, fmt.Errorf("expanding an AES key: %w", err)
	}
	return k, nil
}

// Encrypt encrypts len(src)/unit blocks of unit bytes, each with its own IV in
// ivs. dst may be src.
func (k *Key) Encrypt(dst, src, ivs []byte, unit int) {
	if n := check(dst, src, ivs, unit); n > 0 {
		k.use.encrypt(k, dst[:len(src)], src, ivs[:n*Size], unit)
	}
}

// Decrypt reverses Encrypt. dst may be src.
func (k *Key) Decrypt(dst, src, ivs []byte, unit int) {
	if n := check(dst, src, ivs, unit); n > 0 {
		k.use.decrypt(k, dst[:len(src)], src, ivs[:n*Size], unit)
	}
}

// check returns the number of blocks, and panics for the mistakes in the
// package comment: an assembly loop must never see lengths that do not fit.
func check(dst, src, ivs []byte, unit int) int {
	switch {
	case unit <= 0 || unit%Size != 0:
		panic("aescbc: block length is not a multiple of 16")
	case len(src)%unit != 0:
		panic("aescbc: partial block")
	case len(dst) < len(src):
		panic("aescbc: output smaller than input")
	case len(ivs)/Size < len(src)/unit:
		panic("aescbc: fewer IVs than blocks")
	case overlap(dst[:len(src)], src):
		panic("aescbc: input and output overlap")
	}
	return len(src) / unit
}

// Wipe overwrites the key. No other method may be running or be called
// afterwards. What the standard library expanded for the generic set is out of
// reach and only let go of.
func (k *Key) Wipe() {
	clear(k.enc[:])
	clear(k.dec[:])
	k.rounds, k.block, k.use = 0, nil, wiped
}

// wiped makes the use of a wiped key loud instead of encrypting with zeros.
var wiped = set{"wiped", useWiped, useWiped}

func useWiped(*Key, []byte, []byte, []byte, int) { panic("aescbc: key was wiped") }
