package udif

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Checksum types of the trailer and of block tables.
const (
	ChecksumNone  = 0
	ChecksumCRC32 = 2
	ChecksumMD5   = 4
)

// checksumSize is the length of a checksum in the file: type, length in bits, and room for 128 bytes.
const checksumSize = 8 + 128

// Checksum is a checksum field: what kind, how many bits, and the value in the first bytes of Sum.
type Checksum struct {
	Type, Bits uint32
	Sum        [128]byte
}

// Value is the meaningful part of Sum, empty when there is no checksum.
func (c *Checksum) Value() []byte {
	if c.Type == ChecksumNone {
		return nil
	}
	return c.Sum[:min(c.Bits/8, uint32(len(c.Sum)))]
}

func parseChecksum(b []byte) (c Checksum) {
	c.Type, c.Bits = binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	copy(c.Sum[:], b[8:checksumSize])
	return c
}

func (c *Checksum) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, c.Type)
	b = binary.BigEndian.AppendUint32(b, c.Bits)
	return append(b, c.Sum[:]...)
}

// newChecksum is a checksum of the type with this value.
func newChecksum(typ uint32, value []byte) Checksum {
	c := Checksum{Type: typ, Bits: uint32(8 * len(value))}
	copy(c.Sum[:], value)
	return c
}

// Flags of the trailer.
const (
	FlagFlattened = 1 << 0 // set in every finished image
	FlagInternet  = 1 << 2 // "internet enabled", obsolete
)

// Values of Trailer.Variant.
const (
	VariantDevice    = 1 // the tables describe a partitioned device
	VariantPartition = 2 // one unpartitioned volume
)

// Trailer is the koly block at the end of a UDIF file. Offsets and lengths are bytes of the file.
type Trailer struct {
	Version           uint32
	Flags             uint32
	RunningOffset     uint64 // where this segment begins in the joined data fork of a set
	DataOffset        uint64
	DataLength        uint64
	ForkOffset        uint64 // binary resource fork of old images
	ForkLength        uint64
	Segment, Segments uint32
	SegmentID         [16]byte
	DataChecksum      Checksum
	PlistOffset       uint64
	PlistLength       uint64
	SignatureOffset   uint64 // embedded code signature
	SignatureLength   uint64
	Master            Checksum
	Variant           uint32
	Sectors           uint64 // length of the device; some writers leave 0
}

const (
	kolyMagic   = "koly"
	kolyVersion = 4
)

// ParseTrailer reads a koly block of TrailerSize bytes. It fails with ErrNotUDIF when it is none, and with ErrUnsupported
// when its version or length is not the one known. Whether the fields make sense is checked by Open.
func ParseTrailer(b []byte) (*Trailer, error) {
	if len(b) != TrailerSize || string(b[:4]) != kolyMagic {
		return nil, fmt.Errorf("reading the trailer: %w", ErrNotUDIF)
	}
	u32, u64 := binary.BigEndian.Uint32, binary.BigEndian.Uint64
	if version, size := u32(b[4:]), u32(b[8:]); version != kolyVersion || size != TrailerSize {
		return nil, fmt.Errorf("reading the trailer: version %d of %d bytes: %w", version, size, ErrUnsupported)
	}
	t := &Trailer{
		Version: kolyVersion, Flags: u32(b[12:]), RunningOffset: u64(b[16:]),
		DataOffset: u64(b[24:]), DataLength: u64(b[32:]), ForkOffset: u64(b[40:]), ForkLength: u64(b[48:]),
		Segment: u32(b[56:]), Segments: u32(b[60:]), DataChecksum: parseChecksum(b[80:]),
		PlistOffset: u64(b[216:]), PlistLength: u64(b[224:]), SignatureOffset: u64(b[296:]), SignatureLength: u64(b[304:]),
		Master: parseChecksum(b[352:]), Variant: u32(b[488:]), Sectors: u64(b[492:]),
	}
	copy(t.SegmentID[:], b[64:80])
	return t, nil
}

// Marshal is the trailer as it stands at the end of a file.
func (t *Trailer) Marshal() []byte {
	b := make([]byte, 0, TrailerSize)
	u32 := func(v uint32) { b = binary.BigEndian.AppendUint32(b, v) }
	u64 := func(values ...uint64) {
		for _, v := range values {
			b = binary.BigEndian.AppendUint64(b, v)
		}
	}
	b = append(b, kolyMagic...)
	u32(t.Version)
	u32(TrailerSize)
	u32(t.Flags)
	u64(t.RunningOffset, t.DataOffset, t.DataLength, t.ForkOffset, t.ForkLength)
	u32(t.Segment)
	u32(t.Segments)
	b = append(b, t.SegmentID[:]...)
	b = t.DataChecksum.append(b)
	u64(t.PlistOffset, t.PlistLength)
	b = append(b, make([]byte, 64)...)
	u64(t.SignatureOffset, t.SignatureLength)
	b = append(b, make([]byte, 40)...)
	b = t.Master.append(b)
	u32(t.Variant)
	u64(t.Sectors)
	return append(b, make([]byte, 12)...)
}

// check holds the trailer's ranges against the length of the file.
func (t *Trailer) check(size uint64) error {
	if t.Segments > 1 || t.Segment > 1 || t.RunningOffset != 0 {
		return fmt.Errorf("reading the trailer: segment %d of %d: %w", t.Segment, t.Segments, ErrSegmented)
	}
	body := size - TrailerSize
	for _, r := range []struct {
		what                string
		offset, length, max uint64
	}{
		{"data fork", t.DataOffset, t.DataLength, body},
		{"property list", t.PlistOffset, t.PlistLength, MaxPlist},
		{"resource fork", t.ForkOffset, t.ForkLength, MaxFork},
	} {
		if r.length > 0 && (r.offset > body || r.length > body-r.offset) {
			return fmt.Errorf("reading the trailer: %s at %d of %d bytes lies outside of the file: %w", r.what, r.offset, r.length, ErrCorrupt)
		}
		if r.length > r.max {
			return fmt.Errorf("reading the trailer: %s of %d bytes exceeds %d: %w", r.what, r.length, r.max, ErrUnsupported)
		}
	}
	if t.Sectors > maxSectors {
		return fmt.Errorf("reading the trailer: %d sectors: %w", t.Sectors, ErrUnsupported)
	}
	return nil
}

// looksLeading reports whether the file carries its trailer in front, as very old images do.
func looksLeading(start []byte) bool { return bytes.HasPrefix(start, []byte(kolyMagic)) }
