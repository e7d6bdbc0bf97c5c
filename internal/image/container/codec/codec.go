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
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"sync"

	"github.com/dsnet/compress/bzip2"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zlib"
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

// codecs have the two functions of each codec, which Decode and Encode
// describe. decode may write fewer bytes than dst has without an error.
var codecs = map[ID]struct {
	name   string
	decode func(dst, src []byte) (int, error)
	encode func(dst, src []byte, level int) ([]byte, error)
}{
	ADC:   {"adc", adcDecode, adcEncode},
	Zlib:  {"zlib", inflate, deflate},
	Bzip2: {"bzip2", bunzip2, bzip2Encode},
	LZFSE: {"lzfse", lzfseDecode, lzfseEncode},
	LZMA:  {"lzma", xzDecode, xzEncode},
}

// String is the name of the codec, or its number in hexadecimal.
func (id ID) String() string { return cmp.Or(codecs[id].name, fmt.Sprintf("%#08x", uint32(id))) }

// Decode decodes the payload src into dst, which must be exactly as long as the
// decoded chunk: less or more is ErrCorrupt, as is everything else that is
// wrong with src. It returns the number of bytes written; with an error, what
// dst holds is undefined. With LZMA, both xz streams and bare .lzma ones are
// accepted.
func Decode(id ID, dst, src []byte) (n int, err error) {
	c, ok := codecs[id]
	if !ok {
		return 0, fmt.Errorf("decoding with codec %v: %w", id, ErrUnknown)
	}
	n, err = c.decode(dst, src)
	if err == nil && n < len(dst) {
		err = fmt.Errorf("it decodes to %d bytes of %d", n, len(dst))
	}
	if err != nil {
		return n, fmt.Errorf("decoding %d bytes of %v: %w: %w", len(src), id, ErrCorrupt, err)
	}
	return n, nil
}

// lzfseShortest is the shortest chunk in bytes that Encode compresses with
// LZFSE. Apple's encoder writes bvxn below it; libmodi reads no bvx2 block of a
// few bytes. Chunks of images are longer, apart from the last one and those at
// holes.
const lzfseShortest = 4096

// Encode appends src, compressed, to dst and returns the extended slice, which
// the caller owns; dst may be nil, and must not overlap src. When that would
// not save at least one byte it returns dst and ErrIncompressible.
//
// Zlib takes levels 1 to 9 and promises the size of zlib's level, up to 3 %
// more; level 0 is 6, where Apple's tools use 1. Bzip2 takes 1 to 9, the size
// of its blocks in 100,000 bytes; 0 is Apple's choice, the smallest that holds
// src. The others have no levels and ignore it.
func Encode(id ID, dst, src []byte, level int) ([]byte, error) {
	c, ok := codecs[id]
	err := ErrUnknown
	var out []byte
	switch {
	case id == LZFSE && len(src) < lzfseShortest:
		err = ErrIncompressible
	case ok:
		out, err = c.encode(dst, src, level)
	}
	if err == nil && len(out)-len(dst) >= len(src) {
		err = ErrIncompressible
	}
	if err != nil {
		return dst, fmt.Errorf("encoding %d bytes with %v: %w", len(src), id, err)
	}
	return out, nil
}

// readToEnd reads r to its end, which makes r verify its checksum. More bytes
// than dst has are an error.
func readToEnd(r io.Reader, dst []byte) (int, error) {
	n, err := io.ReadFull(r, dst)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return n, err
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

// damaged is the error for a stream that is wrong at byte at.
func damaged(at int, cause string) error { return fmt.Errorf("at byte %d: %s", at, cause) }

// common is how many bytes from the start on are equal; b is at least as long
// as a.
func common(a, b []byte) int {
	b = b[:len(a)]
	n := 0
	for ; n+8 <= len(a); n += 8 {
		if x := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); x != 0 {
			return n + bits.TrailingZeros64(x)>>3
		}
	}
	for n < len(a) && a[n] == b[n] {
		n++
	}
	return n
}

// wide is how many bytes a short copy moves at once, whatever its length:
// callers check the room first.
const wide = 16

// copyMatch copies n bytes from distance bytes back, one after the other as it
// were: where they overlap, they repeat. The caller has checked that 1 ≤
// distance ≤ at and at+n ≤ len(dst).
func copyMatch(dst []byte, at, distance, n int) {
	from := at - distance
	if distance >= wide && len(dst)-at >= n+wide {
		for end := at + n; ; {
			*(*[wide]byte)(dst[at:]) = *(*[wide]byte)(dst[from:])
			if at, from = at+wide, from+wide; at >= end {
				return
			}
		}
	}
	out := dst[at : at+n]
	if distance >= n {
		copy(out, dst[from:])
		return
	}
	// What is written doubles the period's length each time.
	for done := copy(out, dst[from:at]); done < n; {
		done += copy(out[done:], dst[from:at+done])
	}
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
	n, err := readToEnd(stdbzip2.NewReader(bytes.NewReader(src)), dst)
	if n == len(dst) && errors.Is(err, errTrailing) {
		return n, nil
	}
	return n, err
}

// bzip2Writers are the compressors by level, pooled because each keeps
// megabytes of tables.
var bzip2Writers [10]sync.Pool

// bzip2Encode appends src to dst as one bzip2 stream. Level 1 to 9 sets the
// block size; 0 is the smallest with blocks that hold src, as in Apple's tools.
func bzip2Encode(dst, src []byte, level int) ([]byte, error) {
	if level == 0 {
		level = min(max(1, (len(src)+bzip2Unit-1)/bzip2Unit), 9)
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
	var err error
	n := strength[cmp.Or(level, defaultLevel)]
	d, ok := deflaters[n].Get().(*deflater)
	switch {
	case ok:
		d.w.Reset(d)
	case n == 0:
		d = new(deflater)
		d.w, err = stdzlib.NewWriterLevel(d, stdzlib.BestSpeed)
	default:
		d = new(deflater)
		d.w, err = zlib.NewWriterLevel(d, n)
	}
	if err != nil {
		return nil, err
	}
	d.out = dst
	if _, err = d.w.Write(src); err == nil {
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

// inflater is a decoder of deflate with its source, pooled: its window and
// tables take some 50 KB.
type inflater struct {
	src bytes.Reader
	r   io.ReadCloser
}

var inflaters = sync.Pool{New: func() any {
	z := new(inflater)
	z.r = flate.NewReader(&z.src)
	return z
}}

// inflate decodes the zlib stream at the start of src into dst, which must have
// exactly the decoded length. It does without the library's zlib reader,
// since the checksum there takes a tenth of the time.
func inflate(dst, src []byte) (int, error) {
	// RFC 1950: deflate with a window of at most 32 KiB, no dictionary, and a check of these two bytes.
	if len(src) < 2 || src[0]&0x0f != 8 || src[0] > 0x78 || src[1]&0x20 != 0 || binary.BigEndian.Uint16(src)%31 != 0 {
		return 0, damaged(0, "no header of zlib")
	}
	z := inflaters.Get().(*inflater)
	defer inflaters.Put(z)
	z.src.Reset(src[2:])
	defer z.src.Reset(nil)
	if err := z.r.(flate.Resetter).Reset(&z.src, nil); err != nil {
		return 0, err
	}
	n, err := readToEnd(z.r, dst)
	if err != nil {
		return n, err
	}
	var sum [4]byte
	if _, err := io.ReadFull(&z.src, sum[:]); err != nil {
		return n, io.ErrUnexpectedEOF
	}
	if got, want := adler32(dst[:n]), binary.BigEndian.Uint32(sum[:]); got != want {
		return n, fmt.Errorf("Adler-32 is %#08x, and should be %#08x", got, want)
	}
	return n, nil
}

// Lanes of 16 bits hold the sums of adler32, without a carry: 22 bytes of 255
// in each lane, and 22 × 21 ÷ 2 × 255 of their sums, stay below 65,536.
const (
	adlerBase  = 65521
	adlerBlock = 22 * 8
	evenBytes  = 0x00ff00ff00ff00ff
)

// adler32 is the checksum of RFC 1950. It adds eight bytes at once, which is
// twice as fast as the standard library.
func adler32(p []byte) uint32 {
	a, b := uint64(1), uint64(0)
	for len(p) >= adlerBlock {
		var even, odd, evenSums, oddSums uint64
		block := (*[adlerBlock]byte)(p)
		for i := 0; i < adlerBlock; i += 16 {
			first, second := binary.LittleEndian.Uint64(block[i:]), binary.LittleEndian.Uint64(block[i+8:])
			evenSums += even
			oddSums += odd
			even += first & evenBytes
			odd += first >> 8 & evenBytes
			evenSums += even
			oddSums += odd
			even += second & evenBytes
			odd += second >> 8 & evenBytes
		}
		b += adlerBlock * a
		for at := uint64(8); at > 0; at -= 2 {
			first, second := even&0xffff, odd&0xffff
			a += first + second
			b += first*at + second*(at-1) + 8*(evenSums&0xffff+oddSums&0xffff)
			even, odd, evenSums, oddSums = even>>16, odd>>16, evenSums>>16, oddSums>>16
		}
		a, b, p = a%adlerBase, b%adlerBase, p[adlerBlock:]
	}
	for _, c := range p {
		a += uint64(c)
		b += a
	}
	return uint32(b%adlerBase<<16 | a%adlerBase)
}
