// Package lzfse reads and writes LZFSE streams, with LZVN inside them for small
// inputs: the codec of Apple's ULFO images. It turns one slice into another: no
// readers, no writers, no streaming. Everything here is written from
// docs/formats.md and the description of the format alone.
//
// A stream is a sequence of blocks that ends with bvx$. Decode reads all four
// kinds (bvx2, bvx1, bvxn, bvx-); Encode writes what Apple's encoder writes,
// bvxn under 4096 bytes and bvx2 from there, and bvx- where neither shrinks.
//
// Both are safe for concurrent use and allocate no memory once their pools are
// warm, except to extend dst.
package lzfse

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
)

// ErrCorrupt is what every error of Decode wraps: the source is not an LZFSE
// stream, or one of another size.
var ErrCorrupt = errors.New("corrupt lzfse stream")

// The magic numbers of blocks, as read from the first four bytes little-endian.
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
	maxD        = 262139
)

// MaxDistance is the longest distance, in bytes, that an LZFSE match can reach
// back.
const MaxDistance = maxD

var decoders = sync.Pool{New: func() any { return new(decoder) }}

// Decode decodes the stream at the start of src into dst, which has to have
// exactly the decoded length; it returns how many bytes it has written, which
// is less than len(dst) with every error. Bytes after the end mark are ignored.
// It takes time proportional to len(dst) + len(src), and never writes outside
// dst[:len(dst)].
func Decode(dst, src []byte) (int, error) {
	d := decoders.Get().(*decoder)
	defer decoders.Put(d)
	at, in := 0, 0
	for {
		if len(src)-in < 4 {
			return at, corrupt(in, "no end mark")
		}
		magic := binary.LittleEndian.Uint32(src[in:])
		if magic == magicEnd {
			break
		}
		made, used, err := d.block(magic, dst, at, src, in)
		if err != nil {
			return at, err
		}
		at, in = at+made, in+used
	}
	if at != len(dst) {
		return at, corrupt(in, "decodes to fewer bytes than wanted")
	}
	return at, nil
}

// block decodes the block at src[in:] to dst[at:]. It returns how many bytes it
// has written and read.
func (d *decoder) block(magic uint32, dst []byte, at int, src []byte, in int) (made, used int, err error) {
	if magic == magicV1 || magic == magicV2 {
		return d.compressed(magic, dst, at, src, in)
	}
	size, payload := 8, 0
	if magic == magicLZVN {
		size = 12
	}
	if len(src)-in < size {
		return 0, 0, corrupt(in, "header cut short")
	}
	raw := int64(binary.LittleEndian.Uint32(src[in+4:]))
	if raw > int64(len(dst)-at) {
		return 0, 0, corrupt(in, "decodes to more bytes than wanted")
	}
	out := dst[:at+int(raw)]
	switch magic {
	case magicUncompressed:
		payload = int(raw)
	case magicLZVN:
		n := binary.LittleEndian.Uint32(src[in+8:])
		if int64(n) > int64(len(src)) {
			return 0, 0, corrupt(in, "payload cut short")
		}
		payload = int(n)
	default:
		return 0, 0, corrupt(in, "unknown kind of block")
	}
	if payload > len(src)-in-size {
		return 0, 0, corrupt(in, "payload cut short")
	}
	body := src[in+size : in+size+payload]
	if magic == magicUncompressed {
		copy(out[at:], body)
	} else if !decodeLZVN(out, at, body) {
		return 0, 0, corrupt(in, "bad LZVN payload")
	}
	return int(raw), size + payload, nil
}

// corrupt makes an error that wraps ErrCorrupt, with the position in the
// source.
func corrupt(at int, cause string) error {
	return fmt.Errorf("decoding block at byte %d: %w: %s", at, ErrCorrupt, cause)
}
