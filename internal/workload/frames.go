package workload

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// framer cuts a compressed file into frames without decompressing it.
type framer struct {
	in    *bufio.Reader
	id    []byte // s2: the last stream identifier
	empty bool   // compressing an empty file
	// next appends the next frame to dst, or gives io.EOF or errForeign.
	next func(dst []byte) ([]byte, error)
}

func newFramer(codec string, in *bufio.Reader) *framer {
	f := &framer{in: in}
	switch codec {
	case CodecZstd:
		f.next = f.zstd
	case CodecGzip:
		f.next = f.gzip
	default:
		f.next = f.s2
	}
	return f
}

// peek gives the next n bytes unread; io.EOF at the end of the file, and
// errForeign if the file is not of this kind.
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

func (f *framer) zstd(dst []byte) ([]byte, error) {
	p, err := f.peek(zstdPrefix)
	if err != nil {
		return nil, err
	}
	if binary.LittleEndian.Uint32(p) != zstdSkip || binary.LittleEndian.Uint32(p[4:]) != 4 {
		return nil, errForeign
	}
	return f.take(dst, zstdPrefix+int(binary.LittleEndian.Uint32(p[8:])))
}

func (f *framer) gzip(dst []byte) ([]byte, error) {
	p, err := f.peek(gzipPrefix)
	if err != nil {
		return nil, err
	}
	n := int(binary.LittleEndian.Uint32(p[16:]))
	if p[0] != 0x1f || p[1] != 0x8b || p[3] != 4 || p[10] != 8 || p[11] != 0 || string(p[12:16]) != "DB\x04\x00" || n < gzipPrefix+8 {
		return nil, errForeign
	}
	return f.take(dst, n)
}

// Chunk types of the framing format that Snappy and S2 share (google/snappy framing_format.txt).
const (
	s2Identifier = 0xff
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
		if p[0] == s2Identifier {
			if len(dst) > from {
				return dst, nil
			}
			if dst, err = f.take(dst, n); err != nil {
				return nil, err
			}
			f.id = append(f.id[:0], dst[from:]...)
			continue
		}
		if f.id == nil {
			return nil, errForeign
		}
		if len(dst) == from {
			dst = append(dst, f.id...)
		}
		if dst, err = f.take(dst, n); err != nil {
			return nil, err
		}
	}
	return dst, nil
}
