package crypt

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"slices"
)

// Codes of Apple's CSSM interface that both versions use.
const (
	algorithmAES  = 0x80000001
	algorithm3DES = 17
	algorithmHMAC = 0x5B // HMAC-SHA1
	modeCBC       = 5    // CBC, IV given
	modeCBCPadded = 6    // CBC, padded, IV of eight bytes
	paddingPKCS7  = 7
	kdfPBKDF2     = 103
)

const (
	fixedSize  = 0x4C // the fixed part of a version 2 header
	entrySize  = 20   // a line of its table of records
	lengthAt   = 0x38 // where it keeps the plaintext length
	passphrase = 1    // the kind of record that a passphrase opens
)

// fixedFields is the fixed part of a version 2 header, all big-endian as the
// rest.
type fixedFields struct {
	Magic          [8]byte
	Version        uint32
	IVSize         uint32
	BlockMode      uint32
	BlockAlgorithm uint32
	KeyBits        uint32
	IVAlgorithm    uint32
	IVKeyBits      uint32
	UUID           [16]byte
	BlockSize      uint32
	DataLength     uint64
	DataOffset     uint64
	Records        uint32
}

// entryFields is a line of the table of records.
type entryFields struct {
	Kind           uint32
	Offset, Length uint64
}

// decodeFields reads a struct of fixed size; b is long enough.
func decodeFields(b []byte, to any) {
	if _, err := binary.Decode(b, binary.BigEndian, to); err != nil {
		panic(err)
	}
}

// encodeFields writes a struct of fixed size to the start of b, which is long
// enough.
func encodeFields(b []byte, from any) {
	if _, err := binary.Encode(b, binary.BigEndian, from); err != nil {
		panic(err)
	}
}

var (
	markV2 = []byte("encrcdsa")
	markV1 = []byte("cdsaencr")
)

// Header is the encryption header of an image. It keeps the whole header as it
// was read, so that Marshal gives back records and fields that this package
// does not understand.
type Header struct {
	// Version is 2 for encrcdsa and 1 for cdsaencr.
	Version int
	// KeyBits is 128 or 256: the AES key of the data.
	KeyBits int
	// BlockSize is the number of bytes that are encrypted with one IV: a power
	// of two from 512 to
	// 65536.
	BlockSize int
	// DataOffset is where block 0 starts in the file: 0 in version 1. In the
	// token of a bundle it is the token's length.
	DataOffset int64
	// DataLength is the plaintext length in bytes: 0 in the token of a bundle.
	// An owner of a growing image may change it, and then writes LengthField
	// (or Marshal) back. Version 1 ends its data where the trailer starts, not
	// always at a whole block; the ciphertext may be filled up with zeros to a
	// block to decrypt it.
	DataLength int64
	// UUID identifies the image.
	UUID [16]byte
	// Iterations is the number of PBKDF2 rounds of the first passphrase record
	// that can be used, 0 without one.
	Iterations int
	// Wrap is how that record keeps the keys.
	Wrap Wrap
	// Passphrases is the number of passphrase records.
	Passphrases int
	// Records are the key records in the order of the table, those of unknown
	// kinds included. Version 1 has none.
	Records []Record

	raw []byte // the header as a file has it; DataLength is put in by Marshal
}

// Record is a line of the table of key records.
type Record struct {
	// Kind is 1 for a passphrase, 2 for a certificate, 3 for a key bag; others
	// are kept unread.
	Kind uint32
	// Offset and Length are the position of the record in the header, in bytes.
	Offset, Length int64
}

// overlaps reports whether two records share bytes.
func (r Record) overlaps(other Record) bool {
	return r.Offset < other.Offset+other.Length && other.Offset < r.Offset+r.Length
}

// ReadHeader reads the header of the image, or the token of a bundle, of size
// bytes. The error wraps ErrNotEncrypted, ErrDamaged or ErrUnsupported, or is
// that of r. It reads and keeps at most MaxHeader bytes.
func ReadHeader(r io.ReaderAt, size int64) (h *Header, err error) {
	defer annotate(&err, "reading the encryption header")
	start := make([]byte, min(size, fixedSize))
	if err := readFull(r, start, 0); err != nil {
		return nil, err
	}
	if bytes.HasPrefix(start, markV2) {
		return readV2(r, start, size)
	}
	if size < TrailerSize {
		return nil, ErrNotEncrypted
	}
	trailer := make([]byte, TrailerSize)
	if err := readFull(r, trailer, size-TrailerSize); err != nil {
		return nil, err
	}
	if !bytes.HasSuffix(trailer, markV1) {
		return nil, ErrNotEncrypted
	}
	return parseV1(trailer, size-TrailerSize)
}

// readFull fills b; the end of the file is a damaged header.
func readFull(r io.ReaderAt, b []byte, off int64) error {
	n, err := r.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if err == nil || err == io.EOF {
		return damaged("the file ends at byte %d, inside the header", off+int64(n))
	}
	return err
}

// readV2 reads the bytes before the data, which start with fixed, after it has
// checked how many there are.
func readV2(r io.ReaderAt, fixed []byte, size int64) (*Header, error) {
	if size < fixedSize {
		return nil, damaged("%d bytes are too few for a header", size)
	}
	var f fixedFields
	decodeFields(fixed, &f)
	if f.Version != 2 {
		return nil, unsupported("encrcdsa version %d", f.Version)
	}
	switch offset := f.DataOffset; {
	case f.Records > maxRecords:
		return nil, unsupported("%d key records, more than %d", f.Records, maxRecords)
	case offset < uint64(fixedSize+entrySize*f.Records):
		return nil, damaged("data at %d, inside the header", offset)
	case offset > uint64(size):
		return nil, damaged("data at %d, beyond the end of %d bytes", offset, size)
	case offset > MaxHeader:
		return nil, unsupported("a header of %d bytes, more than %d", offset, MaxHeader)
	}
	raw := make([]byte, f.DataOffset)
	if err := readFull(r, raw, 0); err != nil {
		return nil, err
	}
	return parseV2(raw)
}

// parseV2 takes over raw, the bytes in front of the data; their number and that
// of the records were checked. The records must be inside the header, after the
// table, and not overlap.
func parseV2(raw []byte) (*Header, error) {
	var f fixedFields
	decodeFields(raw, &f)
	known := f
	known.BlockMode, known.BlockAlgorithm = modeCBC, algorithmAES
	known.IVSize, known.IVAlgorithm, known.IVKeyBits = 16, algorithmHMAC, hmacKeySize*8
	if f != known {
		return nil, unsupported("blocks by algorithm %#x in mode %d, IVs of %d bytes by algorithm %#x with %d bits",
			f.BlockAlgorithm, f.BlockMode, f.IVSize, f.IVAlgorithm, f.IVKeyBits)
	}
	if f.DataLength > math.MaxInt64-2*MaxHeader {
		return nil, damaged("a plaintext of %d bytes", f.DataLength)
	}
	h := &Header{Version: 2, DataOffset: int64(len(raw)), DataLength: int64(f.DataLength), UUID: f.UUID, raw: raw}
	if err := h.setSizes(f.KeyBits, f.BlockSize); err != nil {
		return nil, err
	}
	end, limit := fixedSize+int64(f.Records)*entrySize, uint64(len(raw))
	for i := range int(f.Records) {
		var e entryFields
		decodeFields(raw[fixedSize+i*entrySize:], &e)
		if e.Offset < uint64(end) || e.Offset > limit || e.Length > limit-e.Offset {
			return nil, damaged("key record %d at %d with %d bytes is outside the header", i, e.Offset, e.Length)
		}
		record := Record{Kind: e.Kind, Offset: int64(e.Offset), Length: int64(e.Length)}
		if j := slices.IndexFunc(h.Records, record.overlaps); j >= 0 {
			return nil, damaged("key records %d and %d overlap", j, i)
		}
		h.Records = append(h.Records, record)
	}
	return h, h.summarise()
}

// setSizes checks the two sizes that both versions state.
func (h *Header) setSizes(keyBits, block uint32) error {
	if keyBits != 128 && keyBits != 256 {
		return unsupported("an AES key of %d bits", keyBits)
	}
	if block < 512 || block > 1<<16 || block&(block-1) != 0 {
		return unsupported("blocks of %d bytes", block)
	}
	h.KeyBits, h.BlockSize = int(keyBits), int(block)
	return nil
}

// CipherLength is the number of bytes of whole blocks that plain bytes of
// plaintext take up.
func (h *Header) CipherLength(plain int64) int64 {
	block := int64(h.BlockSize)
	return (plain + block - 1) / block * block
}

// Fits checks that a file of size bytes holds all the data that the header
// states. Sparse images and tokens of bundles need not.
func (h *Header) Fits(size int64) error {
	need, room := h.DataLength, size-TrailerSize
	if h.Version == 2 {
		need, room = h.CipherLength(need), size-h.DataOffset
	}
	if need > room {
		return damaged("%d bytes of data from %d, in a file of %d", need, h.DataOffset, size)
	}
	return nil
}

// Marshal returns the header as it is in a file before the data (of DataOffset
// bytes), or the trailer of version 1. Everything but DataLength and what
// ChangePassphrase changed is as it was read.
func (h *Header) Marshal() []byte {
	b := bytes.Clone(h.raw)
	if h.Version == 2 {
		binary.BigEndian.PutUint64(b[lengthAt:], uint64(h.DataLength))
	}
	return b
}

// LengthField returns DataLength as a version 2 header has it, and where: an
// image that grows writes these eight bytes instead of the whole header.
func (h *Header) LengthField() (off int64, b []byte) {
	return lengthAt, binary.BigEndian.AppendUint64(nil, uint64(h.DataLength))
}

// sectorSize is the unit of bytes that disks write completely or not.
const sectorSize = 512

// Step is a write into the header of a file.
type Step struct {
	Off  int64
	Data []byte
}

// Steps returns the writes that make the header of a file, which holds was,
// that of h after ChangePassphrase. Each must be durable before the next
// starts. A crash at any moment leaves a header that one of the two passphrases
// opens, even if a write is cut off between two sectors: the new record is
// written into unused space first, and the table, one sector, is made to lead
// there while the old record is replaced. The error wraps ErrUnsupported where
// the header has no such space.
func (h *Header) Steps(was []byte) (steps []Step, err error) {
	defer annotate(&err, "replacing the passphrase record")
	if h.Version != 2 || len(was) != len(h.raw) {
		return nil, unsupported("another header than the one that was read")
	}
	for i, r := range h.Records {
		record := h.bytes(r)
		if bytes.Equal(record, was[r.Offset:][:r.Length]) {
			continue
		}
		line := int64(fixedSize + entrySize*i + 4)
		if line/sectorSize != (line+7)/sectorSize {
			return nil, unsupported("the table of records is cut by the end of a sector at the record to change")
		}
		spare := h.findSpare(was, r.Length)
		if spare < 0 {
			return nil, unsupported("no unused space of %d bytes in the header", r.Length)
		}
		at := func(off int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(off)) }
		return []Step{
			{spare, record}, {line, at(spare)}, // from here on the new passphrase
			{r.Offset, record}, {line, at(r.Offset)},
			{spare, make([]byte, r.Length)},
		}, nil
	}
	return nil, nil
}

// findSpare finds n unused bytes that share no sector with the table, from the
// end of the header; -1 if there are none.
func (h *Header) findSpare(was []byte, n int64) int64 {
	table := int64(fixedSize + entrySize*len(h.Records))
	lowest := (table + sectorSize - 1) / sectorSize * sectorSize
	for at := (int64(len(was)) - n) / sectorSize * sectorSize; at >= lowest; at -= sectorSize {
		used := slices.ContainsFunc(h.Records, Record{Offset: at, Length: n}.overlaps)
		if !used && len(bytes.Trim(was[at:at+n], "\x00")) == 0 {
			return at
		}
	}
	return -1
}
