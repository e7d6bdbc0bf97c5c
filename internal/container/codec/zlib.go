package codec

import (
	"bytes"
	"cmp"
	stdlib "compress/zlib"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zlib"
)

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
		d.w, err = stdlib.NewWriterLevel(d, stdlib.BestSpeed)
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
