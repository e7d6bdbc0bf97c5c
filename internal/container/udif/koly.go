package udif

import (
	"encoding/binary"
	"fmt"
)

// Checksum types of the trailer and of block tables.
const (
	ChecksumNone  = 0
	ChecksumCRC32 = 2
	ChecksumMD5   = 4
)

// Checksum is a checksum field as it is in the file: its type, the length in
// bits, and the value at the start of Sum.
type Checksum struct {
	Type, Bits uint32
	Sum        [128]byte
}

// Value is the part of Sum that Bits covers, empty without a checksum.
func (c *Checksum) Value() []byte {
	if c.Type == ChecksumNone {
		return nil
	}
	return c.Sum[:min(c.Bits/8, uint32(len(c.Sum)))]
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

// Trailer is the koly block at the end of a UDIF file after its magic, field by
// field. Offsets and lengths are bytes of the file.
type Trailer struct {
	Version           uint32
	HeaderSize        uint32 // set by Marshal
	Flags             uint32
	RunningOffset     uint64 // where this segment starts in the joined data fork of a set
	DataOffset        uint64
	DataLength        uint64
	ForkOffset        uint64 // binary resource fork of old images
	ForkLength        uint64
	Segment, Segments uint32
	SegmentID         [16]byte
	DataChecksum      Checksum
	PlistOffset       uint64
	PlistLength       uint64
	_                 [64]byte
	SignatureOffset   uint64 // embedded code signature
	SignatureLength   uint64
	_                 [40]byte
	Master            Checksum
	Variant           uint32
	Sectors           uint64 // length of the device; some writers leave 0
	_                 [12]byte
}

// The trailer starts with the magic and the only version that is known.
const (
	kolyMagic   = "koly"
	kolyVersion = 4
)

// ParseTrailer reads a koly block of TrailerSize bytes. It fails with
// ErrNotUDIF when it is none, and with ErrUnsupported when its version or
// length is not the one known. Open checks whether the fields make sense.
func ParseTrailer(b []byte) (*Trailer, error) {
	if len(b) != TrailerSize || string(b[:4]) != kolyMagic {
		return nil, fmt.Errorf("reading the trailer: %w", ErrNotUDIF)
	}
	t := &Trailer{}
	if _, err := binary.Decode(b[len(kolyMagic):], binary.BigEndian, t); err != nil {
		return nil, fmt.Errorf("reading the trailer: %w", err)
	}
	if t.Version != kolyVersion || t.HeaderSize != TrailerSize {
		return nil, fmt.Errorf("reading the trailer: version %d of %d bytes: %w", t.Version, t.HeaderSize,
			ErrUnsupported)
	}
	return t, nil
}

// Marshal returns the bytes of the trailer at the end of a file.
func (t *Trailer) Marshal() []byte {
	full := *t
	full.HeaderSize = TrailerSize
	b, err := binary.Append([]byte(kolyMagic), binary.BigEndian, full)
	if err != nil {
		panic(err) // the fields have fixed sizes
	}
	return b
}

// check compares the trailer's ranges with the length of the file.
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
			return fmt.Errorf("reading the trailer: %s at %d of %d bytes is outside of the file: %w", r.what, r.offset,
				r.length, ErrCorrupt)
		}
		if r.length > r.max {
			return fmt.Errorf("reading the trailer: %s of %d bytes exceeds %d: %w", r.what, r.length, r.max,
				ErrUnsupported)
		}
	}
	if t.Sectors > maxSectors {
		return fmt.Errorf("reading the trailer: %d sectors: %w", t.Sectors, ErrUnsupported)
	}
	return nil
}
