package workload

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

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

// codec makes and reads frames: both append to dst. A value belongs to one
// worker.
type codec struct {
	encode, decode func(dst, src []byte) ([]byte, error)
}

// codecKind is one row of [codecs]. Every frame starts with the same bytes and
// its length (32 bits, little-endian), which other programs skip, so that a file
// is divided into frames without decompressing it.
type codecKind struct {
	levels int    // highest level; the lowest is 1
	level  int    // used for level 0
	start  string // of a frame, before the length
	outer  int    // bytes that the length does not count
	build  func(level int) (codec, error)
	// newReader decompresses a file of other programs on one thread.
	newReader func(in io.Reader) (io.Reader, error)
}

// codecs are the codecs of this program by name.
var codecs = map[string]codecKind{
	// A skippable frame of four bytes, as pzstd writes it (facebook/zstd
	// contrib/pzstd): magic, length, content.
	CodecZstd: {levels: 22, level: 3, start: "\x50\x2a\x4d\x18\x04\x00\x00\x00", outer: 12, build: newZstd,
		newReader: func(in io.Reader) (io.Reader, error) { return zstd.NewReader(in, zstd.WithDecoderConcurrency(1)) }},
	// A member (RFC 1952) with an extra field "DB". Its header has no time and no
	// file name, so that the same input gives the same bytes.
	CodecGzip: {levels: 9, level: 6, start: gzipFixed + gzipExtra, build: newGzip,
		newReader: func(in io.Reader) (io.Reader, error) { return gzip.NewReader(in) }},
	// A stream identifier and a skippable chunk of four bytes (google/snappy
	// framing_format.txt).
	CodecS2: {levels: 3, level: 1, start: s2Identifier + "\x80\x04\x00\x00", build: newS2,
		newReader: func(in io.Reader) (io.Reader, error) { return s2.NewReader(in), nil }},
}

const (
	gzipFixed    = "\x1f\x8b\x08\x04\x00\x00\x00\x00\x00\xff" // the header up to the extra field
	gzipExtra    = "\x08\x00DB\x04\x00"                       // length of the field, name and length of its part
	s2Identifier = "\xff\x06\x00\x00S2sTwO"
)

// newCodec makes a codec of [codecs] for one worker. It rejects unknown levels.
func newCodec(name string, level int) (codec, error) {
	k, ok := codecs[name]
	if !ok {
		return codec{}, fmt.Errorf("unknown codec %q", name)
	}
	if level < 0 || level > k.levels {
		return codec{}, fmt.Errorf("%s has levels 1 to %d, not %d", name, k.levels, level)
	}
	c, err := k.build(cmp.Or(level, k.level))
	frame := c.encode
	c.encode = func(dst, src []byte) ([]byte, error) {
		at := len(dst)
		dst, err := frame(append(append(dst, k.start...), 0, 0, 0, 0), src)
		if err == nil {
			binary.LittleEndian.PutUint32(dst[at+len(k.start):], uint32(len(dst)-at-k.outer))
		}
		return dst, err
	}
	return c, err
}

// newZstd makes a codec with bounded memory. It compresses into dst without a
// copy.
func newZstd(level int) (codec, error) {
	speed := zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(level))
	enc, encErr := zstd.NewWriter(nil, speed, zstd.WithEncoderConcurrency(1))
	dec, decErr := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(frameLimit))
	return codec{
		encode: func(dst, src []byte) ([]byte, error) { return enc.EncodeAll(src, dst), nil },
		decode: func(dst, frame []byte) ([]byte, error) { return dec.DecodeAll(frame, dst) },
	}, errors.Join(encErr, decErr)
}

// newGzip makes members. Of those of the library it keeps what follows the
// fixed header.
func newGzip(level int) (codec, error) {
	var dec gzip.Reader
	enc, err := gzip.NewWriterLevel(io.Discard, level)
	return codec{
		encode: compressor(enc, len(gzipFixed)),
		decode: func(dst, frame []byte) ([]byte, error) {
			if err := dec.Reset(bytes.NewReader(frame)); err != nil {
				return nil, err
			}
			return appendAll(dst, &dec)
		},
	}, err
}

// newS2 makes streams of blocks of 1 MiB, the default of s2c.
func newS2(level int) (codec, error) {
	options := []s2.WriterOption{s2.WriterConcurrency(1), s2.WriterBlockSize(1 << 20)}
	switch level {
	case 2:
		options = append(options, s2.WriterBetterCompression())
	case 3:
		options = append(options, s2.WriterBestCompression())
	}
	dec := s2.NewReader(nil)
	return codec{
		encode: compressor(s2.NewWriter(nil, options...), len(s2Identifier)),
		decode: func(dst, frame []byte) ([]byte, error) {
			dec.Reset(bytes.NewReader(frame))
			return appendAll(dst, dec)
		},
	}, nil
}

// compressor appends what enc makes of src without its first header bytes,
// which are in the start of the frame.
func compressor(enc interface {
	io.WriteCloser
	Reset(io.Writer)
}, header int) func(dst, src []byte) ([]byte, error) {
	var out bytes.Buffer
	return func(dst, src []byte) ([]byte, error) {
		out.Reset()
		enc.Reset(&out)
		_, err := enc.Write(src)
		if err = errors.Join(err, enc.Close()); err != nil {
			return nil, err
		}
		return append(dst, out.Bytes()[min(header, out.Len()):]...), nil
	}
}

// appendAll reads r to its end, but no more than frameLimit bytes.
func appendAll(dst []byte, r io.Reader) ([]byte, error) {
	out := bytes.NewBuffer(dst)
	n, err := out.ReadFrom(io.LimitReader(r, frameLimit+1))
	if err == nil && n > frameLimit {
		err = fmt.Errorf("a frame has more than %d bytes", frameLimit)
	}
	return out.Bytes(), err
}

// framer divides a file into the pieces that workers compress or decompress.
type framer struct {
	in       *bufio.Reader
	kind     codecKind
	compress bool
	empty    bool // compressing an empty file
}

// errNoFrame is a file with frames that cannot be found without decompressing.
var errNoFrame = errors.New("not in independent frames")

// frameSize returns the length of the next frame; io.EOF at the end of the
// file.
func (f *framer) frameSize() (int, error) {
	n := len(f.kind.start)
	p, err := f.in.Peek(n + 4)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return 0, err
	case len(p) == 0:
		return 0, io.EOF
	case err != nil || string(p[:n]) != f.kind.start:
		return 0, errNoFrame
	}
	size := int64(binary.LittleEndian.Uint32(p[n:])) + int64(f.kind.outer)
	if size < int64(n+4) || size > frameLimit {
		return 0, fmt.Errorf("a frame of %d bytes", size)
	}
	return int(size), nil
}

// next returns, in the memory of dst, the next frame, or the next frameInput
// bytes of a file that is to be compressed; io.EOF at the end. An empty file
// makes one empty frame, since no tool reads a file without one.
func (f *framer) next(dst []byte) ([]byte, error) {
	if !f.compress {
		n, err := f.frameSize()
		if err != nil {
			return dst, err
		}
		dst = slices.Grow(dst, n)[:n]
		if _, err = io.ReadFull(f.in, dst); err != nil {
			err = io.ErrUnexpectedEOF
		}
		return dst, err
	}
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
