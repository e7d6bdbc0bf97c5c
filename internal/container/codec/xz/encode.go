package xz

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/ulikunitz/xz/lzma"
)

// Properties of Apple's streams: a dictionary of 8 MiB, as the property byte of the LZMA2 filter
// and in bytes, and stream flags for no integrity check.
const (
	dictProperty = 0x16
	dictSize     = 8 << 20
	noCheck      = "\x00\x00"
	blockHeader  = 16 // length at least, with its CRC
)

// Encode appends src, compressed, to dst as one xz stream in the form of Apple's: no check, one
// block with both sizes in its header, LZMA2 with a dictionary of 8 MiB. Empty input makes a stream
// without blocks. The compressor takes about 12 times len(src), at least 1 MiB, of memory for the
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

// compress encodes src with LZMA2. The dictionary is at most as large as src, in spite of the
// larger one in the header: more could not be used, and every byte of it is allocated and cleared.
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

type sliceWriter struct{ to []byte }

func (w *sliceWriter) Write(p []byte) (int, error) {
	w.to = append(w.to, p...)
	return len(p), nil
}
