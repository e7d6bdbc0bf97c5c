// Package bzip2 reads and writes the bzip2 streams of UDBZ images, from one slice to another. The decoder is our own,
// since whole chunks into a known length go about twice as fast as through an io.Reader, without its megabytes of
// allocation for each; the compressor is github.com/dsnet/compress/bzip2.
//
// It refuses randomized blocks, which no writer has made since 1999, and reads one stream only.
package bzip2

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"sync"

	"github.com/dsnet/compress/bzip2"
)

// ErrCorrupt is what every error of Decode wraps: the source is no bzip2 stream, one of another size, or one whose
// checksums do not fit.
var ErrCorrupt = errors.New("corrupt bzip2 stream")

const (
	blockMagic = 0x314159265359
	endMagic   = 0x177245385090
	unit       = 100000 // bytes of a block for each step of the level digit
)

var decoders = sync.Pool{New: func() any { return new(decoder) }}

// Decode decodes the bzip2 stream at the start of src into dst, which has to have exactly the decoded length; it
// returns how many bytes it has written, which is less than len(dst) or accompanied by an error. Bytes behind the
// stream are not looked at. It holds at most 4 MB of memory, whatever src says, and takes time proportional to
// len(dst) + len(src) and one block of 900,000 bytes. It is safe for concurrent use.
func Decode(dst, src []byte) (int, error) {
	if len(src) < 4 || string(src[:3]) != "BZh" || src[3] < '1' || src[3] > '9' {
		return 0, corrupt("bad header")
	}
	d := decoders.Get().(*decoder)
	defer d.release()
	d.dst, d.out = dst, 0
	d.in = reader{src: src, at: 4}
	size := int(src[3]-'0') * unit
	if cap(d.links) < size {
		d.links = make([]uint32, size)
	}
	d.links = d.links[:size]
	if cause := d.stream(); cause != "" {
		return min(d.out, max(0, len(dst)-1)), corrupt(cause)
	}
	return len(dst), nil
}

func corrupt(cause string) error {
	return fmt.Errorf("decoding bzip2: %w: %s", ErrCorrupt, cause)
}

// stream decodes all blocks and says what is wrong, if anything.
func (d *decoder) stream() string {
	combined := uint32(0)
	for {
		magic := uint64(d.in.take(24))<<24 | uint64(d.in.take(24))
		sum := d.in.take(16)<<16 | d.in.take(16)
		switch {
		case d.in.over():
			return "ends too early"
		case magic == endMagic && sum != combined:
			return "checksum of the stream that does not fit"
		case magic == endMagic && d.out != len(d.dst):
			return "decodes to fewer bytes than wanted"
		case magic == endMagic:
			return ""
		case magic != blockMagic:
			return "unknown kind of block"
		}
		start := d.out
		if cause := d.block(); cause != "" {
			return cause
		}
		if checksum(d.dst[start:d.out]) != sum {
			return "checksum of a block that does not fit"
		}
		combined = bits.RotateLeft32(combined, 1) ^ sum
	}
}

// Level is the digit that Apple writes in the header of n bytes: the smallest whose blocks hold them.
func Level(n int) int {
	return min(max(1, (n+unit-1)/unit), 9)
}

// writers are the compressors by level, which keep their tables.
var writers [10]sync.Pool

// Encode appends src, compressed, to dst as one stream. Level 1 to 9 sets the size of the blocks, in 100,000 bytes; 0
// stands for [Level] of len(src).
func Encode(dst, src []byte, level int) ([]byte, error) {
	if level == 0 {
		level = Level(len(src))
	}
	if level < 1 || level > 9 {
		return nil, fmt.Errorf("compressing with bzip2: level %d is not 1 to 9", level)
	}
	out := bytes.NewBuffer(dst)
	w, ok := writers[level].Get().(*bzip2.Writer)
	if !ok {
		var err error
		if w, err = bzip2.NewWriter(out, &bzip2.WriterConfig{Level: level}); err != nil {
			return nil, fmt.Errorf("compressing with bzip2: %w", err)
		}
	} else if err := w.Reset(out); err != nil {
		return nil, fmt.Errorf("compressing with bzip2: %w", err)
	}
	if _, err := w.Write(src); err != nil {
		return nil, fmt.Errorf("compressing %d bytes with bzip2: %w", len(src), err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compressing %d bytes with bzip2: %w", len(src), err)
	}
	writers[level].Put(w)
	return out.Bytes(), nil
}
