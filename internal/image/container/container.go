// Package container opens, makes and checks disk image containers on the host
// and offers them as block devices: UDRW, the sectors of the device in one
// file; UDSB, a bundle of band files; UDSP, a sparse image in one file that
// grows by bands; ASIF, the sparse format of macOS 26; and UDIF, read-only. The
// formats are those of Apple's own files.
//
// [Create] makes a container, [Open] identifies one and opens it as an [Image],
// [UsageOf] and [Verify] inspect a closed one, [Remove] deletes one. Packages
// gpt and exfat handle the content of the device (partition table, volume).
// Host files are accessed through package hostio only.
//
// # What it refuses
//
// A format that it cannot open is an [*UnsupportedError] with what was found,
// never an image opened as something else: segmented UDIF, encrypted ASIF,
// writing to UDIF, to encryption of version 1 and to backing-store version 2,
// formats with unknown versions, flags or codes. A wrong or missing passphrase
// is [ErrPassphrase]. A container that is open for writing elsewhere is
// [ErrInUse]. When a container is deleted, renamed or replaced while open,
// Flush, Close, Resize, Compact and Usage fail with hostio.ErrReplaced, and the
// replacement is not changed.
//
// # Layout
//
// UDRW and UDTO are the bare sectors of the device. A sparse bundle keeps bytes
// [N·band-size, (N+1)·band-size) in the file bands/<N in lower-case
// hexadecimal>. docs/formats.md describes UDSP and ASIF, and what is known of
// each.
package container

import (
	"cmp"
	"errors"
	"fmt"

	"dmgbench/internal/image"
	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/container/crypt"
	"dmgbench/internal/image/container/files"
	"dmgbench/internal/system/hostio"
)

// The formats that Create makes.
const (
	UDRW = image.UDRW // read-write image, bare sectors in one file
	UDSB = image.UDSB // sparse bundle
	UDSP = image.UDSP // sparse image
	ASIF = image.ASIF // Apple sparse image format
)

// SectorSize is the unit of sizes and band sizes, in bytes.
const SectorSize = image.SectorSize

// Image is an open container as a block device. Reads, writes and discards are
// safe for concurrent use, and no one of them waits for the data of another.
// Offsets, lengths and sizes are bytes.
//
// Discard makes the range read as zeros and frees its space; on a host that
// cannot punch holes it returns hostio.ErrUnsupported and the content stays.
// After a Flush that failed, all later ones fail: the kernel may have dropped
// writes that it had accepted.
type Image interface {
	blockdev.Device
	blockdev.Evicter
	// Close flushes, unlocks and closes. Later calls return fs.ErrClosed.
	Close() error
	// Usage returns the space that the container takes on the host.
	Usage() (Usage, error)
	// Compact deletes bands that used reports as unused (nil: bands that are
	// all zeros) and returns the allocated bytes that were freed. The volume
	// must not allocate meanwhile. UDSP moves the last bands of the file forward
	// and cuts it, ASIF leaves holes; other calls wait. UDRW has no bands: an
	// [*UnsupportedError], as from Apple's tools.
	Compact(used func(off, n int64) bool) (reclaimed int64, err error)
	// Resize changes the length of the device. Data after a smaller size is
	// lost; new space reads as zeros.
	Resize(newSize int64) error
	// Cache returns the achieved cache mode of the host files.
	Cache() hostio.CacheMode
	// Resident returns the share, 0 to 1, of n bytes from off of the device that
	// the host's cache contains. Bytes without a place in a file are in no cache.
	Resident(off, n int64) (share float64, err error)
	// Format returns the four-letter name.
	Format() string
	// BandSize returns the bytes of a band (of a chunk, for ASIF), 0 for
	// formats without bands.
	BandSize() int64
}

// Warner is implemented by images that may open in spite of a defect that is to
// be shown to the user.
type Warner interface{ Warnings() []string }

// Spec describes a container for Create.
type Spec struct {
	Format   string // UDRW, UDSB, UDSP or ASIF
	Size     int64  // of the device, bytes, a multiple of 512
	BandSize int64  // UDSB, UDSP: as in [image.Spec]
	// ID is the identifier in ASIF images; zero means a random one.
	ID [16]byte
	// Encryption of the content. That of ASIF is unknown, which is an
	// [*UnsupportedError].
	Encryption Encryption
}

// OpenOptions are the options of Open. The zero value opens for reading and
// writing, buffered, with flushes that reach the storage medium.
type OpenOptions struct {
	ReadOnly bool
	Cache    hostio.CacheMode // of the container's or the bands' files
	Sync     hostio.SyncMode  // of Flush; empty means hostio.SyncFull
	// Hold keeps writers away from a container that is opened read-only, until
	// it is closed: Open for writing and Remove return [ErrInUse] meanwhile,
	// and so does this Open while a writer has the container open.
	Hold bool
	// Passphrase opens an encrypted container; others ignore it. It is neither
	// kept nor changed: the caller wipes it.
	Passphrase []byte
	// Keys, from [UnwrapKeys], open an encrypted container in place of the
	// passphrase and without its derivation. The caller wipes them, too.
	Keys crypt.Keys
}

// sync is Sync with its default.
func (o OpenOptions) sync() hostio.SyncMode { return cmp.Or(o.Sync, hostio.SyncFull) }

// Conditions that callers branch on.
var (
	// ErrInUse is returned by Open for writing and by Remove when another
	// process, or another Open in this one, has the container open for writing.
	ErrInUse = errors.New("container is in use")
	// ErrReadOnly is returned by all changes of an image that was opened
	// read-only.
	ErrReadOnly = errors.New("image is open read-only")
	// ErrPassphrase is returned for encrypted containers when the passphrase is
	// wrong or missing.
	ErrPassphrase = crypt.ErrPassphrase
	// ErrCorrupt is returned for containers with a contradictory structure.
	ErrCorrupt = errors.New("container is damaged")
	// ErrData is returned when the structure of a container is valid and its
	// data is not: chunks that cannot be decoded, checksums that differ.
	ErrData = fmt.Errorf("image data corrupted: %w", ErrCorrupt)
)

// UnsupportedError reports that a container, or an operation on it, is known
// but not supported. It matches errors.ErrUnsupported.
type UnsupportedError struct {
	Path  string // of the container
	Found string // what it is, e.g. "encrypted image (encrcdsa v2)"
	Doing string // the operation, e.g. "opening"
	// Foreign is set for the image of another program.
	Foreign bool
}

// Error implements error.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s %q: not supported for this kind of container: %s", e.Doing, e.Path, e.Found)
}

// Is makes the error match errors.ErrUnsupported.
func (e *UnsupportedError) Is(target error) bool { return target == errors.ErrUnsupported }

// Extension returns the file name extension of a format, such as ".dmg"; empty
// for formats that Create does not make.
func Extension(format string) string {
	f, _ := image.FormatNamed(format)
	if f.ReadOnly {
		return ""
	}
	return f.Extension
}

// Usage is the space that a container takes on the host.
type Usage = files.Usage

// Finding is a defect in a container's structure.
type Finding struct {
	Path    string // inside the container; empty for the container itself
	Problem string
	Fatal   bool // the data of the device cannot be trusted or read
}
