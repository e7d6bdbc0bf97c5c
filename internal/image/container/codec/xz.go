package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math"

	"github.com/ulikunitz/xz/lzma"
)

// The xz streams of ULMO images. LZMA itself is a library's. The container
// around it is our own for two reasons: a dictionary is never larger than the
// destination, whatever a header asks for, and the streams that are written
// look as Apple's do (no check, one block with both sizes in its header), which
// that library does not write.
const (
	xzMagic     = "\xfd7zXZ\x00"
	xzFooter    = "YZ"
	xzHeader    = 12
	lzma2Filter = 0x21
	// Properties of Apple's streams: a dictionary of 8 MiB, as the property
	// byte of the LZMA2 filter and in bytes, stream flags for no integrity
	// check, and the least length of a block header with its CRC.
	dictProperty = 0x16
	dictSize     = 8 << 20
	noCheck      = "\x00\x00"
	blockHeader  = 16
)

// checkSizes are the lengths of the integrity checks by their number.
var checkSizes = [16]int{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}

// maxBlocks bounds the blocks of a payload: each takes a dictionary as long as dst.
const maxBlocks = 64

// xzDecode decodes a .lzma stream, or the xz streams at the start of src, between
// which there may be padding; time and memory are proportional to len(dst) +
// len(src). Filters other than LZMA2 are refused. Integrity checks, which Apple's
// streams do not have, are not computed, and what follows the last block is not
// read: the image has checksums of payloads and of what they decode to.
func xzDecode(dst, src []byte) (int, error) {
	if !bytes.HasPrefix(src, []byte(xzMagic)) {
		return lzmaDecode(dst, src)
	}
	at, in, blocks := 0, 0, 0
	for bytes.HasPrefix(src[in:], []byte(xzMagic)) {
		header := src[in:min(in+xzHeader, len(src))]
		if len(header) < xzHeader || header[6] != 0 || header[7] > 15 || !crcFits(header[6:]) {
			return at, damaged(in, "bad stream header")
		}
		check := checkSizes[header[7]]
		for in += xzHeader; in < len(src) && src[in] != 0; blocks++ { // 0 starts the index after the last block
			if blocks == maxBlocks {
				return at, damaged(in, "too many blocks")
			}
			n, size, err := xzBlock(dst[at:], src, in)
			at += n
			if err != nil {
				return at, err
			}
			in += size + check
		}
		if in >= len(src) {
			return at, damaged(len(src), "no index")
		}
		in = xzNext(src, in)
	}
	return at, nil
}

// xzNext is where the stream after the one with the index at in starts, len(src)
// without another one: after index, footer and zeros.
func xzNext(src []byte, in int) int {
	at := in + 1
	number := func() uint64 {
		n, size := binary.Uvarint(src[min(at, len(src)):])
		at += size
		if size <= 0 {
			at = len(src)
		}
		return n
	}
	for left := number(); left > 0 && at < len(src); left-- {
		number() // length of a block
		number() // and of what it decodes to
	}
	at += (in-at)&3 + 4 + xzHeader // padding and CRC; the footer is as long as the header
	for at < len(src) && src[at] == 0 {
		at++
	}
	return min(at, len(src))
}

// lzmaDecode decodes a .lzma stream, which some other writers put in the place
// of xz: 13 bytes of properties, dictionary size and decoded length, then
// LZMA1. The dictionary size is replaced, since the library allocates what the
// header asks for.
func lzmaDecode(dst, src []byte) (int, error) {
	if len(src) < lzma.HeaderLen {
		return 0, damaged(len(src), "ends too early")
	}
	header := bytes.Clone(src[:lzma.HeaderLen])
	size := binary.LittleEndian.Uint64(header[5:])
	if size != math.MaxUint64 && size != uint64(len(dst)) {
		return 0, damaged(5, "header with another length than wanted")
	}
	most := uint32(min(max(len(dst), lzma.MinDictCap), math.MaxUint32))
	binary.LittleEndian.PutUint32(header[1:], min(binary.LittleEndian.Uint32(header[1:]), most))
	r, err := lzma.NewReader(io.MultiReader(bytes.NewReader(header), bytes.NewReader(src[lzma.HeaderLen:])))
	if err != nil {
		return 0, err
	}
	return readToEnd(r, dst)
}

// crcFits reports whether the last four bytes are the CRC-32 of those before.
func crcFits(src []byte) bool {
	n := len(src) - 4
	return binary.LittleEndian.Uint32(src[n:]) == crc32.ChecksumIEEE(src[:n])
}

// xzBlock decodes the block at byte in of src. It returns the bytes of dst that
// it filled, and the length of the block without its check.
func xzBlock(dst, src []byte, in int) (n, size int, err error) {
	body, ok := xzBlockHeader(src[in:])
	if !ok {
		return 0, 0, damaged(in, "bad block header, or one with other filters than LZMA2")
	}
	payload := bytes.NewReader(src[in+body:])
	// No match reaches further back than dst, and the library allocates what it is
	// told.
	r, err := lzma.Reader2Config{DictCap: max(len(dst), lzma.MinDictCap)}.NewReader2(payload)
	if err != nil {
		return 0, 0, err
	}
	n, err = readToEnd(r, dst)
	return n, (len(src) - in - payload.Len() + 3) / 4 * 4, err
}

// xzBlockHeader checks the block header at the start of src and returns its length.
func xzBlockHeader(src []byte) (size int, ok bool) {
	size = (int(src[0]) + 1) * 4
	if size > len(src) || size < 8 || !crcFits(src[:size]) || src[1]&0x3f != 0 { // reserved bits, or more filters
		return 0, false
	}
	rest := src[2 : size-4]
	for _, given := range []byte{0x40, 0x80} { // compressed and decoded size
		if src[1]&given == 0 {
			continue
		}
		_, n := binary.Uvarint(rest)
		if n <= 0 {
			return 0, false
		}
		rest = rest[n:]
	}
	return size, len(rest) >= 3 && rest[0] == lzma2Filter && rest[1] == 1 && rest[2] <= 40
}

// xzEncode appends src as one xz stream in the form of Apple's: no check, one
// block with both sizes in its header, LZMA2 with a dictionary of 8 MiB. Empty
// input is incompressible. The compressor takes about 12 times len(src), at
// least 1 MiB, of memory for the call.
func xzEncode(dst, src []byte, _ int) ([]byte, error) {
	if len(src) == 0 {
		return nil, ErrIncompressible
	}
	out := bytes.NewBuffer(make([]byte, 0, len(src)/2+64))
	// The dictionary is at most as large as src, in spite of the larger one in the
	// header: more could not be used, and every byte of it is allocated and
	// cleared.
	w, err := lzma.Writer2Config{DictCap: min(max(len(src), lzma.MinDictCap), dictSize)}.NewWriter2(out)
	if err == nil {
		_, err = w.Write(src)
		err = errors.Join(err, w.Close())
	}
	if err != nil {
		return nil, err
	}
	packed, start := out.Bytes(), len(dst)
	dst = append(dst, xzMagic+noCheck...)
	dst = appendCRC(dst, start+len(xzMagic))
	header := len(dst)
	dst = append(dst, 0, 0xc0)
	dst = binary.AppendUvarint(dst, uint64(len(packed)))
	dst = binary.AppendUvarint(dst, uint64(len(src)))
	dst = append(dst, lzma2Filter, 1, dictProperty)
	for len(dst)-header < blockHeader-4 {
		dst = append(dst, 0)
	}
	dst = padTo4(dst, header)
	dst[header] = byte((len(dst)-header+4)/4 - 1)
	dst = appendCRC(dst, header)
	unpadded := len(dst) - header + len(packed)
	dst = padTo4(append(dst, packed...), header)

	index := len(dst) // of one block
	dst = append(dst, 0, 1)
	dst = binary.AppendUvarint(dst, uint64(unpadded))
	dst = binary.AppendUvarint(dst, uint64(len(src)))
	dst = appendCRC(padTo4(dst, index), index)
	backward := binary.LittleEndian.AppendUint32(nil, uint32((len(dst)-index)/4-1))
	backward = append(backward, noCheck...)
	dst = binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(backward))
	return append(append(dst, backward...), xzFooter...), nil
}

// padTo4 appends zeros until the length from start is a multiple of four bytes.
func padTo4(dst []byte, start int) []byte {
	for (len(dst)-start)%4 != 0 {
		dst = append(dst, 0)
	}
	return dst
}

// appendCRC appends the CRC-32 of the bytes from start.
func appendCRC(dst []byte, start int) []byte {
	return binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[start:]))
}
