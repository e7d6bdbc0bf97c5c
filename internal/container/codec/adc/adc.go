// Package adc reads and writes Apple Data Compression, the codec of UDCO images: literal runs and
// copies of up to 67 bytes from at most 64 KiB back, coded in whole bytes, without header, end mark
// or checksum. It turns one slice into another. The coding is that of docs/formats.md.
//
// Both directions are safe for concurrent use and allocate no memory once their pool is warm,
// except to extend dst.
package adc

import (
	"errors"
	"fmt"
)

// ErrCorrupt is what every error of Decode wraps: the source is not an ADC stream, or one of
// another size.
var ErrCorrupt = errors.New("corrupt adc stream")

// MaxDistance is the longest distance, in bytes, that a copy can reach back.
const MaxDistance = 1 << 16

// Limits of the codes.
const (
	maxLiterals  = 128
	minShort     = 3
	maxShort     = 18
	nearDistance = 1 << 10
	minLong      = 4
	maxLong      = 67
)

// Decode decodes the stream at the start of src into dst, which has to have exactly the decoded
// length; it returns how many bytes it has written, which is less than len(dst) with every error.
// The stream ends when dst is full: bytes after that are ignored. It takes time proportional to
// len(dst) + len(src).
func Decode(dst, src []byte) (int, error) {
	at, in := 0, 0
	for at < len(dst) {
		if in >= len(src) {
			return at, corrupt(in, "ends too early")
		}
		code := int(src[in])
		if code >= 0x80 {
			n := code - 0x7f
			if n > len(src)-in-1 || n > len(dst)-at {
				return at, corrupt(in, "literals that do not fit")
			}
			at += copy(dst[at:], src[in+1:in+1+n])
			in += 1 + n
			continue
		}
		size := 2 + code>>6
		if len(src)-in < size {
			return at, corrupt(in, "ends too early")
		}
		n, distance := code>>2+minShort, code&3<<8+int(src[in+1])+1
		if size == 3 {
			n, distance = code&0x3f+minLong, int(src[in+1])<<8+int(src[in+2])+1
		}
		if distance > at || n > len(dst)-at {
			return at, corrupt(in, "a copy that does not fit")
		}
		repeat(dst[at:at+n], dst[at-distance:at])
		at, in = at+n, in+size
	}
	return at, nil
}

// repeat fills out with period, again and again; out follows period in memory.
func repeat(out, period []byte) {
	if len(out) <= len(period) {
		copy(out, period)
		return
	}
	for done := 0; done < len(out); {
		if done == 0 {
			done = copy(out, period)
			continue
		}
		// The bytes so far are whole periods, except the last time.
		done += copy(out[done:], out[:done])
	}
}

func corrupt(at int, cause string) error {
	return fmt.Errorf("decoding code at byte %d: %w: %s", at, ErrCorrupt, cause)
}
