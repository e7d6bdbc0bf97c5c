// Package udif reads, checks and writes UDIF images, the read-only .dmg files:
// UDRO, UDCO, UDZO, UDBZ, ULFO, ULMO and UFBI. It knows the trailer ("koly"),
// the property list or old resource fork with the block tables ("mish") and the
// three layers of checksums, and gives random access, a parallel stream and a
// parallel writer on top of them.
//
// It works on an io.ReaderAt and an io.Writer, so the layer below may be
// encrypted, and it neither opens nor names files. Package codec compresses.
//
// Images are hostile. Everything is checked before it is used: runs must cover
// their region exactly, payloads must be inside the data fork and must not
// overlap, a compressed run gives at most MaxChunk bytes. It refuses segmented
// sets, trailers of other versions and whatever it does not know; it never
// guesses. Memory: opening takes at most 4 bytes for each byte of the property
// list (which is at most MaxPlist and never longer than the file), and keeps 40
// for each run; Options and WriteOptions document the other bounds.
//
// Sources: the reverse-engineered descriptions of libmodi, fstool, QEMU and
// 7-Zip, checked against images made by Apple's tools; see docs/formats.md.
package udif

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"dmgbench/internal/image/container/codec"
)

// Sizes in bytes, and limits of accepted images.
const (
	SectorSize  = 512       // the only sector size of UDIF
	TrailerSize = 512       // length of the koly trailer
	MaxChunk    = 64 << 20  // largest decoded length of one compressed run, QEMU's limit too
	MaxPlist    = 1 << 30   // largest property list
	MaxRuns     = 10 << 20  // most runs of all tables together
	maxPayload  = 68 << 20  // largest stored length of a compressed run: MaxChunk and what bzip2 adds at worst
	maxSectors  = 1<<54 - 1 // largest device, so that its length in bytes is an int64
)

// Errors that callers branch on; every error about the image itself wraps one
// of them.
var (
	ErrNotUDIF     = errors.New("not a UDIF image")
	ErrCorrupt     = errors.New("damaged UDIF image")
	ErrUnsupported = errors.New("unsupported UDIF image")
	ErrSegmented   = errors.New("segmented UDIF images (.dmgpart) are not supported")
	ErrChecksum    = errors.New("checksum differs")
	ErrClosed      = errors.New("image is closed")
)

// corrupt and unsupported make errors that wrap ErrCorrupt and ErrUnsupported.
func corrupt(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, ErrCorrupt)...)
}
func unsupported(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, ErrUnsupported)...)
}

// Kind is the type of a run in a block table.
type Kind uint32

// The kinds of runs. KindZero and KindIgnore have no payload and read as zeros;
// only KindIgnore is left out of checksums.
const (
	KindZero       Kind = 0
	KindRaw        Kind = 1
	KindIgnore     Kind = 2
	KindADC             = Kind(codec.ADC)
	KindZlib            = Kind(codec.Zlib)
	KindBzip2           = Kind(codec.Bzip2)
	KindLZFSE           = Kind(codec.LZFSE)
	KindLZMA            = Kind(codec.LZMA)
	kindComment    Kind = 0x7FFFFFFE
	kindTerminator Kind = 0xFFFFFFFF
)

// Compressed reports whether runs of this kind are decoded by package codec.
func (k Kind) Compressed() bool { return k >= KindADC && k <= KindLZMA }

// hole reports whether runs of this kind have no payload.
func (k Kind) hole() bool { return k == KindZero || k == KindIgnore }

// kindNames are the names of the kinds in reports.
var kindNames = map[Kind]string{KindZero: "zero", KindRaw: "raw", KindIgnore: "ignore", KindADC: "ADC",
	KindZlib: "zlib", KindBzip2: "bzip2", KindLZFSE: "LZFSE", KindLZMA: "LZMA"}

// String is the name of the kind as reports print it.
func (k Kind) String() string { return cmp.Or(kindNames[k], "unknown") }

// Format is a format that Write makes, by Apple's four-letter name.
type Format string

// The formats of the package.
const (
	UDRO Format = "UDRO" // not compressed
	UDCO Format = "UDCO" // ADC
	UDZO Format = "UDZO" // zlib
	UDBZ Format = "UDBZ" // bzip2
	ULFO Format = "ULFO" // LZFSE
	ULMO Format = "ULMO" // LZMA in xz streams
	UFBI Format = "UFBI" // the entire image, not compressed, with MD5 checksums
)

// formatKinds is the kind of run that each format stores data in.
var formatKinds = map[Format]Kind{
	UDRO: KindRaw, UDCO: KindADC, UDZO: KindZlib, UDBZ: KindBzip2, ULFO: KindLZFSE, ULMO: KindLZMA, UFBI: KindRaw,
}

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
	ForkOffset        uint64 // binary resource fork of old images, which is not read
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
	_, _ = binary.Decode(b[len(kolyMagic):], binary.BigEndian, t) // the block is long enough
	if t.Version != kolyVersion || t.HeaderSize != TrailerSize {
		return nil, unsupported("reading the trailer: version %d of %d bytes", t.Version, t.HeaderSize)
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
	outside := func(offset, length uint64) bool { return length > 0 && (offset > body || length > body-offset) }
	switch {
	case outside(t.DataOffset, t.DataLength):
		return corrupt("reading the trailer: data fork of %d bytes at %d of %d", t.DataLength, t.DataOffset, size)
	case outside(t.PlistOffset, t.PlistLength):
		return corrupt("reading the trailer: property list of %d bytes at %d of %d", t.PlistLength, t.PlistOffset, size)
	case t.PlistLength > MaxPlist:
		return unsupported("reading the trailer: property list of %d bytes", t.PlistLength)
	case t.Sectors > maxSectors:
		return unsupported("reading the trailer: %d sectors", t.Sectors)
	}
	return nil
}
