package workload

import (
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

// Codecs that this program brings along. [CodecLZFSE] is Apple's.
const (
	CodecZstd  = "zstd"  // levels 1 to 22, 0 is 3
	CodecS2    = "s2"    // levels 1 (default), 2 (better), 3 (best)
	CodecGzip  = "gzip"  // levels 1 to 9, 0 is 6
	CodecLZFSE = "lzfse" // macOS only, through its compression_tool
)

// frameInput is how much input makes one frame. Frames are independent, so that
// any number of threads can make them; every codec's own tools read the result
// as one stream. Smaller frames scale further, larger ones compress better.
const frameInput = 4 << 20

// frameLimit is the largest frame that is decompressed, in bytes on either
// side: a hostile file must not take all memory.
const frameLimit = 64 << 20

// errForeign is returned for a file that was not cut into frames that can be found without decompressing.
var errForeign = errors.New("not in independent frames")

// codec makes and reads frames. Its values belong to one worker each.
type codec interface {
	// encode appends the frame of src to dst.
	encode(dst, src []byte) ([]byte, error)
	// decode appends the content of a frame to dst.
	decode(dst, frame []byte) ([]byte, error)
}

func newCodec(name string, level int) (codec, error) {
	switch name {
	case CodecZstd:
		return newZstd(level)
	case CodecGzip:
		return newGzip(level)
	case CodecS2:
		return newS2(level)
	}
	return nil, fmt.Errorf("unknown codec %q", name)
}

// zstdCodec writes each frame after a skippable frame that holds its length, as
// pzstd does (facebook/zstd contrib/pzstd): magic 0x184D2A50, length 4, 32 bits.
type zstdCodec struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

const (
	zstdSkip   = 0x184D2A50
	zstdPrefix = 12
)

func newZstd(level int) (codec, error) {
	if level < 0 || level > 22 {
		return nil, fmt.Errorf("zstd has levels 1 to 22, not %d", level)
	}
	if level == 0 {
		level = 3
	}
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(level)), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(frameLimit))
	if err != nil {
		return nil, err
	}
	return &zstdCodec{enc, dec}, nil
}

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

// gzipCodec writes members (RFC 1952) with an extra field "DB" that holds the length of the whole member.
type gzipCodec struct {
	enc *flate.Writer
	out bytes.Buffer
	dec *gzip.Reader
}

const gzipPrefix = 20 // fixed header 10, XLEN 2, subfield 4 + 4

func newGzip(level int) (codec, error) {
	if level < 0 || level > 9 {
		return nil, fmt.Errorf("gzip has levels 1 to 9, not %d", level)
	}
	if level == 0 {
		level = 6
	}
	enc, err := flate.NewWriter(io.Discard, level)
	return &gzipCodec{enc: enc}, err
}

func (g *gzipCodec) encode(dst, src []byte) ([]byte, error) {
	g.out.Reset()
	g.enc.Reset(&g.out)
	if _, err := g.enc.Write(src); err != nil {
		return nil, err
	}
	if err := g.enc.Close(); err != nil {
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

func newS2(level int) (codec, error) {
	options := []s2.WriterOption{s2.WriterConcurrency(1), s2.WriterBlockSize(1 << 20)}
	switch level {
	case 0, 1:
	case 2:
		options = append(options, s2.WriterBetterCompression())
	case 3:
		options = append(options, s2.WriterBestCompression())
	default:
		return nil, fmt.Errorf("s2 has levels 1 to 3, not %d", level)
	}
	return &s2Codec{enc: s2.NewWriter(nil, options...), dec: s2.NewReader(nil)}, nil
}

func (s *s2Codec) encode(dst, src []byte) ([]byte, error) {
	s.out.Reset()
	s.enc.Reset(&s.out)
	if _, err := s.enc.Write(src); err != nil {
		return nil, err
	}
	if err := s.enc.Close(); err != nil {
		return nil, err
	}
	return append(dst, s.out.Bytes()...), nil
}

func (s *s2Codec) decode(dst, frame []byte) ([]byte, error) {
	s.dec.Reset(bytes.NewReader(frame))
	return appendAll(dst, s.dec)
}

// appendAll reads r to its end, but no more than frameLimit.
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
			return nil, fmt.Errorf("a frame holds more than %d bytes", frameLimit)
		}
	}
}
