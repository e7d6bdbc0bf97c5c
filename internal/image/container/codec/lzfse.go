package codec

import (
	"encoding/binary"
	"sync"
)

// A stream of LZFSE is a sequence of blocks that ends with bvx$: bvx2, bvx1
// (the same with a header that is not packed, which no known encoder writes),
// LZVN (bvxn) or stored bytes (bvx-). The code is written from docs/formats.md
// and the description of the format alone. The magic numbers are as read from
// the first four bytes little-endian.
const (
	magicEnd          = 0x24787662 // bvx$
	magicUncompressed = 0x2d787662 // bvx-
	magicV1           = 0x31787662 // bvx1
	magicV2           = 0x32787662 // bvx2
	magicLZVN         = 0x6e787662 // bvxn
)

// Limits of the format (docs/formats.md, LZFSE).
const (
	lStates, mStates, dStates, literalStates     = 64, 64, 256, 1024
	lSymbols, mSymbols, dSymbols, literalSymbols = 20, 20, 64, 256

	maxMatches  = 10000
	maxLiterals = 40000
	maxL        = 315
	maxM        = 2359
	maxD        = 262139 // the longest distance, in bytes
)

var lzfseDecoders = sync.Pool{New: func() any { return new(lzfseDecoder) }}

// lzfseDecode decodes the stream at the start of src. Bytes after the end mark
// are ignored. It takes time proportional to len(dst) + len(src).
func lzfseDecode(dst, src []byte) (int, error) {
	d := lzfseDecoders.Get().(*lzfseDecoder)
	defer lzfseDecoders.Put(d)
	at, in := 0, 0
	for {
		if len(src)-in < 4 {
			return at, damaged(in, "no end mark")
		}
		magic := binary.LittleEndian.Uint32(src[in:])
		if magic == magicEnd {
			return at, nil
		}
		decode := d.simple
		if magic == magicV1 || magic == magicV2 {
			decode = d.compressed
		}
		made, used, err := decode(dst, at, src, in)
		if err != nil {
			return at, err
		}
		at, in = at+made, in+used
	}
}

// simple decodes the bvxn or bvx- block at src[in:] to dst[at:]. It returns how
// many bytes it has written and read.
func (d *lzfseDecoder) simple(dst []byte, at int, src []byte, in int) (made, used int, err error) {
	le, magic := binary.LittleEndian, binary.LittleEndian.Uint32(src[in:])
	size := map[uint32]int{magicUncompressed: 8, magicLZVN: 12}[magic]
	if size == 0 {
		return 0, 0, damaged(in, "unknown kind of block")
	}
	if len(src)-in < size {
		return 0, 0, damaged(in, "header cut short")
	}
	raw := uint64(le.Uint32(src[in+4:]))
	payload := raw
	if magic == magicLZVN {
		payload = uint64(le.Uint32(src[in+8:]))
	}
	if raw > uint64(len(dst)-at) {
		return 0, 0, damaged(in, "decodes to more bytes than wanted")
	}
	if payload > uint64(len(src)-in-size) {
		return 0, 0, damaged(in, "payload cut short")
	}
	out, body := dst[:at+int(raw)], src[in+size:][:payload]
	if magic == magicUncompressed {
		copy(out[at:], body)
	} else if !decodeLZVN(out, at, body) {
		return 0, 0, damaged(in, "bad LZVN payload")
	}
	return int(raw), size + int(payload), nil
}
