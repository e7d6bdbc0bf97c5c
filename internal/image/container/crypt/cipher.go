package crypt

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"

	"dmgbench/internal/image/container/crypt/aescbc"
)

const (
	// chunkBlocks is how many IVs are made and kept together: 4 KiB of them.
	chunkBlocks = 256
	// keptBlocks is how many IVs a new Cipher keeps: those of a band of 8 MiB
	// with blocks of 512 bytes.
	keptBlocks = 16384
	// maxKept bounds the IVs that KeepIVs keeps: 16 MiB, for bands up to 512
	// MiB.
	maxKept = 1 << 20
)

// chunk holds the IVs of chunkBlocks blocks.
type chunk [chunkBlocks * aescbc.Size]byte

// Cipher encrypts and decrypts the blocks of one image: AES-CBC, block by
// block, with an IV that depends on the block's number. Encrypt, Decrypt and
// DecryptSparse may be called at once from many goroutines.
type Cipher struct {
	key     *aescbc.Key
	ivs     *aescbc.IVKey
	block   int
	kept    []atomic.Pointer[chunk] // IVs of the first blocks, made when first asked for
	scratch sync.Pool               // *chunk, for the IVs of all other blocks
}

// newCipher leaves the wiping of k to the caller.
func newCipher(k keys, block int) (*Cipher, error) {
	key, err := aescbc.NewKey(k.aes)
	if err != nil {
		return nil, fmt.Errorf("making the cipher: %w", err)
	}
	c := &Cipher{key: key, ivs: aescbc.NewIVKey(k.hmac), block: block}
	c.KeepIVs(keptBlocks)
	return c, nil
}

// BlockSize is the number of bytes of a block.
func (c *Cipher) BlockSize() int { return c.block }

// KeepIVs makes the cipher keep the IVs of the blocks below blocks, 16 bytes
// each from their first use on, at most 16 MiB in all. In a bundle block
// numbers restart in every band, so that one band's IVs serve all; elsewhere
// they pay only where blocks are used again. A new Cipher keeps those of its
// first 16384 blocks. No other method may be running.
func (c *Cipher) KeepIVs(blocks uint32) {
	c.kept = make([]atomic.Pointer[chunk], (min(blocks, maxKept)+chunkBlocks-1)/chunkBlocks)
}

// Encrypt encrypts the whole blocks src to dst, which may be src and must not
// overlap it otherwise. The first has the number firstBlock, counted from the
// data offset or from the start of the band; numbers wrap after 2^32-1. It
// panics when src is not a multiple of the block, or dst is shorter.
func (c *Cipher) Encrypt(dst, src []byte, firstBlock uint32) {
	c.each(dst, src, firstBlock, c.key.Encrypt)
}

// Decrypt reverses Encrypt.
func (c *Cipher) Decrypt(dst, src []byte, firstBlock uint32) {
	c.each(dst, src, firstBlock, c.key.Decrypt)
}

// DecryptSparse is Decrypt for sparse images and bundles, where blocks that
// were never written are zero bytes on disk: they read as zeros instead of the
// noise that decryption makes of them.
func (c *Cipher) DecryptSparse(dst, src []byte, firstBlock uint32) {
	c.checkBlocks(dst, src)
	for i := 0; i < len(src); {
		hole, end := isZero(src[i:i+c.block]), i+c.block
		for end < len(src) && isZero(src[end:end+c.block]) == hole {
			end += c.block
		}
		if hole {
			clear(dst[i:end])
		} else {
			c.Decrypt(dst[i:end], src[i:end], firstBlock+uint32(i/c.block))
		}
		i = end
	}
}

// checkBlocks panics as documented at Encrypt.
func (c *Cipher) checkBlocks(dst, src []byte) {
	if len(src)%c.block != 0 {
		panic("crypt: partial block")
	}
	if len(dst) < len(src) {
		panic("crypt: output smaller than input")
	}
}

// each runs op on the blocks of one chunk of IVs after the other.
func (c *Cipher) each(dst, src []byte, first uint32, op func(dst, src, ivs []byte, unit int)) {
	c.checkBlocks(dst, src)
	for len(src) > 0 {
		n := min(len(src)/c.block, chunkBlocks-int(first%chunkBlocks))
		ivs, scratch := c.chunk(first, n)
		op(dst[:n*c.block], src[:n*c.block], ivs, c.block)
		if scratch != nil {
			c.scratch.Put(scratch)
		}
		dst, src, first = dst[n*c.block:], src[n*c.block:], first+uint32(n)
	}
}

// chunk returns the IVs of n blocks of one chunk, and what to put back into the
// pool. Two goroutines that miss the same chunk both make it, and one of the
// equal results stays.
func (c *Cipher) chunk(first uint32, n int) (ivs []byte, scratch *chunk) {
	index, within := int(first/chunkBlocks), int(first%chunkBlocks)
	if index >= len(c.kept) {
		scratch, ok := c.scratch.Get().(*chunk)
		if !ok {
			scratch = new(chunk)
		}
		c.ivs.Fill(scratch[:n*aescbc.Size], first)
		return scratch[:n*aescbc.Size], scratch
	}
	kept := c.kept[index].Load()
	if kept == nil {
		kept = new(chunk)
		c.ivs.Fill(kept[:], first-uint32(within))
		c.kept[index].Store(kept)
	}
	return kept[within*aescbc.Size : (within+n)*aescbc.Size], nil
}

// Wipe overwrites the keys and the kept IVs. No other method may be running or
// be called afterwards.
func (c *Cipher) Wipe() {
	c.key.Wipe()
	c.ivs.Wipe()
	for i := range c.kept {
		if kept := c.kept[i].Swap(nil); kept != nil {
			clear(kept[:])
		}
	}
	c.scratch = sync.Pool{}
}

// zeros is as long as a block can be; it is never changed.
var zeros [1 << 16]byte

// isZero reports whether a block, or less, is all zeros.
func isZero(b []byte) bool { return bytes.Equal(b, zeros[:len(b)]) }
