// Package xz reads and writes the xz streams of ULMO images, and reads bare
// .lzma streams (LZMA1 after a header of 13 bytes), which some other writers
// put in their place. It turns one slice into another.
//
// LZMA itself is github.com/ulikunitz/xz/lzma. The container around it is our
// own for two reasons: a dictionary is never larger than the destination,
// whatever a header asks for, and the streams that are written look as Apple's
// do (no check, one block with both sizes in its header), which that module
// does not write.
//
// It refuses filters other than LZMA2, and more than one stream.
package xz

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/crc64"
	"io"
	"math"

	"github.com/ulikunitz/xz/lzma"
)

// ErrCorrupt is what every error of Decode wraps: the source is not an xz or
// lzma stream, one of another size, or one with filters that are not read.
var ErrCorrupt = errors.New("corrupt xz stream")

const (
	headerMagic = "\xfd7zXZ\x00"
	footerMagic = "YZ"
	headerSize  = 12
	footerSize  = 12
	lzma2Filter = 0x21
)

// checkSizes are the lengths of the integrity checks by their number; those
// that are not verified are skipped.
var checkSizes = [16]int{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}

var crc64Table = crc64.MakeTable(crc64.ECMA)

// record is the index entry of a block: its length without padding, and its
// decoded length.
type record struct{ unpadded, raw uint64 }

// stream is the state of one Decode.
type stream struct {
	dst     []byte
	at      int // how much of dst is written
	records []record
}

// Decode decodes the xz or .lzma stream at the start of src into dst, which
// must have exactly the decoded length; it returns how many bytes it has
// written, which is less than len(dst) with every error. Bytes after the stream
// are ignored. Time and memory are proportional to len(dst) + len(src).
func Decode(dst, src []byte) (int, error) {
	s := &stream{dst: dst}
	var err error
	if bytes.HasPrefix(src, []byte(headerMagic)) {
		err = s.decode(src)
	} else {
		err = s.decodeAlone(src)
	}
	if err == nil && s.at != len(dst) {
		err = corrupt("decodes to fewer bytes than wanted")
	}
	if err != nil {
		return min(s.at, max(0, len(dst)-1)), err
	}
	return s.at, nil
}

// dictCap is the dictionary for a stream that decodes to at most n bytes: no
// match reaches further back.
func dictCap(n int) int { return max(n, lzma.MinDictCap) }

// read copies all of r to the rest of dst; more than fits is an error.
func (s *stream) read(r io.Reader) error {
	n, err := io.ReadFull(r, s.dst[s.at:])
	s.at += n
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return corrupt(err.Error())
	}
	var more [1]byte
	if n, err = r.Read(more[:]); n > 0 {
		return corrupt("decodes to more bytes than wanted")
	}
	if err != io.EOF {
		return corrupt(fmt.Sprint(err))
	}
	return nil
}

// decodeLZMA2 decodes the LZMA2 chunks at the start of src and returns their
// length.
func (s *stream) decodeLZMA2(src []byte) (used int, err error) {
	in := bytes.NewReader(src)
	r, err := lzma.Reader2Config{DictCap: dictCap(len(s.dst))}.NewReader2(in)
	if err != nil {
		return 0, corrupt(err.Error())
	}
	if err := s.read(r); err != nil {
		return 0, err
	}
	return len(src) - in.Len(), nil
}

// decodeAlone decodes a .lzma stream: 13 bytes of properties, dictionary size
// and decoded length, then LZMA1. The dictionary size is replaced, since the
// module allocates what the header asks for.
func (s *stream) decodeAlone(src []byte) error {
	if len(src) < lzma.HeaderLen {
		return corrupt("ends too early")
	}
	header := bytes.Clone(src[:lzma.HeaderLen])
	size := binary.LittleEndian.Uint64(header[5:])
	if size != math.MaxUint64 && size != uint64(len(s.dst)) {
		return corrupt("header with another length than wanted")
	}
	dict := min(binary.LittleEndian.Uint32(header[1:]), uint32(min(dictCap(len(s.dst)), math.MaxUint32)))
	binary.LittleEndian.PutUint32(header[1:], dict)
	r, err := lzma.NewReader(io.MultiReader(bytes.NewReader(header), bytes.NewReader(src[lzma.HeaderLen:])))
	if err != nil {
		return corrupt(err.Error())
	}
	return s.read(r)
}

// decode reads the stream: header, blocks, index, footer.
func (s *stream) decode(src []byte) error {
	if len(src) < headerSize || src[6] != 0 || src[7] > 15 || !crcFits(src[6:12]) {
		return corrupt("bad stream header")
	}
	flags := src[6:8]
	at := headerSize
	for {
		if at >= len(src) {
			return corrupt("no index")
		}
		if src[at] == 0 {
			break
		}
		used, err := s.block(src[at:], int(flags[1]))
		if err != nil {
			return err
		}
		at += used
	}
	size, ok := s.index(src[at:])
	if !ok {
		return corrupt("bad index")
	}
	footer := src[at+size:]
	if len(footer) < footerSize || string(footer[10:12]) != footerMagic || string(footer[8:10]) != string(flags) ||
		binary.LittleEndian.Uint32(footer) != crc32.ChecksumIEEE(footer[4:10]) ||
		(uint64(binary.LittleEndian.Uint32(footer[4:]))+1)*4 != uint64(size) {
		return corrupt("bad stream footer")
	}
	return nil
}

// crcFits reports whether the last four bytes are the CRC-32 of those before.
func crcFits(src []byte) bool {
	n := len(src) - 4
	return binary.LittleEndian.Uint32(src[n:]) == crc32.ChecksumIEEE(src[:n])
}

// block decodes the block at the start of src and returns its length with
// padding and check.
func (s *stream) block(src []byte, check int) (int, error) {
	size := (int(src[0]) + 1) * 4
	if size > len(src) || size < 8 || !crcFits(src[:size]) {
		return 0, corrupt("bad block header")
	}
	packed, raw, ok := blockSizes(src[1 : size-4])
	if !ok {
		return 0, corrupt("block header with other filters than LZMA2, or bad")
	}
	start := s.at
	used, err := s.decodeLZMA2(src[size:])
	if err != nil {
		return 0, err
	}
	made := s.dst[start:s.at]
	if packed >= 0 && packed != int64(used) || raw >= 0 && raw != int64(len(made)) {
		return 0, corrupt("block of another size than its header states")
	}
	at := size + used
	s.records = append(s.records, record{uint64(at + checkSizes[check]), uint64(len(made))})
	for ; at%4 != 0; at++ {
		if at >= len(src) || src[at] != 0 {
			return 0, corrupt("bad block padding")
		}
	}
	if len(src)-at < checkSizes[check] || !checkFits(check, made, src[at:]) {
		return 0, corrupt("check that does not fit")
	}
	return at + checkSizes[check], nil
}

// blockSizes reads a block header after its length: both sizes, −1 where they
// are not given.
func blockSizes(src []byte) (packed, raw int64, ok bool) {
	flags := src[0]
	packed, raw = -1, -1
	if flags&0x3f != 0 { // more than one filter, or reserved bits
		return 0, 0, false
	}
	src = src[1:]
	for _, f := range []struct {
		bit  byte
		size *int64
	}{{0x40, &packed}, {0x80, &raw}} {
		if flags&f.bit == 0 {
			continue
		}
		v, n := readInt(src)
		if n == 0 {
			return 0, 0, false
		}
		*f.size, src = int64(v), src[n:]
	}
	if len(src) < 3 || src[0] != lzma2Filter || src[1] != 1 || src[2] > 40 {
		return 0, 0, false
	}
	for _, padding := range src[3:] {
		if padding != 0 {
			return 0, 0, false
		}
	}
	return packed, raw, true
}

// checkFits verifies the check after the content; checks of unknown kinds pass.
func checkFits(check int, content, sum []byte) bool {
	switch check {
	case 1:
		return binary.LittleEndian.Uint32(sum) == crc32.ChecksumIEEE(content)
	case 4:
		return binary.LittleEndian.Uint64(sum) == crc64.Checksum(content, crc64Table)
	case 10:
		return [32]byte(sum) == sha256.Sum256(content)
	}
	return true
}

// index reads the index at the start of src, which must list the blocks, and
// returns its length.
func (s *stream) index(src []byte) (size int, ok bool) {
	at := 1
	next := func() uint64 {
		v, n := readInt(src[min(at, len(src)):])
		if n == 0 {
			at = len(src) + 1
			return 0
		}
		at += n
		return v
	}
	if next() != uint64(len(s.records)) {
		return 0, false
	}
	for _, r := range s.records {
		if next() != r.unpadded || next() != r.raw {
			return 0, false
		}
	}
	for ; at%4 != 0; at++ {
		if at >= len(src) || src[at] != 0 {
			return 0, false
		}
	}
	if at+4 > len(src) || !crcFits(src[:at+4]) {
		return 0, false
	}
	return at + 4, true
}

// readInt reads a variable-length integer of up to 63 bits; it gives 0 bytes
// when there is none.
func readInt(src []byte) (v uint64, n int) {
	for n < min(len(src), 9) {
		b := src[n]
		v |= uint64(b&0x7f) << (7 * n)
		n++
		if b < 0x80 {
			if b == 0 && n > 1 {
				return 0, 0
			}
			return v, n
		}
	}
	return 0, 0
}

// corrupt makes an error that wraps ErrCorrupt.
func corrupt(cause string) error {
	return fmt.Errorf("decoding xz: %w: %s", ErrCorrupt, cause)
}

// Properties of Apple's streams: a dictionary of 8 MiB, as the property byte of
// the LZMA2 filter and in bytes, and stream flags for no integrity check.
const (
	dictProperty = 0x16
	dictSize     = 8 << 20
	noCheck      = "\x00\x00"
	blockHeader  = 16 // length at least, with its CRC
)

// Encode appends src, compressed, to dst as one xz stream in the form of
// Apple's: no check, one block with both sizes in its header, LZMA2 with a
// dictionary of 8 MiB. Empty input makes a stream without blocks. The
// compressor takes about 12 times len(src), at least 1 MiB, of memory for the
// call.
func Encode(dst, src []byte) ([]byte, error) {
	start := len(dst)
	dst = append(dst, headerMagic+noCheck...)
	dst = appendCRC(dst, start+len(headerMagic))
	if len(src) == 0 {
		return appendIndex(dst), nil
	}
	packed, err := compress(src)
	if err != nil {
		return nil, fmt.Errorf("compressing %d bytes with lzma: %w", len(src), err)
	}
	header := len(dst)
	dst = append(dst, 0, 0xc0)
	dst = binary.AppendUvarint(dst, uint64(len(packed)))
	dst = binary.AppendUvarint(dst, uint64(len(src)))
	dst = append(dst, lzma2Filter, 1, dictProperty)
	for len(dst)-header < blockHeader-4 {
		dst = append(dst, 0)
	}
	dst = pad(dst, header)
	dst[header] = byte((len(dst)-header+4)/4 - 1)
	dst = appendCRC(dst, header)
	unpadded := uint64(len(dst) - header + len(packed))
	dst = pad(append(dst, packed...), header)
	return appendIndex(dst, record{unpadded, uint64(len(src))}), nil
}

// appendIndex appends index and stream footer.
func appendIndex(dst []byte, records ...record) []byte {
	start := len(dst)
	dst = append(dst, 0)
	dst = binary.AppendUvarint(dst, uint64(len(records)))
	for _, r := range records {
		dst = binary.AppendUvarint(dst, r.unpadded)
		dst = binary.AppendUvarint(dst, r.raw)
	}
	dst = appendCRC(pad(dst, start), start)
	backward := binary.LittleEndian.AppendUint32(nil, uint32((len(dst)-start)/4-1))
	backward = append(backward, noCheck...)
	dst = binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(backward))
	return append(append(dst, backward...), footerMagic...)
}

// pad appends zeros until the length from start is a multiple of four bytes.
func pad(dst []byte, start int) []byte {
	for (len(dst)-start)%4 != 0 {
		dst = append(dst, 0)
	}
	return dst
}

// appendCRC appends the CRC-32 of the bytes from start.
func appendCRC(dst []byte, start int) []byte {
	return binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[start:]))
}

// compress encodes src with LZMA2. The dictionary is at most as large as src,
// in spite of the larger one in the header: more could not be used, and every
// byte of it is allocated and cleared.
func compress(src []byte) ([]byte, error) {
	out := &sliceWriter{to: make([]byte, 0, len(src)/2+64)}
	w, err := lzma.Writer2Config{DictCap: min(max(len(src), lzma.MinDictCap), dictSize)}.NewWriter2(out)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(src); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.to, nil
}

// sliceWriter appends to a slice.
type sliceWriter struct{ to []byte }

// Write implements io.Writer.
func (w *sliceWriter) Write(p []byte) (int, error) {
	w.to = append(w.to, p...)
	return len(p), nil
}
