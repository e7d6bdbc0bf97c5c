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
	"bytes"
	"cmp"
	stdbzip2 "compress/bzip2"
	stdzlib "compress/zlib"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/dsnet/compress/bzip2"
	"github.com/klauspost/compress/zlib"

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

// bzip2Unit is the number of bytes of a bzip2 block for each step of the level
// digit.
const bzip2Unit = 100000

// errTrailing is the standard library's error for bytes after the end of a
// stream, which Decode ignores.
const errTrailing = stdbzip2.StructuralError("bad magic value in continuation file")

// bunzip2 decodes the bzip2 stream at the start of src into dst, which must
// have exactly the decoded length.
func bunzip2(dst, src []byte) (int, error) {
	n, err := readExactly(stdbzip2.NewReader(bytes.NewReader(src)), dst)
	if n == len(dst) && errors.Is(err, errTrailing) {
		return n, nil
	}
	return n, err
}

// bzip2Level is the level digit that Apple's tools write in the header of n
// bytes: the smallest one with blocks that hold them.
func bzip2Level(n int) int {
	return min(max(1, (n+bzip2Unit-1)/bzip2Unit), 9)
}

// bzip2Writers are the compressors by level, pooled because each keeps
// megabytes of tables.
var bzip2Writers [10]sync.Pool

// bzip2Encode appends src to dst as one bzip2 stream. Level 1 to 9 sets the
// block size; 0 selects bzip2Level.
func bzip2Encode(dst, src []byte, level int) ([]byte, error) {
	if level == 0 {
		level = bzip2Level(len(src))
	}
	if level < 1 || level > 9 {
		return nil, fmt.Errorf("level %d is not 1 to 9", level)
	}
	out := bytes.NewBuffer(dst)
	w, ok := bzip2Writers[level].Get().(*bzip2.Writer)
	if !ok {
		var err error
		if w, err = bzip2.NewWriter(nil, &bzip2.WriterConfig{Level: level}); err != nil {
			return nil, err
		}
	}
	if err := w.Reset(out); err != nil {
		return nil, err
	}
	if _, err := w.Write(src); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	bzip2Writers[level].Put(w)
	return out.Bytes(), nil
}

// defaultLevel is used for level 0: the output is at most as long as that of
// this level of zlib.
const defaultLevel = 6

// strength is the level of klauspost's compressor for one of zlib's; 0 is the
// standard library's level 1. Klauspost's levels up to 6 store whole blocks as
// they are when they find no repeats in them, base64 too, which Huffman codes
// alone make a quarter shorter. Of its own levels the lowest without that, 7,
// is as fast as the standard library's 2 to 5, and as small as zlib's 6.
var strength = [10]int{1: 0, 2: 7, 3: 7, 4: 7, 5: 7, 6: 7, 7: 8, 8: 9, 9: 9}

// headers are what zlib puts in front of its streams (RFC 1950), by level.
// Apple's streams have that of level 1.
var headers = [10]string{"\x78\x01", "\x78\x01", "\x78\x5e", "\x78\x5e", "\x78\x5e", "\x78\x5e", "\x78\x9c", "\x78\xda",
	"\x78\xda", "\x78\xda"}

// deflater is a compressor with where it writes, pooled for each level: it
// holds some 100 KB of tables and more.
type deflater struct {
	w interface {
		io.WriteCloser
		Reset(io.Writer)
	}
	out []byte
}

// deflaters are the compressors by strength.
var deflaters [10]sync.Pool

// Write appends p to the output.
func (d *deflater) Write(p []byte) (int, error) {
	d.out = append(d.out, p...)
	return len(p), nil
}

// deflate appends src as a zlib stream to dst.
func deflate(dst, src []byte, level int) ([]byte, error) {
	if level < 0 || level > 9 {
		return nil, fmt.Errorf("level %d is not 1 to 9", level)
	}
	n := strength[cmp.Or(level, defaultLevel)]
	d, ok := deflaters[n].Get().(*deflater)
	if ok {
		d.w.Reset(d)
	} else {
		var err error
		if d, err = newDeflater(n); err != nil {
			return nil, err
		}
	}
	d.out = dst
	_, err := d.w.Write(src)
	if err == nil {
		err = d.w.Close()
	}
	out := d.out
	d.out = nil
	if err == nil {
		copy(out[len(dst):], headers[level])
	}
	deflaters[n].Put(d)
	return out, err
}

// newDeflater makes a compressor; strength is an element of the table strength.
func newDeflater(strength int) (d *deflater, err error) {
	d = new(deflater)
	if strength == 0 {
		d.w, err = stdzlib.NewWriterLevel(d, stdzlib.BestSpeed)
	} else {
		d.w, err = zlib.NewWriterLevel(d, strength)
	}
	return d, err
}

// inflater is a zlib decoder with its source, pooled: its window and tables
// take some 50 KB.
type inflater struct {
	src bytes.Reader
	r   io.ReadCloser
}

var inflaters = sync.Pool{New: func() any { return new(inflater) }}

// inflate decodes the zlib stream at the start of src into dst, which must have
// exactly the decoded length.
func inflate(dst, src []byte) (int, error) {
	z := inflaters.Get().(*inflater)
	defer inflaters.Put(z)
	z.src.Reset(src)
	defer z.src.Reset(nil)
	var err error
	if z.r == nil {
		z.r, err = zlib.NewReader(&z.src)
	} else {
		err = z.r.(zlib.Resetter).Reset(&z.src, nil)
	}
	if err != nil {
		return 0, err
	}
	return readExactly(z.r, dst)
}
