package workload

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// Names of codecs. [CodecLZFSE] is Apple's; the others are part of this
// program.
const (
	CodecZstd  = "zstd"  // levels 1 to 22, default 3
	CodecS2    = "s2"    // levels 1 (default), 2 (better), 3 (best)
	CodecGzip  = "gzip"  // levels 1 to 9, default 6
	CodecLZFSE = "lzfse" // macOS only, by its compression_tool
)

// frameInput is how many bytes of input make one frame. Frames are independent,
// so that any number of threads can make them; every codec's own tools read the
// result as one stream. Smaller frames scale further, larger ones compress
// better.
const frameInput = 4 << 20

// frameLimit is the largest frame that is decompressed, in bytes on either
// side: a hostile file must not take all memory.
const frameLimit = 64 << 20

// errForeign is a file with frames that cannot be found without decompressing.
var errForeign = errors.New("not in independent frames")

// codec makes and reads frames. A value belongs to one worker.
type codec interface {
	// encode appends the frame of src to dst.
	encode(dst, src []byte) ([]byte, error)
	// decode appends the content of a frame to dst.
	decode(dst, frame []byte) ([]byte, error)
}

// codecKind is one row of [codecs].
type codecKind struct {
	levels  int // highest level; the lowest is 1
	level   int // used for level 0
	newKind func(level int) (codec, error)
	// next appends the next frame of a compressed file to dst without
	// decompressing it; io.EOF at the end, errForeign if the file was not made
	// by encode.
	next func(f *framer, dst []byte) ([]byte, error)
	// newReader decompresses a file of other programs on one thread.
	newReader func(in io.Reader) (io.Reader, error)
}

// codecs are the codecs of this program by name.
var codecs = map[string]codecKind{
	CodecZstd: {22, 3, newZstd, (*framer).zstd, func(in io.Reader) (io.Reader, error) {
		d, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	}},
	CodecGzip: {9, 6, newGzip, (*framer).gzip, func(in io.Reader) (io.Reader, error) { return gzip.NewReader(in) }},
	CodecS2:   {3, 1, newS2, (*framer).s2, func(in io.Reader) (io.Reader, error) { return s2.NewReader(in), nil }},
}

// newCodec makes a codec of [codecs] for one worker. It rejects unknown levels.
func newCodec(name string, level int) (codec, error) {
	k, ok := codecs[name]
	if !ok {
		return nil, fmt.Errorf("unknown codec %q", name)
	}
	if level < 0 || level > k.levels {
		return nil, fmt.Errorf("%s has levels 1 to %d, not %d", name, k.levels, level)
	}
	if level == 0 {
		level = k.level
	}
	return k.newKind(level)
}

// zstdCodec writes each frame after a skippable frame that contains its length,
// as pzstd does (facebook/zstd contrib/pzstd): magic 0x184D2A50, length 4, 32
// bits.
type zstdCodec struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

const (
	zstdSkip   = 0x184D2A50
	zstdPrefix = 12 // bytes before the frame
)

// newZstd makes a codec with bounded memory.
func newZstd(level int) (codec, error) {
	speed := zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(level))
	enc, err := zstd.NewWriter(nil, speed, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(frameLimit))
	if err != nil {
		return nil, err
	}
	return &zstdCodec{enc, dec}, nil
}

// encode compresses into dst without a copy; the length is written afterwards.
func (z *zstdCodec) encode(dst, src []byte) ([]byte, error) {
	at := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, zstdSkip)
	dst = binary.LittleEndian.AppendUint32(dst, 4)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = z.enc.EncodeAll(src, dst)
	binary.LittleEndian.PutUint32(dst[at+8:], uint32(len(dst)-at-zstdPrefix))
	return dst, nil
}

func (z *zstdCodec) decode(dst, frame []byte) ([]byte, error) { return z.dec.DecodeAll(frame, dst) }

// gzipCodec writes members (RFC 1952) with an extra field "DB" that contains
// the length of the whole member.
type gzipCodec struct {
	enc *flate.Writer
	out bytes.Buffer
	dec *gzip.Reader
}

// gzipPrefix is the header in bytes: 10 fixed, XLEN 2, subfield 4 and its value
// 4.
const gzipPrefix = 20

func newGzip(level int) (codec, error) {
	enc, err := flate.NewWriter(io.Discard, level)
	return &gzipCodec{enc: enc}, err
}

// encoder is a compressor that can be used for one stream after another.
type encoder interface {
	io.WriteCloser
	Reset(io.Writer)
}

// compress compresses src as one stream into out.
func compress(enc encoder, out *bytes.Buffer, src []byte) error {
	out.Reset()
	enc.Reset(out)
	if _, err := enc.Write(src); err != nil {
		return err
	}
	return enc.Close()
}

// encode writes header, deflated data, CRC-32 and length. The header has no
// time and no file name, so that the same input gives the same bytes.
func (g *gzipCodec) encode(dst, src []byte) ([]byte, error) {
	if err := compress(g.enc, &g.out, src); err != nil {
		return nil, err
	}
	dst = append(dst, 0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 255, 8, 0, 'D', 'B', 4, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(gzipPrefix+g.out.Len()+8))
	dst = append(dst, g.out.Bytes()...)
	dst = binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(src))
	return binary.LittleEndian.AppendUint32(dst, uint32(len(src))), nil
}

func (g *gzipCodec) decode(dst, frame []byte) (_ []byte, err error) {
	in := bytes.NewReader(frame)
	if g.dec == nil {
		g.dec, err = gzip.NewReader(in)
	} else {
		err = g.dec.Reset(in)
	}
	if err != nil {
		return nil, err
	}
	return appendAll(dst, g.dec)
}

// s2Codec writes complete streams, each with its identifier.
type s2Codec struct {
	enc *s2.Writer
	out bytes.Buffer
	dec *s2.Reader
}

// newS2 writes blocks of 1 MiB, the default of s2c.
func newS2(level int) (codec, error) {
	options := []s2.WriterOption{s2.WriterConcurrency(1), s2.WriterBlockSize(1 << 20)}
	switch level {
	case 2:
		options = append(options, s2.WriterBetterCompression())
	case 3:
		options = append(options, s2.WriterBestCompression())
	}
	return &s2Codec{enc: s2.NewWriter(nil, options...), dec: s2.NewReader(nil)}, nil
}

func (s *s2Codec) encode(dst, src []byte) ([]byte, error) {
	err := compress(s.enc, &s.out, src)
	return append(dst, s.out.Bytes()...), err
}

func (s *s2Codec) decode(dst, frame []byte) ([]byte, error) {
	s.dec.Reset(bytes.NewReader(frame))
	return appendAll(dst, s.dec)
}

// appendAll reads r to its end, but no more than frameLimit bytes.
func appendAll(dst []byte, r io.Reader) ([]byte, error) {
	from := len(dst)
	for {
		if len(dst) == cap(dst) {
			dst = append(dst, 0)[:len(dst)]
		}
		n, err := r.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		if err == io.EOF {
			return dst, nil
		}
		if err != nil {
			return nil, err
		}
		if len(dst)-from > frameLimit {
			return nil, fmt.Errorf("a frame has more than %d bytes", frameLimit)
		}
	}
}

// framer divides a file into the pieces that workers compress or decompress.
type framer struct {
	in    *bufio.Reader
	id    []byte // s2: the last stream identifier
	empty bool   // compressing an empty file
	next  func(f *framer, dst []byte) ([]byte, error)
}

// peek returns the next n bytes without reading them; io.EOF at the end of the
// file, errForeign if the file ends within them.
func (f *framer) peek(n int) ([]byte, error) {
	p, err := f.in.Peek(n)
	switch {
	case len(p) == 0 && errors.Is(err, io.EOF):
		return nil, io.EOF
	case errors.Is(err, io.EOF):
		return nil, errForeign
	}
	return p, err
}

// take appends the next n bytes to dst.
func (f *framer) take(dst []byte, n int) ([]byte, error) {
	if n > frameLimit {
		return nil, fmt.Errorf("a frame of %d bytes is larger than %d", n, frameLimit)
	}
	at := len(dst)
	dst = append(dst, make([]byte, n)...)
	if _, err := io.ReadFull(f.in, dst[at:]); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	return dst, nil
}

// input returns the next frameInput bytes of a file that is to be compressed.
// An empty file makes one empty frame, since no tool reads a file without one.
func (f *framer) input(dst []byte) ([]byte, error) {
	if f.empty {
		f.empty = false
		return dst, nil
	}
	n, err := io.ReadFull(f.in, dst[:min(frameInput, cap(dst))])
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return dst[:n], err
}

// frame appends the next frame of a file in which each frame starts with a
// prefix of so many bytes. length is that of the whole frame by its prefix, 0 if
// encode did not make it.
func (f *framer) frame(dst []byte, prefix int, length func(p []byte) int) ([]byte, error) {
	p, err := f.peek(prefix)
	if err != nil {
		return nil, err
	}
	n := length(p)
	if n < prefix {
		return nil, errForeign
	}
	return f.take(dst, n)
}

// zstd finds frames by the skippable frames of [zstdCodec].
func (f *framer) zstd(dst []byte) ([]byte, error) {
	return f.frame(dst, zstdPrefix, func(p []byte) int {
		if binary.LittleEndian.Uint32(p) != zstdSkip || binary.LittleEndian.Uint32(p[4:]) != 4 {
			return 0
		}
		return zstdPrefix + int(binary.LittleEndian.Uint32(p[8:]))
	})
}

// gzip finds members by the extra field of [gzipCodec].
func (f *framer) gzip(dst []byte) ([]byte, error) {
	return f.frame(dst, gzipPrefix, func(p []byte) int {
		if p[0] != 0x1f || p[1] != 0x8b || p[3] != 4 || p[10] != 8 || p[11] != 0 || string(p[12:16]) != "DB\x04\x00" {
			return 0
		}
		return int(binary.LittleEndian.Uint32(p[16:]))
	})
}

// The framing format that Snappy and S2 share (google/snappy
// framing_format.txt).
const (
	s2Identifier = 0xff    // type of the chunk that starts a stream
	s2Batch      = 1 << 20 // chunks are handed out in frames of about this many bytes
)

// s2 collects chunks; each can be decoded alone after a stream identifier.
func (f *framer) s2(dst []byte) ([]byte, error) {
	from := len(dst)
	for len(dst)-from < s2Batch {
		p, err := f.peek(4)
		if errors.Is(err, io.EOF) && len(dst) > from {
			return dst, nil
		}
		if err != nil {
			return nil, err
		}
		n := 4 + int(p[1]) + int(p[2])<<8 + int(p[3])<<16
		switch {
		case p[0] == s2Identifier && len(dst) > from:
			return dst, nil
		case p[0] == s2Identifier:
			if dst, err = f.take(dst, n); err != nil {
				return nil, err
			}
			f.id = append(f.id[:0], dst[from:]...)
			continue
		case f.id == nil:
			return nil, errForeign
		case len(dst) == from:
			dst = append(dst, f.id...)
		}
		if dst, err = f.take(dst, n); err != nil {
			return nil, err
		}
	}
	return dst, nil
}
