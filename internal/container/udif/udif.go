// Package udif reads, checks and writes UDIF images, the read-only .dmg files:
// UDRO, UDCO, UDZO, UDBZ, ULFO, ULMO and UFBI. It knows the trailer ("koly"),
// the property list or old resource fork with the block tables ("mish") and the
// three layers of checksums, and gives random access, a parallel stream and a
// parallel writer on top of them.
//
// It does not compress: the caller that opens or writes an image brings a
// Codec. It works on an io.ReaderAt and an io.Writer, so the layer below may be
// encrypted, and it neither opens nor names files.
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
	"errors"
)

// Sizes in bytes, and limits of accepted images.
const (
	SectorSize  = 512       // the only sector size of UDIF
	TrailerSize = 512       // length of the koly trailer
	MaxChunk    = 64 << 20  // largest decoded length of one compressed run, QEMU's limit too
	MaxPlist    = 1 << 30   // largest property list
	MaxFork     = 32 << 20  // largest binary resource fork; its own offsets end at 16 MiB
	MaxRuns     = 10 << 20  // most runs of all tables together
	maxRegions  = 64 << 10  // most block tables of one image
	maxPayload  = 68 << 20  // largest stored length of a compressed run: MaxChunk and what bzip2 adds at worst
	maxSectors  = 1<<54 - 1 // largest device, so that its length in bytes is an int64
)

// Errors that callers branch on; every error about the image itself wraps one
// of them.
var (
	ErrNotUDIF        = errors.New("not a UDIF image")
	ErrCorrupt        = errors.New("damaged UDIF image")
	ErrUnsupported    = errors.New("unsupported UDIF image")
	ErrSegmented      = errors.New("segmented UDIF images (.dmgpart) are not supported")
	ErrChecksum       = errors.New("checksum differs")
	ErrClosed         = errors.New("image is closed")
	ErrIncompressible = errors.New("data does not shrink")
)

// Codec decodes and encodes the payloads of compressed runs, each one a
// complete, independent stream. Both methods are called from many goroutines at
// once.
type Codec interface {
	// Decode decodes src into dst, which has the expected length, and returns
	// how many bytes it gave. It must be bounded by len(dst) for any src.
	Decode(id uint32, dst, src []byte) (int, error)
	// Encode appends the encoded src to dst. An error that wraps
	// ErrIncompressible, or a result that is not shorter than src, makes the
	// writer store the chunk as it is.
	Encode(id uint32, dst, src []byte, level int) ([]byte, error)
}

// Kind is the type of a run in a block table.
type Kind uint32

// The kinds of runs. KindZero and KindIgnore have no payload and read as zeros;
// only KindIgnore is left out of checksums.
const (
	KindZero       Kind = 0
	KindRaw        Kind = 1
	KindIgnore     Kind = 2
	KindADC        Kind = 0x80000004
	KindZlib       Kind = 0x80000005
	KindBzip2      Kind = 0x80000006
	KindLZFSE      Kind = 0x80000007
	KindLZMA       Kind = 0x80000008
	kindComment    Kind = 0x7FFFFFFE
	kindTerminator Kind = 0xFFFFFFFF
)

// Compressed reports whether runs of this kind need the Codec.
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
