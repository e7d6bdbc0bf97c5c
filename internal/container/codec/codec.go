// Package codec decodes and encodes the chunks of compressed UDIF images. Each
// chunk's payload is one independent stream, so that every function here turns
// one slice into another; package udif finds the chunks.
//
// # What it refuses
//
// It does no I/O and keeps no state. A payload that does not decode to exactly
// the wanted number of bytes is [ErrCorrupt], in whatever way it is wrong: no
// function panics or writes outside the destination, and time and memory are
// bounded by the lengths of both slices and a constant (4 MB for bzip2, 80 KB
// for the others). Bytes after the end of a stream are ignored, as other
// readers of such images do.
//
// The functions are safe for concurrent use. ADC, zlib and LZFSE allocate no
// memory once their pools are warm.
package codec

import (
	"errors"
	"fmt"
	"io"

	"dmgbench/internal/container/codec/adc"
	"dmgbench/internal/container/codec/lzfse"
	"dmgbench/internal/container/codec/xz"
)

// ID names a codec: the type of the runs in the tables of UDIF images that are
// encoded with it (docs/formats.md).
type ID uint32

// The codecs, and the image formats that are named after them.
const (
	ADC   ID = 0x80000004 // Apple Data Compression, UDCO
	Zlib  ID = 0x80000005 // UDZO
	Bzip2 ID = 0x80000006 // UDBZ
	LZFSE ID = 0x80000007 // ULFO
	LZMA  ID = 0x80000008 // an xz stream, ULMO
)

// IDs lists all codecs.
var IDs = []ID{ADC, Zlib, Bzip2, LZFSE, LZMA}

// Errors that callers distinguish.
var (
	// ErrUnknown is returned for an ID that is not one of IDs.
	ErrUnknown = errors.New("unknown codec")
	// ErrCorrupt is returned by Decode for a payload that is damaged, cut
	// short, or of another size.
	ErrCorrupt = errors.New("payload does not decode to the bytes of its run")
	// ErrIncompressible is returned by Encode for a chunk that is better stored
	// unencoded.
	ErrIncompressible = errors.New("not a byte shorter when compressed")
)

// String is the name of the codec, or its number in hexadecimal.
func (id ID) String() string {
	switch id {
	case ADC:
		return "adc"
	case Zlib:
		return "zlib"
	case Bzip2:
		return "bzip2"
	case LZFSE:
		return "lzfse"
	case LZMA:
		return "lzma"
	}
	return fmt.Sprintf("%#08x", uint32(id))
}

// Decode decodes the payload src into dst, which must be exactly as long as the
// decoded chunk: less or more is ErrCorrupt, as is everything else that is
// wrong with src. It returns the number of bytes written; with an error, what
// dst holds is undefined. With LZMA, both xz streams and bare .lzma ones are
// accepted.
func Decode(id ID, dst, src []byte) (n int, err error) {
	switch id {
	case ADC:
		n, err = adc.Decode(dst, src)
	case Zlib:
		n, err = inflate(dst, src)
	case Bzip2:
		n, err = bunzip2(dst, src)
	case LZFSE:
		n, err = lzfse.Decode(dst, src)
	case LZMA:
		n, err = xz.Decode(dst, src)
	default:
		return 0, fmt.Errorf("decoding with codec %v: %w", id, ErrUnknown)
	}
	if err != nil {
		return n, fmt.Errorf("decoding %d bytes of %v: %w: %w", len(src), id, ErrCorrupt, err)
	}
	return n, nil
}

// Encode appends src, compressed, to dst and returns the extended slice, which
// the caller owns; dst may be nil, and must not overlap src. When that would
// not save at least one byte it returns dst and ErrIncompressible.
//
// Zlib takes levels 1 to 9 and promises the size of zlib's level, up to 3 %
// more; level 0 is 6, where Apple's tools use 1. Bzip2 takes 1 to 9, the size
// of its blocks in 100,000 bytes; 0 is Apple's choice, the smallest that holds
// src. The others have no levels and ignore it.
func Encode(id ID, dst, src []byte, level int) ([]byte, error) {
	var out []byte
	var err error
	switch id {
	case ADC:
		out = adc.Encode(dst, src)
	case Zlib:
		out, err = deflate(dst, src, level)
	case Bzip2:
		out, err = bzip2Encode(dst, src, level)
	case LZFSE:
		out = lzfse.Encode(dst, src)
	case LZMA:
		out, err = xz.Encode(dst, src)
	default:
		err = ErrUnknown
	}
	if err != nil {
		return dst, fmt.Errorf("encoding %d bytes with %v: %w", len(src), id, err)
	}
	if len(out)-len(dst) >= len(src) {
		return dst, fmt.Errorf("encoding %d bytes with %v: %w", len(src), id, ErrIncompressible)
	}
	return out, nil
}

// readExactly reads len(dst) bytes and requires that r ends there, which makes
// r verify its checksum.
func readExactly(r io.Reader, dst []byte) (int, error) {
	n, err := io.ReadFull(r, dst)
	if err != nil {
		return n, fmt.Errorf("reading %d bytes: %w", len(dst), err)
	}
	var more [1]byte
	switch extra, err := io.ReadFull(r, more[:]); {
	case extra > 0:
		return n, errors.New("more bytes than wanted")
	case err != io.EOF:
		return n, err
	}
	return n, nil
}
