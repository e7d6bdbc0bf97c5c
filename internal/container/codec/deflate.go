package codec

import (
	stdlib "compress/zlib"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zlib"
)

// appleLevel is the level of Apple's zlib streams, whose header is 78 01.
const appleLevel = 1

// strength is the level of klauspost's compressor for one of zlib's: the lowest whose result is at most some 3 % longer
// than zlib's, but for the last two. Its own levels of the same number are faster, and longer by up to 9 %.
var strength = [10]int{1: 4, 2: 5, 3: 5, 4: 6, 5: 6, 6: 7, 7: 8, 8: 9, 9: 9}

// headers are what zlib puts in front of its streams (RFC 1950), by level.
var headers = [10][2]byte{1: {0x78, 0x01}, 2: {0x78, 0x5e}, 3: {0x78, 0x5e}, 4: {0x78, 0x5e}, 5: {0x78, 0x5e}, 6: {0x78, 0x9c},
	7: {0x78, 0xda}, 8: {0x78, 0xda}, 9: {0x78, 0xda}}

// smallDeflate is the length under which the standard library compresses: at low levels, klauspost's stores inputs of
// up to 2 or 4 KiB as they are, but images have many such chunks, around partition tables.
const smallDeflate = 4096

// deflater is a compressor with where it writes, pooled for each level: it holds some 100 KB of tables and more.
type deflater struct {
	w interface {
		io.WriteCloser
		Reset(io.Writer)
	}
	out []byte
}

// deflaters are the compressors by level; the small ones are the standard library's.
var deflaters, smallDeflaters [10]sync.Pool

// Write appends p to the output.
func (d *deflater) Write(p []byte) (int, error) {
	d.out = append(d.out, p...)
	return len(p), nil
}

// deflate appends src as a zlib stream to dst.
func deflate(dst, src []byte, level int) ([]byte, error) {
	if level == 0 {
		level = appleLevel
	}
	if level < 1 || level > 9 {
		return nil, fmt.Errorf("level %d is not 1 to 9", level)
	}
	small := len(src) < smallDeflate
	pool := &deflaters[level]
	if small {
		pool = &smallDeflaters[level]
	}
	d, ok := pool.Get().(*deflater)
	if ok {
		d.w.Reset(d)
	} else {
		var err error
		if d, err = newDeflater(level, small); err != nil {
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
		copy(out[len(dst):], headers[level][:])
	}
	pool.Put(d)
	return out, err
}

func newDeflater(level int, small bool) (d *deflater, err error) {
	d = new(deflater)
	if small {
		d.w, err = stdlib.NewWriterLevel(d, level)
	} else {
		d.w, err = zlib.NewWriterLevel(d, strength[level])
	}
	return d, err
}
